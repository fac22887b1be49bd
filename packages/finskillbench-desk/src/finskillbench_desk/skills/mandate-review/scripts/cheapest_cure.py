"""Find the trades of least cost after which a book that you state keeps coded rules, with proof.

Payload: as run_rules.py, without orders; costs are the column cost_bp of reference. An unknown key is refused.
Result: orders (dollars by security, of futures notionals; positive is bought), cost_bp of net asset value, bound_bp (no
cure costs less), programs (solved), and outcomes of the rules after the trades. Anything in reference is traded in any
amount, cash takes the other side, nothing is borrowed or sold short, a future keeps its sign.
"""

from typing import Any

from finskillbench.engines.fields import refuse_unknown
from finskillbench.sandbox.script import cli, rounded
from finskillbench_desk.engines.guidelines.cure import CureRules, after, cheapest_cure
from finskillbench_desk.engines.guidelines.evaluation import evaluate
from finskillbench_desk.engines.guidelines.stated import BOOK, book_from, rates_from, rules_from


def main(payload: dict[str, Any]) -> dict[str, Any]:
    """Trade as cheaply as the rules allow."""
    refuse_unknown(payload, ("rules", *BOOK), "cheapest_cure")
    rules, book = rules_from(payload), book_from(payload)
    cure = cheapest_cure(rules, book, CureRules(rates_from(payload)))
    outcomes = [
        {"clause": each.rule.clause, "measured": each.measured, "limit": each.limit, "state": each.state}
        for each in evaluate(rules, after(book, cure.trades))
    ]
    return rounded(
        {
            "orders": dict(sorted(cure.trades.items())),
            "cost_bp": 1e4 * cure.cost,
            "bound_bp": 1e4 * cure.bound,
            "programs": cure.programs,
            "outcomes": outcomes,
        }
    )


if __name__ == "__main__":
    cli(main)
