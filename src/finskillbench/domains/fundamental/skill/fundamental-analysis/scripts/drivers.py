"""Decompose the change between two quarters: revenue by segment, margins and expense ratios.

Payload: symbol, current_period_end, prior_period_end, filing_facts (facts, segments).
Result: revenue_delta, top_revenue_drivers, margin_drivers; and axis, the axis of segments that explains the change,
used, both quarters with their figures and tags. Numbers have ten decimals.
"""

from typing import Any

from finskillbench.engines.accounting.task import driver_decomposition
from finskillbench.sandbox.script import cli, rounded


def main(payload: dict[str, Any]) -> dict[str, Any]:
    """Compare two quarters."""
    return rounded(driver_decomposition(payload))


if __name__ == "__main__":
    cli(main)
