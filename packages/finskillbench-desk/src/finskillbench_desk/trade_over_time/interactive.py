"""The state of an episode between its decisions: the book, the files that have come, and the orders so far.

What the trades of an episode are worth: orders as the dealers take them, losses, and which traps they fell into.

The score is `1 - what the agent's decisions lost / what the textbook's lost`, floored at 0. Each decision's loss is
taken in the book that the agent had then, so that one slip costs once; the textbook's are fixed by the case, so that
nothing is gained by steering the book anywhere. No loss is negative, hence no score is above 1.
"""

from __future__ import annotations

import base64
import math
import zlib
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Any, TypedDict

import msgspec
import numpy as np
import polars as pl

from finskillbench.arrays import Floats, Integers
from finskillbench.domains.interactive import InvalidActionError, ToolContract
from finskillbench.domains.tables import Table
from finskillbench.episode import JsonObject, Score, Truth
from finskillbench.scoring.values import array, is_object, mapping, number
from finskillbench_desk.share import share
from finskillbench_desk.trade_over_time.optimum import Desk, Trap, fallen_book, from_json, losses
from finskillbench_desk.trade_over_time.world import (
    DECISIONS,
    LARGEST_TRADE,
    OUTAGE,
    RETURN_UNIT,
    SIGNALS,
    TOLERANCE,
    World,
)

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
            raise InvalidActionError(f"{ticker[:20]!r} is not in the book; names are those of the table `names`")
        value = number(amount)
        if value is None or abs(value) > LARGEST_TRADE:
            raise InvalidActionError(f"{ticker}: a trade is a number of millions of size {LARGEST_TRADE:g} at most")
        change[places[ticker]] = value
    limits = desk.limits(decision)
    if limits is not None:
        missed = limits.rows @ (book + change) - limits.amounts
        if (worst := np.flatnonzero(np.abs(missed) > TOLERANCE)).size:
            named = ", ".join(f"{desk.sectors[place]} by {missed[place]:+.1f}" for place in worst[:_SHOWN])
            more = "" if worst.size <= _SHOWN else f" and {worst.size - _SHOWN} more"
            raise InvalidActionError(
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
        except InvalidActionError:
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


ADVANCE = ToolContract(
    "advance",
    "Place the trades of the current decision and move on to the next week. Returns the decision that comes next, what "
    "was traded and at which cost, and what has become known. From then on the fields `state`, `current`, `news` and "
    "`notices` are those of the new week. "
    "An order that breaks a limit or names an unknown company is refused and nothing changes.",
    {
        "type": "object",
        "properties": {
            "trades": {
                "type": "object",
                "description": "Ticker to millions bought (below 0: sold). A name that is left out is not traded.",
                "additionalProperties": {"type": "number"},
            }
        },
        "required": ["trades"],
        "additionalProperties": False,
    },
)


def hidden_of(
    world: World, desk: Mapping[str, Any], first_day: date, said: Sequence[tuple[int, str]]
) -> dict[str, Any]:
    """What only the stage knows: the desk, the notices, and the signals and returns of the weeks to come."""
    weeks = world.draws.weeks
    return {
        "desk": desk,
        "outage": world.outage,
        "week": weeks + 1,
        "first_day": str(first_day),
        "notices": said,
        **packed_future(world),
    }


def packed_future(world: World) -> dict[str, str]:
    """Signals and returns of the weeks of the decisions, as text: compressed 16-bit numbers in base 64."""
    weeks = world.draws.weeks
    parts = {"signals": world.draws.signals[weeks:], "returns": world.draws.returns[weeks:-1]}
    return {
        name: base64.b64encode(zlib.compress(np.ascontiguousarray(part, dtype="<i2").tobytes(), 6)).decode()
        for name, part in parts.items()
    }


def unpacked_future(stored: JsonObject, names: int) -> tuple[Integers, Integers]:
    """Signals (12, n, 30) and returns (11, n) from the text of `packed_future`.

    Raises
    ------
    ValueError : a text that holds other than so many numbers; no more than these are unpacked.
    """
    shapes = {"signals": (DECISIONS, names, len(SIGNALS)), "returns": (DECISIONS - 1, names)}
    signals, returns = (_unpacked(name, stored.get(name), shape) for name, shape in shapes.items())
    return signals, returns


def _unpacked(name: str, text: object, shape: tuple[int, ...]) -> Integers:
    size = 2 * math.prod(shape)
    try:
        data = zlib.decompressobj().decompress(base64.b64decode(str(text), validate=True), size + 1)
    except (zlib.error, ValueError):
        raise ValueError(f"{name} is no compressed text") from None
    if len(data) != size:
        raise ValueError(f"{name} does not hold {math.prod(shape):,} numbers")
    return np.frombuffer(data, dtype="<i2").reshape(shape)


def open_state(task_input: JsonObject, hidden: JsonObject) -> TradingState:
    """A fresh stage of a case.

    Raises
    ------
    ValueError : naming the first field of `hidden` that is absent or wrong.
    """
    del task_input
    return TradingState(msgspec.convert(hidden, Hidden))


class Hidden(msgspec.Struct, forbid_unknown_fields=True):
    """The fields of `hidden_of`, as a file may state them."""

    desk: Any
    outage: int | None
    week: int
    first_day: date
    notices: tuple[tuple[int, str], ...]
    signals: str
    returns: str


class Notice(TypedDict):
    """What became known on the day of a decision, counted from 1."""

    decision: int
    text: str


class TradingState:
    """Twelve decisions, one call of `advance` each."""

    def __init__(self, hidden: Hidden) -> None:
        self._desk: Desk = from_json(hidden.desk)
        future = {"signals": hidden.signals, "returns": hidden.returns}
        self._signals, self._returns = unpacked_future(future, len(self._desk.tickers))
        self._outage = hidden.outage
        self._week = hidden.week
        self._day = hidden.first_day
        self._notices = [Notice(decision=place + 1, text=text) for place, text in hidden.notices]
        self._book: Floats = self._desk.book.holdings
        self._orders: list[dict[str, float]] = []

    @property
    def fields(self) -> Mapping[str, Any]:
        """The week's state, book and signals, and the rows that have been completed since the week before."""
        place = min(len(self._orders), DECISIONS - 1)
        if not self._orders:
            return {}
        files = self._outage, self._signals, self._returns
        known = [each for each in self._notices if each["decision"] <= place + 1]
        return {**fields_at(self._desk, self._day, self._week, place, self._book, *files), "notices": known}

    @property
    def record(self) -> JsonObject:
        """The orders so far."""
        return {"decisions": [{"trades": order} for order in self._orders]}

    def call(self, name: str, arguments: Mapping[str, Any]) -> JsonObject:
        """Trade and move on."""
        if name != ADVANCE.name:
            raise InvalidActionError(f"there is no tool {name[:40]!r}")
        place = len(self._orders)
        if place == DECISIONS:
            raise InvalidActionError("all twelve decisions are taken; submit the answer")
        trades = arguments.get("trades")
        if not is_object(trades):
            raise InvalidActionError("trades must map tickers to millions")
        book = ordered(self._desk, place, self._book, trades)
        traded = book - self._book
        self._orders.append({ticker: float(amount) for ticker, amount in trades.items()})
        self._book = book
        return {
            "decision_taken": place + 1,
            "traded": round(float(np.abs(traded).sum()), 3),
            "cost": round(float(traded**2 @ self._desk.curvature(place)) / 2, 4),
            "next_decision": place + 2 if place + 1 < DECISIONS else None,
            "decisions_left": DECISIONS - place - 1,
            **self._next(place + 1),
        }

    def _next(self, place: int) -> dict[str, Any]:
        """The week that begins, and what the book earned in the one before if its file has come."""
        if place == DECISIONS:
            return {}
        newest = delivered(place, self._outage)
        week: dict[str, Any] = {"week": self._week + place, "signals_of_week": self._week + newest}
        if said := [each["text"] for each in self._notices if each["decision"] == place + 1]:
            week["notices"] = said
        if newest < place:
            return week
        active = self._book - self._desk.benchmark(place - 1)
        earned = self._returns[place - 1] / RETURN_UNIT
        return {
            **week,
            "earned": round(float(self._book @ earned), 3),
            "earned_active": round(float(active @ earned), 3),
        }


def delivered(place: int, outage: int | None) -> int:
    """The decision whose file is the newest that has come."""
    return outage - 1 if outage is not None and outage <= place < outage + OUTAGE else place


def fields_at(
    desk: Desk, day: date, week: int, place: int, book: Floats, outage: int | None, signals: Integers, returns: Integers
) -> dict[str, Any]:
    """The fields of a decision but the first.

    `news` holds the rows completed since the decision before: none while the file is an old one, all that were missed
    once it is new again.
    """
    newest, before = delivered(place, outage), delivered(place - 1, outage)
    return {
        "state": state_of(week, place, newest),
        "current": Table(current_frame(desk, book, signals[newest])),
        "news": Table(panel_frame(desk, day, week + before, signals[before:newest], returns[before:newest])),
    }


def state_of(week: int, place: int, newest: int) -> dict[str, int]:
    """Which decision it is, its week, and the week that the signals in `current` are of."""
    return {"decision": place + 1, "decisions": DECISIONS, "week": week + place, "signals_of_week": week + newest}


def current_frame(desk: Desk, book: Floats, signals: Integers) -> pl.DataFrame:
    """The table `current`: holdings in millions before the trades, and the newest signals."""
    return pl.DataFrame(
        {"ticker": list(desk.tickers), "holding": book.round(6)}
        | {name: signals[:, place].astype(np.int16) for place, name in enumerate(SIGNALS)}
    )


def panel_frame(desk: Desk, day: date, week: int, signals: Integers, returns: Integers) -> pl.DataFrame:
    """Rows of complete weeks, from `week` on: signals (T, n, 30) and the returns (T, n) of the weeks that followed.

    `day` is the first day of the first week of the history, which is week 1.
    """
    tickers, sectors = list(desk.tickers), [desk.sectors[int(place)] for place in desk.sector_of]
    periods, n, count = len(signals), len(tickers), len(SIGNALS)
    flat = signals.reshape(periods * n, count).astype(np.int16)
    dates = [str(day + timedelta(weeks=week - 1 + ahead)) for ahead in range(periods)]
    return pl.DataFrame(
        {
            "week": np.repeat(np.arange(week, week + periods, dtype=np.int16), n),
            "date": [written for written in dates for _ in range(n)],
            "ticker": tickers * periods,
            "sector": sectors * periods,
            **{name: flat[:, place] for place, name in enumerate(SIGNALS)},
            "next_return": returns.reshape(periods * n).astype(np.int16),
        },
        schema_overrides={"date": pl.String, "ticker": pl.String, "sector": pl.String},
    )
