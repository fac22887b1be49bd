"""Drawing a world: see `world` for what it consists of and `dials` for how hard it is.

How programs play an episode: the reference through the primitives, a textbook's answer, and one that falls for all.

Each is a generator of turns, played by the real loop: it sees what the tools return and nothing else.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from finskillbench.arrays import Booleans, Floats, Integers
from finskillbench.domains.interactive import Ask
from finskillbench.episode import JsonObject
from finskillbench_desk.trade_over_time import world
from finskillbench_desk.trade_over_time.rederive import Memo, heard, read_memo
from finskillbench_desk.trade_over_time.world import (
    DECISIONS,
    HALF_LIVES,
    RETURN_UNIT,
    SIGNAL_UNIT,
    SIGNALS,
    STYLES,
    VENDOR_OF,
    VENDORS,
    WEEKS,
    Book,
    Draws,
    News,
    Orderly,
    Plan,
    Risk,
    Signals,
    Tier,
    World,
)

Playing = Generator[tuple[Ask, ...], list[JsonObject], JsonObject]
_SCRIPTS = "signal-trading/scripts"
_NO_COST = 1e6
"""A clip so large that trades cost next to nothing: how a textbook without costs calls the same script."""


@dataclass
class _Plan:
    """What a program makes of the memo and the history; the mistakes are what is left at its default."""

    memo: Memo
    vendors: dict[str, str] = field(default_factory=dict[str, str])
    coefficient: dict[str, float] = field(default_factory=dict[str, float])
    half_lives: dict[str, float] = field(default_factory=dict[str, float])
    horizon: int = DECISIONS
    clip: float = 1.0
    flows: bool = False
    foresight: bool = False
    ages: bool = False
    ends: bool = False
    listens: bool = False

    def hear(self, notices: list[str]) -> bool:
        """Whether notices are heeded, and there are any."""
        if not self.listens or not notices:
            return False
        self.memo = heard(self.memo, notices)
        return True

    def worth(self) -> dict[str, float]:
        """Coefficients, with the chance that an edge holds: that of the memo, or what notices say of its vendor."""
        if not self.ends:
            return self.coefficient
        holds = {vendor: float(found) for vendor, found in self.memo.found.items()}
        return {
            name: worth * holds.get(self.vendors[name], self.memo.holds) for name, worth in self.coefficient.items()
        }

    def target(self, decision: int, age: int) -> Ask:
        """The call for the step of a decision."""
        memo = self.memo
        days = range(decision, min(DECISIONS, decision + self.horizon - 1) + 1)
        limit = max(memo.limit_from - decision + 1, 1)
        binds_now = decision >= memo.limit_from
        return Ask(
            "run_skill_script",
            {
                "script_path": f"{_SCRIPTS}/decay_target.py",
                "input_data": {
                    "coefficient": self.worth(),
                    "half_lives": self.half_lives,
                    "signal_unit": SIGNAL_UNIT,
                    "signals_age": age if self.ages else 0,
                    "aversion": [memo.aversion_at(day) for day in days],
                    # The limit is on the capital of the day, which the order is refused without.
                    "capital": [memo.capital_at(day) if self.flows or binds_now else memo.capital for day in days],
                    "impact_clip": self.clip / memo.tariff,
                    "limit_from": limit if binds_now or (self.foresight and limit <= len(days)) else None,
                },
                "inject_task_fields": ["names", "factors", "current", "signals"],
            },
        )


def _worth(memo: Memo, half_lives: dict[str, float], vendors: dict[str, str], method: str, *, believes: bool) -> Ask:
    """The call that says what the signals are worth."""
    late = (
        {}
        if memo.late is None or believes
        else {name: memo.late[1] for name in vendors if vendors[name] == memo.late[0]}
    )
    return Ask(
        "run_skill_script",
        {
            "script_path": f"{_SCRIPTS}/signal_worth.py",
            "input_data": {
                "method": method,
                "groups": vendors,
                "prior_shape": {name: (1 - 0.5 ** (1 / weeks)) ** 0.5 for name, weeks in half_lives.items()},
                "from_week": late,
                "signal_unit": SIGNAL_UNIT,
                "return_unit": RETURN_UNIT,
            },
            "inject_task_fields": ["history", "signals", "names", "factors"],
        },
    )


def _output(result: JsonObject) -> Any:
    return result["output"]


def _opening() -> Generator[tuple[Ask, ...], list[JsonObject], tuple[Memo, dict[str, str], dict[str, float]]]:
    """Read the memo, who sells what, and the half-lives: those told, the others measured."""
    read = yield (
        Ask("load_skill", {"skill_name": "signal-trading"}),
        Ask("get_task_data", {"field": "memo"}),
        Ask("get_task_data", {"field": "signals"}),
        Ask(
            "run_skill_script",
            {
                "script_path": f"{_SCRIPTS}/signal_decay.py",
                "input_data": {"signal_unit": SIGNAL_UNIT, "return_unit": RETURN_UNIT},
                "inject_task_fields": ["history", "signals"],
            },
        ),
    )
    memo, offers = read_memo(read[1]["value"]), read[2]["value"]
    measured: dict[str, Any] = _output(read[3])["signals"]
    half_lives: dict[str, float] = {}
    for name, offer in offers.items():
        told, shown = offer["half_life"], measured[name]["autocorrelation"]
        nearest = min(HALF_LIVES, key=lambda weeks: abs(0.5 ** (1 / weeks) - shown))
        half_lives[name] = nearest if told is None else told
    return memo, {name: offer["vendor"] for name, offer in offers.items()}, half_lives


def _decide(plan: _Plan) -> Playing:
    """All decisions: an order and the step of the next decision share a turn, unless the file turns out to be old or
    something has become known.
    """
    age = 0
    results = yield (plan.target(1, age),)
    for decision in range(1, DECISIONS + 1):
        order = Ask("advance", {"trades": {name: step for name, step in _output(results[-1])["step"].items() if step}})
        if decision == DECISIONS:
            yield (order,)
            break
        guess = age + 1 if age else 0
        results = yield (order, plan.target(decision + 1, guess))
        moved = results[0]
        age = moved["week"] - moved["signals_of_week"]
        if plan.hear(moved.get("notices", [])) or (age != guess and plan.ages):
            results = yield (plan.target(decision + 1, age),)
    return {"decisions": DECISIONS}


def _reference() -> Playing:
    """Empirical Bayes by vendor, the memo's chance that an edge holds or what is found out of it, then the plan over
    all weeks that are left, with all that memo and notices say.
    """
    memo, vendors, half_lives = yield from _opening()
    results = yield (_worth(memo, half_lives, vendors, "group_variance", believes=False),)
    plan = _Plan(memo, vendors, _output(results[0])["coefficient"], half_lives, clip=memo.clip)
    plan.flows, plan.foresight, plan.ages, plan.ends, plan.listens = True, True, True, True, True
    return (yield from _decide(plan))


def _textbook() -> Playing:
    """Least squares on the history as it is, and all the way to the best of one week."""
    memo, vendors, half_lives = yield from _opening()
    results = yield (_worth(memo, half_lives, vendors, "least_squares", believes=True),)
    coefficient = _output(results[0])["coefficient"]
    plan = _Plan(memo, vendors, coefficient, half_lives, horizon=1, clip=_NO_COST, flows=True)
    return (yield from _decide(plan))


def _trapped() -> Playing:
    """As the reference, but every trap is fallen for.

    What was filled in afterwards is believed and worthless signals are trusted, edges are taken to hold, impacts are
    taken for those of one million and old files for new ones, flows and notices are not heeded, and the limit only once
    it binds.
    """
    memo, vendors, half_lives = yield from _opening()
    results = yield (_worth(memo, half_lives, vendors, "least_squares", believes=True),)
    return (yield from _decide(_Plan(memo, vendors, _output(results[0])["coefficient"], half_lives)))


PROCEDURES = {"reference": _reference, "textbook": _textbook, "trapped": _trapped}


_MARKET, _SECTOR, _STYLE = 0.020, 0.008, 0.007
"""Weekly standard deviations of the factors."""
_SPECIFIC = 0.025, 0.048
_CLIPS = 1.0, 0.4, 0.5
"""Sizes of a trade, in millions, that the table of impacts may be stated for; the first is what one takes it for."""


def draw(tickers: Sequence[str], sector_of: Sequence[str], tier: Tier, rng: np.random.Generator) -> World:
    """A world of a tier for named companies and their sectors."""
    sectors = tuple(sorted(set(sector_of)))
    places = np.array([sectors.index(sector) for sector in sector_of])
    risk = _risk(places, sectors, rng)
    book = _book(places, rng)
    plan = _plan(tier, rng)
    vendors = rng.permutation(len(VENDORS))
    late = rng.random() < 2 / 3
    signals = _signals(tier, vendors, late, rng)
    outage = int(rng.integers(2, DECISIONS - world.OUTAGE)) if rng.random() < 2 / 3 else None
    edges = _edges(tier, signals.decay, rng)
    news, calm = _news(edges, rng)
    free = [place for place in range(2, DECISIONS) if place not in plan.flows]
    withdrawn = (int(rng.choice(free)), _flow(rng)) if rng.random() < 1 / 3 else None
    orderly = Orderly(None if late else int(vendors[0]), withdrawn, calm)
    draws = _draws(risk, signals, edges, places, rng)
    return World(tier, tuple(tickers), sectors, places, risk, book, plan, signals, draws, news, outage, orderly)


def _risk(places: Integers, sectors: Sequence[str], rng: np.random.Generator) -> Risk:
    n = len(places)
    styles = rng.normal(size=(n, len(STYLES))).round(2)
    exposures = np.column_stack([rng.normal(1.0, 0.2, n).round(2), np.eye(len(sectors))[places], styles])
    levels = np.array([_MARKET, *[_SECTOR] * len(sectors), *[_STYLE] * len(STYLES)])
    volatility = (levels * rng.uniform(0.85, 1.15, len(levels))).round(5)
    return Risk(("market", *sectors, *STYLES), exposures, volatility, rng.uniform(*_SPECIFIC, n).round(5))


def _book(places: Integers, rng: np.random.Generator) -> Book:
    n, members = len(places), np.bincount(places)
    size = np.exp(rng.normal(0.0, 0.7, n))
    benchmark = (size / size.sum()).round(5)
    benchmark[benchmark.argmax()] += 1 - benchmark.sum()
    benchmark = benchmark.round(5)
    tilt = rng.normal(0.0, world.SECTOR_TILT, len(members))
    active = (tilt / members)[places] + rng.normal(0.0, world.NAME_TILT, n)
    holdings = (world.CAPITAL * benchmark + active - active.mean()).round(1)
    clip = float(rng.choice(_CLIPS))
    impact = world.IMPACT * clip / 5 * np.sqrt(1 / n / benchmark) * np.exp(rng.normal(0.0, 0.25, n))
    return Book(benchmark, holdings, impact.round(4), clip)


def _flow(rng: np.random.Generator) -> float:
    """Millions of a flow; redemptions are the more frequent."""
    sign = rng.choice([-1.0, -1.0, 1.0])
    return float(round(sign * rng.uniform(*world.FLOW) * world.CAPITAL, -1))


def _plan(tier: Tier, rng: np.random.Generator) -> Plan:
    limit_from = int(rng.integers(5, 8))
    capital = np.full(DECISIONS, world.CAPITAL)
    for first, last in ((2, limit_from), (limit_from + 1, DECISIONS - 1)):
        capital[int(rng.integers(first, last)) :] += _flow(rng)
    aversion = np.full(DECISIONS, world.AVERSION)
    aversion[limit_from:] *= tier.tightens
    return Plan(capital, aversion, limit_from)


def _signals(tier: Tier, vendors: Integers, late: bool, rng: np.random.Generator) -> Signals:
    """What the vendors sell: the first came late, the last resell what others make."""
    half_life = rng.choice(world.HALF_LIVES, size=len(SIGNALS))
    copied = np.full(len(SIGNALS), -1)
    for seller in range(tier.copies):
        at = np.flatnonzero(vendors[-1 - seller] == VENDOR_OF)
        copied[at] = np.flatnonzero(vendors[1 + seller] == VENDOR_OF)
        half_life[at] = half_life[copied[at]]
    live_from = np.zeros(len(SIGNALS), dtype=np.int64)
    if late:
        first, last = (round(share * WEEKS) for share in world.BACKFILL_WEEKS)
        live_from[vendors[0] == VENDOR_OF] = int(rng.integers(first, last))
    told = np.isin(VENDOR_OF, rng.permutation(len(VENDORS))[: tier.told])
    return Signals(half_life, told, live_from, copied)


@dataclass(frozen=True, slots=True, eq=False)
class Edges:
    """The truth that nobody sees: `worth` (30,) of a signal of one while an edge holds, in units of the name's specific
    risk; `holds` (10,) whether a vendor's edge holds to this day, `end` (10,) the week with whose end it ended else.
    """

    worth: Floats
    holds: Booleans
    end: Integers

    def alive(self, weeks: int) -> Booleans:
        """(weeks, 30) whether the edge of a signal's vendor holds in a week, counted from 0."""
        return (self.holds | (np.arange(weeks)[:, None] < self.end))[:, VENDOR_OF]

    @property
    def today(self) -> Floats:
        """(30,) what signals are worth at the decisions."""
        return self.worth * self.holds[VENDOR_OF]


def _edges(tier: Tier, decay: Floats, rng: np.random.Generator) -> Edges:
    sound = rng.permutation(len(VENDORS))[: rng.choice(world.SOUND)]
    deviation = float(rng.choice(tier.strengths)) * np.sqrt(1 - decay)
    worth = rng.normal(0.0, deviation) * np.isin(VENDOR_OF, sound)
    return Edges(worth, rng.random(len(VENDORS)) < world.HOLDS, rng.choice(world.ENDS, len(VENDORS)))


def _news(edges: Edges, rng: np.random.Generator) -> tuple[News, int | None]:
    """What is said on the day, and where a tariff is spoken of that is not this book's."""
    audited = sorted(rng.permutation(len(VENDORS))[: world.AUDITED].tolist())
    verdicts = {vendor: bool(edges.today[vendor == VENDOR_OF].any()) for vendor in audited}
    audit, day = int(rng.integers(*world.AUDIT)), int(rng.integers(*world.TARIFF))
    changes = rng.random() < 2 / 3
    tariff = (day, float(rng.choice(world.TARIFFS))) if changes else None
    return News(audit, verdicts, tariff), None if changes else day


def _draws(risk: Risk, signals: Signals, edges: Edges, places: Integers, rng: np.random.Generator) -> Draws:
    weeks, n, count = WEEKS + DECISIONS, len(places), len(SIGNALS)
    common = rng.standard_normal((weeks, len(risk.factors), count), dtype=np.float32)[:, places]
    shocks = rng.standard_normal((weeks, n, count), dtype=np.float32)
    shocks *= np.sqrt(1 - world.SECTOR_SHARE)
    shocks += np.sqrt(world.SECTOR_SHARE) * common
    copies = np.flatnonzero(signals.copied >= 0)
    shocks[:, :, copies] *= np.sqrt(1 - world.COPY**2)
    shocks[:, :, copies] += world.COPY * shocks[:, :, signals.copied[copies]]
    decay = signals.decay
    shocks[1:] *= np.sqrt(1 - decay**2)
    stored = np.empty((weeks, n, count), dtype=np.int16)
    before = np.zeros((n, count))
    for week in range(weeks):
        before = np.rint(decay * before + world.SIGNAL_UNIT * shocks[week])
        stored[week] = before
    factors = rng.standard_normal((weeks, len(risk.factors))) * risk.volatility
    alive = edges.alive(weeks) & (np.arange(weeks)[:, None] >= signals.live_from)
    worth = edges.worth * alive / world.SIGNAL_UNIT
    specific = rng.standard_normal((weeks, n)) + np.matmul(stored, worth[:, :, None])[:, :, 0]
    moves = factors @ risk.exposures.T + specific * risk.specific
    returns = np.rint(world.RETURN_UNIT * moves).clip(-32_000, 32_000).astype(np.int16)
    _backfill(stored, returns, signals, risk, places, rng)
    return Draws(stored, returns)


def _backfill(
    stored: Integers, returns: Integers, signals: Signals, risk: Risk, places: Integers, rng: np.random.Generator
) -> None:
    """Write into what a vendor filled in afterwards what it knew by then: the returns that had followed.

    Without that it is a series that had no part in returns. What is added is a function of returns, so that given the
    returns nothing of this says anything of the coefficients.
    """
    late = np.flatnonzero(signals.live_from)
    if not len(late):
        return
    weeks = int(signals.live_from[late[0]])
    members = np.bincount(places)
    known = returns[:weeks] / world.RETURN_UNIT
    relative = (known - (known @ np.eye(len(members))[places] / members)[:, places]) / risk.specific
    share = rng.uniform(*world.BACKFILL, len(late)) * rng.choice([-1.0, 1.0], len(late))
    hints = np.rint(world.SIGNAL_UNIT * relative[:, :, None] * share)
    stored[:weeks, :, late] += hints.astype(stored.dtype)
