"""Hold the papers of a fund against each other: lots, blotter, closes, reference data. Measures, no verdicts.

Payload: as_of; the tables custodian, trades, corporate_actions, prices, second_source, reference, benchmark, filings;
fx.
Result: lots (units printed by security, lot numbers printed again, lots alike under other numbers), orders (every line
of the blotter, signed), quotes (dollar_prices of one unit at the last close in the reference's currency, closes that
stand still, lines whose two sources differ), splits (of each lot from before one its cost over the close of that day),
fields (where the reference file differs from benchmark file or last filing).
"""

from typing import Any

from finskillbench.engines.books import papers
from finskillbench.errors import InputError
from finskillbench.sandbox.script import cli, rounded


def main(payload: dict[str, Any]) -> dict[str, Any]:
    """Measure where the papers differ."""
    as_of = payload.get("as_of")
    if not isinstance(as_of, str):
        raise InputError("as_of must be the day of the book as YYYY-MM-DD; inject it from the task data")
    return rounded(
        {
            "lots": papers.lots(payload),
            "orders": papers.orders(payload, as_of),
            "quotes": papers.quotes(payload),
            "splits": papers.splits(payload),
            "fields": papers.fields(payload, as_of),
        }
    )


if __name__ == "__main__":
    cli(main)
