"""What the trades of an episode are worth: orders as the dealers take them, losses, and which traps they fell into.

The score is `1 - what the agent's decisions lost / what the textbook's lost`, floored at 0. Each decision's loss is
taken in the book that the agent had then, so that one slip costs once; the textbook's are fixed by the case, so that
nothing is gained by steering the book anywhere. No loss is negative, hence no score is above 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.domains.interactive import StageError
from finskillbench.episode import JsonObject, Score, Truth
from finskillbench.scoring.values import array, mapping, number
from finskillbench_desk.share import share
from finskillbench_desk.trade_over_time.dials import DECISIONS, LARGEST_TRADE, TOLERANCE
from finskillbench_desk.trade_over_time.optimum import Desk, Trap, fallen_book, from_json, losses

_SHOWN = 5
"""Names or sectors that a refusal lists."""


def ordered(desk: Desk, decision: int, book: Floats, trades: Mapping[str, Any]) -> Floats:
    """(n,) the book after an order: millions by name, what is missing is not traded.

    What the order leaves open of the limits within the tolerance is settled at least cost.

    Raises
    ------
    StageError : a name that there is not, an amount that is none, or a limit that is missed by more.
    """
    places = {ticker: place for place, ticker in enumerate(desk.tickers)}
    change = np.zeros(len(places))
    for ticker, amount in trades.items():
        if ticker not in places:
            raise StageError(f"{ticker[:20]!r} is not in the book; names are those of the table `names`")
        value = number(amount)
        if value is None or abs(value) > LARGEST_TRADE:
            raise StageError(f"{ticker}: a trade is a number of millions of size {LARGEST_TRADE:g} at most")
        change[places[ticker]] = value
    limits = desk.limits(decision)
    if limits is not None:
        missed = limits.rows @ (book + change) - limits.amounts
        if (worst := np.flatnonzero(np.abs(missed) > TOLERANCE)).size:
            named = ", ".join(f"{desk.sectors[place]} by {missed[place]:+.1f}" for place in worst[:_SHOWN])
            more = "" if worst.size <= _SHOWN else f" and {worst.size - _SHOWN} more"
            raise StageError(
                f"refused, nothing was traded: every sector must hold its share of the capital within {TOLERANCE:g} "
                f"millions; after these trades they differ: {named}{more}"
            )
    return desk.settled(decision, book + change)


def followed(desk: Desk, record: object) -> tuple[list[Floats], int]:
    """The books (12 of n each) after each decision of a record, and how many were taken before it stops."""
    books, taken = [desk.book.holdings], 0
    orders = array(mapping(record).get("decisions"))[:DECISIONS]
    for place, order in enumerate(orders):
        try:
            books.append(ordered(desk, place, books[-1], mapping(mapping(order).get("trades"))))
        except StageError:
            break
        taken += 1
    for place in range(taken, DECISIONS):
        books.append(desk.held(place, books[-1]))
    return books[1:], taken


def certified(answer: JsonObject, truth: Truth, task_input: object) -> Score:
    """One minus the share of the textbook's loss that the decisions of the record lost."""
    del task_input  # the desk stands in the truth, where the scorer needs no table
    known = truth.verification
    desk, aims = from_json(known["desk"]), np.array(known["aims"])
    books, taken = followed(desk, answer.get("record"))
    lost = losses(desk, aims, books)
    textbook = math.fsum(known["textbook_losses"])
    value = share(-float(lost.sum()), -textbook, 0.0)
    details: dict[str, Any] = {
        "decisions": taken,
        "loss": float(lost.sum()),
        "textbook_loss": textbook,
        "losses": lost.tolist(),
        "traps": _traps(desk, aims, books, taken, known["traps"]),
    }
    return Score(value, details)


def _traps(desk: Desk, aims: Floats, books: list[Floats], taken: int, planted: Any) -> dict[str, str]:
    """Of each trap whether its decision went more than half the way from the best book to that of the mistake.

    Only the part along that way counts, measured as losses are, so that other mistakes do not hide this one.
    """
    verdicts: dict[str, str] = {}
    before = [desk.book.holdings, *books]
    for stored in planted:
        trap = Trap(stored["kind"], stored["decision"], np.array(stored["aim"]), stored["cost"])
        place = trap.decision
        policy = desk.policy(place)
        best = policy.best(place, aims[place], before[place])
        apart = fallen_book(desk, trap, before[place]) - best
        way = policy.rules[place].curvature @ apart
        length = float(way @ apart)
        gone = float(way @ (books[place] - best))
        verdict = "unknown" if place >= taken or length <= 0 else "fallen" if 2 * gone > length else "avoided"
        verdicts[f"{trap.kind}@decision_{place + 1}"] = verdict
    return verdicts


def as_orders(desk: Desk, books: list[Floats]) -> dict[str, Any]:
    """The record of an agent that traded to these books."""
    before = [desk.book.holdings, *books[:-1]]
    changes = [after - book for book, after in zip(before, books, strict=True)]
    return {
        "decisions": [{"trades": dict(zip(desk.tickers, change.tolist(), strict=True))} for change in changes],
    }
