"""State of an episode between decisions, orders, and the score of its trades.

The score is `1 - losses of the decisions / losses of the textbook`, floored at 0. Each loss is measured in the book
held at that decision, so a mistake costs once; the textbook's losses are fixed. Losses are not negative, so no score
exceeds 1.
"""

from __future__ import annotations

import base64
import math
import zlib
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Any, NamedTuple, TypedDict

import msgspec
import numpy as np
import polars as pl

from finskillbench.arrays import Floats, Integers
from finskillbench.domains.interactive import InvalidActionError, ToolContract
from finskillbench.domains.tables import EpisodeTable
from finskillbench.episode import JsonObject, Score, Truth, lowest_raw
from finskillbench.scoring.values import as_array, as_number, as_object, is_object
from finskillbench_desk.share import raw_share, share_of_gain
from finskillbench_desk.trade_over_time.optimum import TradingSetup, TradingTrap, fallen_book, from_json, losses
from finskillbench_desk.trade_over_time.world import (
    DECISIONS,
    FACTOR_UNIT,
    LARGEST_TRADE,
    OUTAGE,
    RETURN_UNIT,
    SIGNALS,
    TOLERANCE,
    TradingWorld,
)

_SHOWN = 5
"""Most names or sectors listed in a rejection."""
_NO_TRADE = 1e-6
"""Millions by which the books of a decision without trades may differ."""


def ordered(setup: TradingSetup, decision: int, book: Floats, trades: Mapping[str, Any]) -> Floats:
    """Return the (n,) book after an order in millions by name; missed limits within the tolerance are settled at least
    cost.

    Raises
    ------
    InvalidActionError : an unknown name, an invalid amount, or a limit missed beyond the tolerance.
    """
    places = {ticker: place for place, ticker in enumerate(setup.tickers)}
    change = np.zeros(len(places))
    for ticker, amount in trades.items():
        if ticker not in places:
            raise InvalidActionError(f"{ticker[:20]!r} is not in the book; use names of the table `names`")
        value = as_number(amount)
        if value is None or abs(value) > LARGEST_TRADE:
            raise InvalidActionError(f"{ticker}: a trade is a number of millions, at most {LARGEST_TRADE:g} in size")
        change[places[ticker]] = value
    limits = setup.limits(decision)
    if limits is not None:
        missed = limits.rows @ (book + change) - limits.amounts
        if (worst := np.flatnonzero(np.abs(missed) > TOLERANCE)).size:
            named = ", ".join(f"{setup.sectors[place]} by {missed[place]:+.1f}" for place in worst[:_SHOWN])
            more = "" if worst.size <= _SHOWN else f" and {worst.size - _SHOWN} more"
            raise InvalidActionError(
                f"refused, nothing was traded: every sector must hold its share of the capital within {TOLERANCE:g} "
                f"millions; after these trades they differ: {named}{more}"
            )
    return setup.settled(decision, book + change)


def followed(setup: TradingSetup, record: object) -> tuple[list[Floats], int]:
    """Return the 12 books (n,) after each decision of a record, and the number of valid decisions."""
    books, taken = [setup.book.holdings], 0
    orders = as_array(as_object(record).get("decisions"))[:DECISIONS]
    for place, order in enumerate(orders):
        try:
            books.append(ordered(setup, place, books[-1], as_object(as_object(order).get("trades"))))
        except InvalidActionError:
            break
        taken += 1
    for place in range(taken, DECISIONS):
        books.append(setup.held(place, books[-1]))
    return books[1:], taken


def certified(answer: JsonObject, truth: Truth, task_input: object) -> Score:
    """Score one minus the share of the textbook's loss that the record's decisions lost."""
    del task_input  # the truth contains the setup, so the scorer needs no tables
    known = truth.verification
    setup, aims = from_json(known["desk"]), np.array(known["aims"])
    books, taken = followed(setup, answer.get("record"))
    lost = losses(setup, aims, books)
    textbook = math.fsum(known["textbook_losses"])
    gain = -float(lost.sum()), -textbook, 0.0
    value = share_of_gain(*gain)
    details: dict[str, Any] = {
        "decisions": taken,
        "loss": float(lost.sum()),
        "textbook_loss": textbook,
        "losses": lost.tolist(),
        "traps": _traps(setup, aims, books, taken, known["traps"]),
    }
    return Score(value, details, value or lowest_raw(raw_share(*gain) if taken else None))


def _traps(setup: TradingSetup, aims: Floats, books: list[Floats], taken: int, planted: Any) -> dict[str, str]:
    """Classify the decision of each trap; one that was not taken is "untested"."""
    verdicts: dict[str, str] = {}
    before = [setup.book.holdings, *books]
    for stored in planted:
        trap = TradingTrap(stored["kind"], stored["decision"], np.array(stored["aim"]), stored["cost"])
        place = trap.decision
        verdict = _verdict(setup, aims[place], trap, before[place], books[place]) if place < taken else "untested"
        verdicts[f"{trap.kind}@decision_{place + 1}"] = verdict
    return verdicts


def _verdict(setup: TradingSetup, aim: Floats, trap: TradingTrap, before: Floats, book: Floats) -> str:
    """Classify a decision as "avoided" or "fallen", by the nearer of the best and the mistaken book.

    It is "untested" if it traded nothing, or if holding still is as near to that book. Losses measure distances.
    """
    place = trap.decision
    policy = setup.policy(place)
    best, mistaken = policy.best(place, aim, before), fallen_book(setup, trap, before)
    if np.abs(book - setup.settled(place, before)).max() < _NO_TRADE or policy.loss(place, best, mistaken) <= 0:
        return "untested"
    right, wrong = (policy.loss(place, each, book) for each in (best, mistaken))
    verdict, target = ("avoided", best) if right <= wrong else ("fallen", mistaken)
    return verdict if min(right, wrong) < policy.loss(place, target, setup.held(place, before)) else "untested"


def as_orders(setup: TradingSetup, books: list[Floats]) -> dict[str, Any]:
    """Return the record of an agent that traded to these books."""
    before = [setup.book.holdings, *books[:-1]]
    changes = [after - book for book, after in zip(before, books, strict=True)]
    return {"decisions": [{"trades": dict(zip(setup.tickers, change.tolist(), strict=True))} for change in changes]}


ADVANCE = ToolContract(
    "advance",
    "Place the trades of the current decision and move on to the next week. Returns the next decision, the amount "
    "traded, its cost, and new information: notices, and what the book (`earned`) and its difference from the "
    "benchmark (`earned_active`) earned in the past week, in millions. The fields `state`, `current`, `news` and "
    "`notices` are then those of the new week. "
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
    world: TradingWorld,
    stored_setup: Mapping[str, Any],
    first_day: date,
    dated_notices: Sequence[tuple[int, str]],
    factor_returns: Floats | None = None,
) -> dict[str, Any]:
    """Return the hidden fields of an episode: setup, notices, and future signals and returns."""
    weeks = world.draws.weeks
    return {
        "desk": stored_setup,
        "outage": world.outage,
        "week": weeks + 1,
        "first_day": str(first_day),
        "notices": dated_notices,
        **packed_future(world, factor_returns),
    }


class Future(NamedTuple):
    """Signals (12, n, 30) of the decisions, returns (11, n) that followed, and those of factors (11, f) or None."""

    signals: Integers
    returns: Integers
    factors: Floats | None


_STORED = {"signals": "<i2", "returns": "<i2", "factor_returns": "<i4"}
"""Types of the numbers of a future, as stored."""


def packed_future(world: TradingWorld, factor_returns: Floats | None = None) -> dict[str, str]:
    """Encode future signals and returns, and returns (T, f) of factors if any, as compressed numbers in base 64."""
    weeks = world.draws.weeks
    parts = {"signals": world.draws.signals[weeks:], "returns": world.draws.returns[weeks:-1]}
    if factor_returns is not None:
        parts["factor_returns"] = np.rint(factor_returns[weeks:-1] * FACTOR_UNIT)
    return {
        name: base64.b64encode(zlib.compress(np.ascontiguousarray(part, dtype=_STORED[name]).tobytes(), 6)).decode()
        for name, part in parts.items()
    }


def unpacked_future(stored: JsonObject, setup: TradingSetup) -> Future:
    """Decode `packed_future`.

    Raises
    ------
    ValueError : a text does not decode to exactly these numbers; at most these are decompressed.
    """
    names, factors = len(setup.tickers), None
    if stored.get("factor_returns") is not None:
        factors = _unpacked("factor_returns", stored, (DECISIONS - 1, len(setup.risk.factors))) / FACTOR_UNIT
    signals = _unpacked("signals", stored, (DECISIONS, names, len(SIGNALS)))
    return Future(signals, _unpacked("returns", stored, (DECISIONS - 1, names)), factors)


def _unpacked(name: str, stored: JsonObject, shape: tuple[int, ...]) -> Integers:
    kind, text = np.dtype(_STORED[name]), stored.get(name)
    size = kind.itemsize * math.prod(shape)
    try:
        data = zlib.decompressobj().decompress(base64.b64decode(str(text), validate=True), size + 1)
    except (zlib.error, ValueError):
        raise ValueError(f"{name} is not compressed text in base 64") from None
    if len(data) != size:
        raise ValueError(f"{name} must contain {math.prod(shape):,} numbers")
    return np.frombuffer(data, dtype=kind).reshape(shape)


def open_state(task_input: JsonObject, hidden: JsonObject) -> TradingState:
    """Return the initial state of a case; `msgspec.ValidationError` names the first invalid hidden field."""
    del task_input
    return TradingState(msgspec.convert(hidden, Hidden))


class Hidden(msgspec.Struct, forbid_unknown_fields=True):
    """Stored form of `hidden_of`."""

    desk: Any
    outage: int | None
    week: int
    first_day: date
    notices: tuple[tuple[int, str], ...]
    signals: str
    returns: str
    factor_returns: str | None = None


class Notice(TypedDict):
    """Notice on the day of a decision, counted from 1."""

    decision: int
    text: str


class TradingState:
    """Twelve decisions, one call of `advance` each."""

    def __init__(self, hidden: Hidden) -> None:
        self._setup: TradingSetup = from_json(hidden.desk)
        self._future = unpacked_future({name: getattr(hidden, name) for name in _STORED}, self._setup)
        self._outage = hidden.outage
        self._week = hidden.week
        self._day = hidden.first_day
        self._notices = [Notice(decision=place + 1, text=text) for place, text in hidden.notices]
        self._book: Floats = self._setup.book.holdings
        self._orders: list[dict[str, float]] = []

    @property
    def fields(self) -> Mapping[str, Any]:
        """The week's state, book and signals, and the rows completed since the previous week."""
        place = min(len(self._orders), DECISIONS - 1)
        if not self._orders:
            return {}
        known = [each for each in self._notices if each["decision"] <= place + 1]
        files = fields_at(self._setup, self._day, self._week, place, self._book, self._outage, self._future)
        return {**files, "notices": known}

    @property
    def record(self) -> JsonObject:
        return {"decisions": [{"trades": order} for order in self._orders]}

    def call(self, name: str, arguments: Mapping[str, Any]) -> JsonObject:
        """Execute an order and advance to the next week."""
        if name != ADVANCE.name:
            raise InvalidActionError(f"there is no tool {name[:40]!r}")
        place = len(self._orders)
        if place == DECISIONS:
            raise InvalidActionError("all twelve decisions are taken; submit the answer")
        trades = arguments.get("trades")
        if not is_object(trades):
            raise InvalidActionError("trades must map tickers to millions")
        book = ordered(self._setup, place, self._book, trades)
        traded = book - self._book
        self._orders.append({ticker: float(amount) for ticker, amount in trades.items()})
        self._book = book
        return {
            "decision_taken": place + 1,
            "traded": round(float(np.abs(traded).sum()), 3),
            "cost": round(float(traded**2 @ self._setup.curvature(place)) / 2, 4),
            "next_decision": place + 2 if place + 1 < DECISIONS else None,
            "decisions_left": DECISIONS - place - 1,
            **self._next(place + 1),
        }

    def _next(self, place: int) -> dict[str, Any]:
        """Return the next week, and the book's earnings in the previous one if its file has arrived."""
        if place == DECISIONS:
            return {}
        newest = delivered(place, self._outage)
        week: dict[str, Any] = {"week": self._week + place, "signals_of_week": self._week + newest}
        if texts := [each["text"] for each in self._notices if each["decision"] == place + 1]:
            week["notices"] = texts
        if newest < place:
            return week
        active = self._book - self._setup.benchmark(place - 1)
        earned = self._future.returns[place - 1] / RETURN_UNIT
        return {
            **week,
            "earned": round(float(self._book @ earned), 3),
            "earned_active": round(float(active @ earned), 3),
        }


def delivered(place: int, outage: int | None) -> int:
    """Return the decision with the newest delivered file."""
    return outage - 1 if outage is not None and outage <= place < outage + OUTAGE else place


def fields_at(
    setup: TradingSetup, day: date, week: int, place: int, book: Floats, outage: int | None, future: Future
) -> dict[str, Any]:
    """Return the fields of every decision after the first.

    `news` holds the rows completed since the previous decision: none during an outage, all missed ones after it.
    `news_factors` holds the returns of factors in the same weeks, if the case states them.
    """
    newest, before = delivered(place, outage), delivered(place - 1, outage)
    new, first = slice(before, newest), week + before
    fields: dict[str, Any] = {
        "state": state_of(week, place, newest),
        "current": EpisodeTable(current_frame(setup, book, future.signals[newest])),
        "news": EpisodeTable(panel_frame(setup, day, first, future.signals[new], future.returns[new])),
    }
    if future.factors is not None:
        fields["news_factors"] = EpisodeTable(factor_frame(setup, first, future.factors[new]))
    return fields


def state_of(week: int, place: int, newest: int) -> dict[str, int]:
    """Return the decision, its week, and the week of the signals in `current`."""
    return {"decision": place + 1, "decisions": DECISIONS, "week": week + place, "signals_of_week": week + newest}


def current_frame(setup: TradingSetup, book: Floats, signals: Integers) -> pl.DataFrame:
    """Return the table `current`: holdings in millions before the trades, and the newest signals."""
    return pl.DataFrame(
        {"ticker": list(setup.tickers), "holding": book.round(6)}
        | {name: signals[:, place].astype(np.int16) for place, name in enumerate(SIGNALS)}
    )


def factor_frame(setup: TradingSetup, week: int, returns: Floats) -> pl.DataFrame:
    """Return the returns of factors (T, f) by week, from `week` on."""
    weeks = np.arange(week, week + len(returns), dtype=np.int16)
    return pl.DataFrame({"week": weeks} | dict(zip(setup.risk.factors, returns.T, strict=True)))


def panel_frame(setup: TradingSetup, day: date, week: int, signals: Integers, returns: Integers) -> pl.DataFrame:
    """Return rows of complete weeks from `week` on: signals (T, n, 30) and the returns (T, n) that followed.

    `day` is the first day of week 1, the first of the history.
    """
    tickers, sectors = list(setup.tickers), [setup.sectors[int(place)] for place in setup.sector_of]
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
