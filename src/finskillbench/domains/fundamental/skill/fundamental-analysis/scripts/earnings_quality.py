"""Rate the earnings of the quarter that ends at period_end against the same quarter a year before.

Payload: symbol, period_end, filing_facts (facts); form_type changes nothing.
Result: piotroski_score, piotroski_components, beneish_m_score, beneish_flag, accruals_ratio, income_quality_ratio,
flags; and beneish_ratios, used (both quarters, their figures and tags). A figure that cannot be computed is null.
Numbers have ten decimals.
"""

from typing import Any

from finskillbench.engines.accounting.task import earnings_quality
from finskillbench.sandbox.script import cli, rounded


def main(payload: dict[str, Any]) -> dict[str, Any]:
    """Return score, ratios and flags of one quarter."""
    return rounded(earnings_quality(payload))


if __name__ == "__main__":
    cli(main)
