"""Look up the metrics of the conventions, of any period on file.

Payload: symbol, filing_facts (facts); optional metrics (names), period_end (last day of a period), duration (instant,
quarterly, half, nine_months or annual). An unknown key is refused.
Result: metrics, rows of metric, duration, start, end, value, unit, tag, derived (a difference or a sum of what was
filed), form, accession, filed, the latest period first; at most 200 of them; and matching, their number. A metric
without a row in a period is not known.
"""

from typing import Any

from finskillbench.engines.accounting.task import metrics_on_file
from finskillbench.sandbox.script import cli, rounded


def main(payload: dict[str, Any]) -> dict[str, Any]:
    """Return the figure of each metric and period that counts."""
    return rounded(metrics_on_file(payload))


if __name__ == "__main__":
    cli(main)
