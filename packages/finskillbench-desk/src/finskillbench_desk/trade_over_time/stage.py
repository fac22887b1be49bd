"""The state of an episode between its decisions: the book, the files that have come, and the orders so far."""

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
from finskillbench.domains.interactive import StageError, ToolContract
from finskillbench.domains.tables import Table
from finskillbench.episode import JsonObject
from finskillbench.scoring.values import is_object
from finskillbench_desk.trade_over_time.dials import DECISIONS, OUTAGE, RETURN_UNIT
from finskillbench_desk.trade_over_time.merit import ordered
from finskillbench_desk.trade_over_time.optimum import Desk, from_json
from finskillbench_desk.trade_over_time.world import SIGNALS, World

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


def open_stage(task_input: JsonObject, hidden: JsonObject) -> TradingStage:
    """A fresh stage of a case.

    Raises
    ------
    ValueError : naming the first field of `hidden` that is absent or wrong.
    """
    del task_input
    return TradingStage(msgspec.convert(hidden, Hidden))


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


class TradingStage:
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
            raise StageError(f"there is no tool {name[:40]!r}")
        place = len(self._orders)
        if place == DECISIONS:
            raise StageError("all twelve decisions are taken; submit the answer")
        trades = arguments.get("trades")
        if not is_object(trades):
            raise StageError("trades must map tickers to millions")
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
