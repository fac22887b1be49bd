"""Read the ten normalised metrics of one filing.

Payload: symbol, period_end, form_type, filing_facts (facts).
Result: metrics of the quarter (10-Q) or year (10-K, 20-F, 40-F) that ends at period_end, null where not known; and
used, the figures with their tags. Numbers have ten decimals.
"""

from typing import Any

from finskillbench.engines.accounting.task import normalization
from finskillbench.sandbox.script import cli, rounded


def main(payload: dict[str, Any]) -> dict[str, Any]:
    """Match every figure to the period by its dates."""
    return rounded(normalization(payload))


if __name__ == "__main__":
    cli(main)
