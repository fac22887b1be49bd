"""Measure the effects of resolved cases of each group on innovations.

Payload: archive (case, quarter counted from the first managed one, columns of values), group ("kind" by default),
values (columns to measure), profiles (group to its multiples from quarter 0 on), unit (one of the columns' numbers in
standard deviations of innovations: 0.01 where they are hundredths); keep and drop (column to the list of entries that
are wanted, or not). An unknown key is refused.
Result: cases_kept, and by group: cases, mean_shift and its standard_error by column, in standard deviations as the
shifts of `signature_match.py`, and size_spread: the standard deviation, among its cases, of the size along the mean
shift (1 is the mean), without the noise of measuring one case; used: the choices as applied, and how many
cases have each entry of keep and drop.
"""

from typing import Any

from finskillbench.sandbox.script import cli
from finskillbench_desk.engines.screening.task import case_effects


def main(payload: dict[str, Any]) -> dict[str, Any]:
    """Least squares case by case, then means by group."""
    return case_effects(payload)


if __name__ == "__main__":
    cli(main)
