"""Drawing of trading worlds, and baseline programs (reference, textbook, trapped) as generators of tool calls."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from finskillbench.arrays import Booleans, Floats, Integers
from finskillbench.domains.interactive import ProcedureCall
from finskillbench.episode import JsonObject
from finskillbench_desk.trade_over_time import world
from finskillbench_desk.trade_over_time.rederive import Memo, apply_notices, memo_of
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
    Draws,
    News,
    Signals,
    TradingBook,
    TradingControls,
    TradingPlan,
    TradingTier,
    TradingWorld,
    WeeklyRiskModel,
)

Playing = Generator[tuple[ProcedureCall, ...], list[JsonObject], JsonObject]
_SCRIPTS = "signal-trading/scripts"
_NO_COST = 1e6
"""A trade size at which costs vanish, for a textbook without costs."""


@dataclass
class _Plan:
    """Inputs of a program's decisions; the defaults are the mistakes of the trapped program."""

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
    heeds_notices: bool = False

    def apply_notices(self, notices: list[str]) -> bool:
        """Apply notices to the memo; return False if there are none or they are ignored."""
        if not self.heeds_notices or not notices:
            return False
        self.memo = apply_notices(self.memo, notices)
        return True

    def worth(self) -> dict[str, float]:
        """Return coefficients times the probability, by memo or notices, that the vendor's edge holds."""
        if not self.ends:
            return self.coefficient
        holds = {vendor: float(found) for vendor, found in self.memo.found.items()}
        return {
            name: worth * holds.get(self.vendors[name], self.memo.holds) for name, worth in self.coefficient.items()
        }

    def target(self, decision: int, age: int) -> ProcedureCall:
        """Return the script call for the step of a decision."""
        memo = self.memo
        days = range(decision, min(DECISIONS, decision + self.horizon - 1) + 1)
        limit = max(memo.limit_from - decision + 1, 1)
        binds_now = decision >= memo.limit_from
        return ProcedureCall(
            "run_skill_script",
            {
                "script_path": f"{_SCRIPTS}/decay_target.py",
                "input_data": {
                    "coefficient": self.worth(),
                    "half_lives": self.half_lives,
                    "signal_unit": SIGNAL_UNIT,
                    "signals_age": age if self.ages else 0,
                    "aversion": [memo.aversion_at(day) for day in days],
                    # The limit refers to the day's capital; other orders are rejected.
                    "capital": [memo.capital_at(day) if self.flows or binds_now else memo.capital for day in days],
                    "impact_clip": self.clip / memo.tariff,
                    "limit_from": limit if binds_now or (self.foresight and limit <= len(days)) else None,
                },
                "inject_task_fields": ["names", "factors", "current", "signals"],
            },
        )


def _worth(
    memo: Memo, half_lives: dict[str, float], vendors: dict[str, str], method: str, *, believes: bool
) -> ProcedureCall:
    """Return the script call that estimates the signals' coefficients."""
    late = (
        {}
        if memo.late is None or believes
        else {name: memo.late[1] for name in vendors if vendors[name] == memo.late[0]}
    )
    return ProcedureCall(
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


def _opening() -> Generator[tuple[ProcedureCall, ...], list[JsonObject], tuple[Memo, dict[str, str], dict[str, float]]]:
    """Read the memo, the vendors and the half-lives, and measure undisclosed half-lives."""
    read = yield (
        ProcedureCall("load_skill", {"skill_name": "signal-trading"}),
        ProcedureCall("get_task_data", {"field": "memo"}),
        ProcedureCall("get_task_data", {"field": "signals"}),
        ProcedureCall(
            "run_skill_script",
            {
                "script_path": f"{_SCRIPTS}/signal_decay.py",
                "input_data": {"signal_unit": SIGNAL_UNIT, "return_unit": RETURN_UNIT},
                "inject_task_fields": ["history", "signals"],
            },
        ),
    )
    offers = read[2]["value"]
    memo = memo_of(read[1]["value"], offers)
    measured: dict[str, Any] = _output(read[3])["signals"]
    half_lives: dict[str, float] = {}
    for name, offer in offers.items():
        disclosed, shown = offer.get("half_life"), measured[name]["autocorrelation"]
        nearest = min(HALF_LIVES, key=lambda weeks: abs(0.5 ** (1 / weeks) - shown))
        found = nearest if memo.strengths else measured[name]["half_life"]
        half_lives[name] = found if disclosed is None else disclosed
    return memo, {name: offer["vendor"] for name, offer in offers.items()}, half_lives


def _decide(plan: _Plan) -> Playing:
    """Make all decisions, requesting each step together with the previous order.

    A step is requested again if the signal file is old or a notice has arrived.
    """
    age = 0
    results = yield (plan.target(1, age),)
    for decision in range(1, DECISIONS + 1):
        order = ProcedureCall(
            "advance", {"trades": {name: step for name, step in _output(results[-1])["step"].items() if step}}
        )
        if decision == DECISIONS:
            yield (order,)
            break
        guess = age + 1 if age else 0
        results = yield (order, plan.target(decision + 1, guess))
        moved = results[0]
        age = moved["week"] - moved["signals_of_week"]
        if plan.apply_notices(moved.get("notices", [])) or (age != guess and plan.ages):
            results = yield (plan.target(decision + 1, age),)
    return {"decisions": DECISIONS}


def _reference() -> Playing:
    """Use empirical Bayes by vendor, the probability that an edge holds, and a plan over all remaining weeks."""
    memo, vendors, half_lives = yield from _opening()
    results = yield (_worth(memo, half_lives, vendors, "group_variance", believes=False),)
    plan = _Plan(memo, vendors, _output(results[0])["coefficient"], half_lives, clip=memo.clip)
    plan.flows, plan.foresight, plan.ages, plan.ends, plan.heeds_notices = True, True, True, True, True
    return (yield from _decide(plan))


def _textbook() -> Playing:
    """Use least squares on the raw history, and trade to the optimum of a single week."""
    memo, vendors, half_lives = yield from _opening()
    results = yield (_worth(memo, half_lives, vendors, "least_squares", believes=True),)
    coefficient = _output(results[0])["coefficient"]
    plan = _Plan(memo, vendors, coefficient, half_lives, horizon=1, clip=_NO_COST, flows=True)
    return (yield from _decide(plan))


def _trapped() -> Playing:
    """Run the reference with every mistake.

    It trusts backfilled history and lasting edges, uses least squares, misreads impacts, and ignores file dates, flows,
    notices and future limits.
    """
    memo, vendors, half_lives = yield from _opening()
    results = yield (_worth(memo, half_lives, vendors, "least_squares", believes=True),)
    return (yield from _decide(_Plan(memo, vendors, _output(results[0])["coefficient"], half_lives)))


PROCEDURES = {"reference": _reference, "textbook": _textbook, "trapped": _trapped}


_MARKET, _SECTOR, _STYLE = 0.020, 0.008, 0.007
"""Weekly standard deviations of the factors."""
_SPECIFIC = 0.025, 0.048
_CLIPS = 1.0, 0.4, 0.5
"""Possible trade sizes, in millions, of the impact table; a careless reader assumes the first."""


def draw_trading_world(
    tickers: Sequence[str], sector_of: Sequence[str], tier: TradingTier, rng: np.random.Generator
) -> TradingWorld:
    """Draw a world of a tier for given companies and sectors."""
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
    controls = TradingControls(None if late else int(vendors[0]), withdrawn, calm)
    draws = _draws(risk, signals, edges, places, rng)
    return TradingWorld(tier, tuple(tickers), sectors, places, risk, book, plan, signals, draws, news, outage, controls)


def _risk(places: Integers, sectors: Sequence[str], rng: np.random.Generator) -> WeeklyRiskModel:
    n = len(places)
    styles = rng.normal(size=(n, len(STYLES))).round(2)
    exposures = np.column_stack([rng.normal(1.0, 0.2, n).round(2), np.eye(len(sectors))[places], styles])
    levels = np.array([_MARKET, *[_SECTOR] * len(sectors), *[_STYLE] * len(STYLES)])
    volatility = (levels * rng.uniform(0.85, 1.15, len(levels))).round(5)
    return WeeklyRiskModel(("market", *sectors, *STYLES), exposures, volatility, rng.uniform(*_SPECIFIC, n).round(5))


def _book(places: Integers, rng: np.random.Generator) -> TradingBook:
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
    return TradingBook(benchmark, holdings, impact.round(4), clip)


def _flow(rng: np.random.Generator) -> float:
    """Draw a flow in millions; redemptions are twice as frequent as subscriptions."""
    sign = rng.choice([-1.0, -1.0, 1.0])
    return float(round(sign * rng.uniform(*world.FLOW) * world.CAPITAL, -1))


def _plan(tier: TradingTier, rng: np.random.Generator) -> TradingPlan:
    limit_from = int(rng.integers(5, 8))
    capital = np.full(DECISIONS, world.CAPITAL)
    for first, last in ((2, limit_from), (limit_from + 1, DECISIONS - 1)):
        capital[int(rng.integers(first, last)) :] += _flow(rng)
    aversion = np.full(DECISIONS, world.AVERSION)
    aversion[limit_from:] *= tier.tightens
    return TradingPlan(capital, aversion, limit_from)


def _signals(tier: TradingTier, vendors: Integers, late: bool, rng: np.random.Generator) -> Signals:
    """Draw the vendors' offers: the first vendor may be late, the last ones resell others' signals."""
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
    disclosed = np.isin(VENDOR_OF, rng.permutation(len(VENDORS))[: tier.disclosed])
    return Signals(half_life, disclosed, live_from, copied)


@dataclass(frozen=True, slots=True, eq=False)
class Edges:
    """Hidden edges: `worth` (30,) of a unit signal while its edge holds, in units of specific risk.

    `holds` (10,) marks vendors with an edge today, `end` (10,) is the last week of other edges.
    """

    worth: Floats
    holds: Booleans
    end: Integers

    def alive(self, weeks: int) -> Booleans:
        """Return (weeks, 30) True where the edge of a signal's vendor holds, weeks from 0."""
        return (self.holds | (np.arange(weeks)[:, None] < self.end))[:, VENDOR_OF]

    @property
    def today(self) -> Floats:
        """(30,) worth of the signals at the decisions."""
        return self.worth * self.holds[VENDOR_OF]


def _edges(tier: TradingTier, decay: Floats, rng: np.random.Generator) -> Edges:
    sound = rng.permutation(len(VENDORS))[: rng.choice(world.SOUND)]
    deviation = float(rng.choice(tier.strengths)) * np.sqrt(1 - decay)
    worth = rng.normal(0.0, deviation) * np.isin(VENDOR_OF, sound)
    return Edges(worth, rng.random(len(VENDORS)) < world.HOLDS, rng.choice(world.ENDS, len(VENDORS)))


def _news(edges: Edges, rng: np.random.Generator) -> tuple[News, int | None]:
    """Draw the findings and tariff notices, and the day of a notice about another tariff."""
    audited = sorted(rng.permutation(len(VENDORS))[: world.AUDITED].tolist())
    verdicts = {vendor: bool(edges.today[vendor == VENDOR_OF].any()) for vendor in audited}
    audit, day = int(rng.integers(*world.AUDIT)), int(rng.integers(*world.TARIFF))
    changes = rng.random() < 2 / 3
    tariff = (day, float(rng.choice(world.TARIFFS))) if changes else None
    return News(audit, verdicts, tariff), None if changes else day


def _draws(risk: WeeklyRiskModel, signals: Signals, edges: Edges, places: Integers, rng: np.random.Generator) -> Draws:
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
    stored: Integers,
    returns: Integers,
    signals: Signals,
    risk: WeeklyRiskModel,
    places: Integers,
    rng: np.random.Generator,
) -> None:
    """Add part of the returns that followed to values that a vendor backfilled, in place.

    The addition depends on returns only, so given the returns it carries no information about the coefficients.
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
