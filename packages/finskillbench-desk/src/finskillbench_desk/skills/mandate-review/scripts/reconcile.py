"""Query the records of a fund: sums, repeats, differences of two sources. Measures, no verdicts.

Payload: questions, a list of objects that each have ask and the keys of that question; the tables they name, as_of and
fx from the task data. Asks: sums (of a column by another, filtered), repeats (rows that agree in columns), differences
(of one column of two tables by key), unchanged (lines whose last closes are one number), costs (lots of securities
with the close of the day on which they were acquired), levels (a unit over one of the issuer's first line, in
currencies), values (dollars of stated units). references/books.md has a table of keys; an unknown one is refused.
Result: answers in the order of the questions.
"""

from typing import Any

from finskillbench.engines.fields import refuse_unknown
from finskillbench.sandbox.script import cli, rounded
from finskillbench_desk.engines.books.questions import TABLES, answered


def main(payload: dict[str, Any]) -> dict[str, Any]:
    """Answer the questions in order."""
    refuse_unknown(payload, ("questions", "as_of", "fx", *TABLES), "reconcile")
    return rounded({"answers": answered(payload)})


if __name__ == "__main__":
    cli(main)
