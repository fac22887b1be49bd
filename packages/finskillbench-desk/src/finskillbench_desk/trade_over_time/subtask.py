"""Trading over time: twelve decisions in one episode, on signals that decay, with costs that grow with the trade.

A decision is scored by its loss against the best expectation at that time, in the book held then (see `interactive`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from typing import Any, NamedTuple, NotRequired, TypedDict

import numpy as np
import polars as pl
from pydantic import Field

from finskillbench.domains.base import Answer, Baselines, Naive, Subtask, Verification
from finskillbench.domains.building import BuildContext, BuiltTask
from finskillbench.domains.examples import Examples
from finskillbench.domains.interactive import EpisodeBudget, InteractiveCase
from finskillbench.domains.tables import TableReference, reference
from finskillbench.episode import Episode, JsonObject, Profile, Truth
from finskillbench_desk.disclosure import PlannedCase, plan, structure_of
from finskillbench_desk.market import ListedName
from finskillbench_desk.trade_over_time.examples import exploits, graded_examples
from finskillbench_desk.trade_over_time.generate import PROCEDURES, draw_trading_world
from finskillbench_desk.trade_over_time.interactive import (
    ADVANCE,
    Notice,
    as_orders,
    certified,
    current_frame,
    factor_frame,
    hidden_of,
    open_state,
    packed_future,
    panel_frame,
    state_of,
)
from finskillbench_desk.trade_over_time.law_optimum import draw_law_case
from finskillbench_desk.trade_over_time.law_prompts import LAW_PROMPT, law_memo
from finskillbench_desk.trade_over_time.law_world import LawWorld
from finskillbench_desk.trade_over_time.laws import STRUCTURES, law_json
from finskillbench_desk.trade_over_time.optimum import Optimum, TradingSetup, as_json, optimal_path, solved
from finskillbench_desk.trade_over_time.posterior import Stretches, history_sums, posterior_means
from finskillbench_desk.trade_over_time.prompts import PROMPT, notices, trading_memo
from finskillbench_desk.trade_over_time.proof import proof
from finskillbench_desk.trade_over_time.world import (
    DECISIONS,
    LEAST_WORTH,
    SIGNALS,
    STYLES,
    TIERS,
    VENDOR_OF,
    VENDORS,
    TradingWorld,
)

NAME = "trade_over_time"
SKILL = "desk"
EPISODES = 40
METHOD = "regret of each decision against the certified optimal policy"


class Offer(TypedDict):
    """Vendor of a signal; its half-life in weeks if disclosed, or the first week of live delivery."""

    vendor: str
    half_life: NotRequired[int | None]
    since: NotRequired[int]


class _State(TypedDict):
    """The decision, its week, and the week of the signals shown."""

    decision: int
    decisions: int
    week: int
    signals_of_week: int


class TradingInput(TypedDict):
    """Task input; `notices`, `state`, `current`, `news` and `news_factors` change with each decision.

    Returns of factors are stated only in cases whose law is not disclosed.
    """

    memo: str
    notices: list[Notice]
    state: _State
    signals: dict[str, Offer]
    factors: dict[str, float]
    names: TableReference
    history: TableReference
    current: TableReference
    news: TableReference
    factor_returns: NotRequired[TableReference]
    news_factors: NotRequired[TableReference]


class Trading(Answer):
    """Answer: ends the episode; the trades are those of the calls of `advance`."""

    decisions: int = Field(description="Number of decisions taken: the calls of `advance` that were not refused.")


def _build(context: BuildContext, market: tuple[ListedName, ...]) -> Iterator[BuiltTask]:
    """Yield forty cases, as planned for the disclosure of the build; none if the market is not synthetic."""
    if not context.synthetic:
        return
    days = context.panels.month_ends
    for planned in plan(context, EPISODES, STRUCTURES, TIERS):
        rng = context.generator(SKILL, NAME, planned.number)
        if planned.structure is None:
            yield trading_task(rng, market, planned.tier, planned.number, days)
        else:
            yield law_task(rng, market, planned, days)


def draw_informative_world(
    rng: np.random.Generator, market: Sequence[ListedName], tier: str
) -> tuple[TradingWorld, Stretches]:
    """Draw worlds until enough can be known at the first decision; also return the sums of the history."""
    tickers, industries = [each.symbol for each in market], [each.industry for each in market]
    while True:
        world = draw_trading_world(tickers, industries, TIERS[tier], rng)
        known, decay = history_sums(world), world.signals.decay
        if np.linalg.norm(posterior_means(known, world.tier, decay, {}) / np.sqrt(1 - decay)) >= LEAST_WORTH:
            return world, known


def trading_task(
    rng: np.random.Generator, market: Sequence[ListedName], tier: str, number: int, days: Sequence[date]
) -> BuiltTask:
    """Build one case whose memo states the law: world, texts, tables and optimum."""
    world, known = draw_informative_world(rng, market, tier)
    optimum = solved(world, known)
    day = days[int(rng.integers(len(days)))]
    memo, dated = trading_memo(world, rng), notices(world, rng)
    offers: dict[str, Offer] = {
        name: {
            "vendor": tuple(VENDORS)[VENDOR_OF[place]],
            "half_life": int(world.signals.half_life[place]) if world.signals.disclosed[place] else None,
        }
        for place, name in enumerate(SIGNALS)
    }
    task_id = f"{PREFIX}_{day}_{tier}_{number:02d}"
    return _built(_Drawn(task_id, day, {"tier": tier, "number": number}, world, optimum, memo, dated, offers))


def law_task(
    rng: np.random.Generator, market: Sequence[ListedName], planned: PlannedCase, days: Sequence[date]
) -> BuiltTask:
    """Build one case whose law is drawn and not disclosed."""
    assert planned.structure is not None
    assert planned.disclosure != "full"
    case, optimum = draw_law_case(rng, market, planned.structure, planned.tier)
    world, day = case.world, days[int(rng.integers(len(days)))]
    memo, dated = law_memo(case, planned.disclosure), notices(world, rng)
    offers: dict[str, Offer] = {
        name: {"vendor": tuple(VENDORS)[VENDOR_OF[place]], "since": int(world.signals.live_from[place]) + 1}
        for place, name in enumerate(SIGNALS)
    }
    task_id = f"{PREFIX}_{day}_{planned.number:02d}_{planned.disclosure}"
    metadata = {"tier": planned.tier, "number": planned.number, "disclosure": planned.disclosure}
    drawn = _Drawn(task_id, day, metadata, world, optimum, memo, dated, offers, case, planned.structure)
    return _built(drawn)


class _Drawn(NamedTuple):
    """A drawn case with its texts; `case` and `structure` only if its law is not disclosed."""

    task_id: str
    day: date
    metadata: dict[str, Any]
    world: TradingWorld
    optimum: Optimum
    memo: str
    notices: list[tuple[int, str]]
    offers: dict[str, Offer]
    case: LawWorld | None = None
    structure: str = ""


def _built(drawn: _Drawn) -> BuiltTask:
    world, optimum, task_id = drawn.world, drawn.optimum, drawn.task_id
    setup, weeks = TradingSetup.of(world), world.draws.weeks
    first_day = drawn.day - timedelta(weeks=weeks)
    tables = trading_tables(world, setup, first_day)
    if drawn.case is not None:
        tables["factor_returns"] = factor_frame(setup, 1, drawn.case.factor_returns[:weeks])
        tables["news_factors"] = tables["factor_returns"].clear()
    task_input: dict[str, Any] = {
        "memo": drawn.memo,
        "notices": [],
        "state": state_of(weeks + 1, 0, 0),
        "signals": drawn.offers,
        "factors": dict(zip(world.risk.factors, world.risk.volatility.tolist(), strict=True)),
        **{name: reference(task_id, name, table) for name, table in tables.items()},
    }
    stored = as_json(setup)
    verification: dict[str, Any] = {
        "desk": stored,
        "aims": optimum.aims.tolist(),
        "textbook_losses": optimum.textbook.tolist(),
        "traps": [
            {"kind": each.kind, "decision": each.decision, "aim": each.aim.tolist(), "cost": float(each.cost)}
            for each in optimum.traps
        ],
        "law": None if drawn.case is None else law_json(drawn.case.law),
    }
    certificate: dict[str, Any] = {"outage": world.outage, "notices": drawn.notices}
    factor_returns = None
    if drawn.case is None:
        certificate["worth"] = optimum.worth.tolist()
    else:
        factor_returns = drawn.case.factor_returns
        certificate |= {
            "structure": drawn.structure,
            "law": verification["law"],
            "half_lives": world.signals.half_life.tolist(),
        }
    certificate |= packed_future(world, factor_returns)
    record = as_orders(setup, optimal_path(setup, optimum.aims))
    truth = Truth(task_id, NAME, {"decisions": DECISIONS, "record": record}, verification, _summary(optimum))
    tier, prompt = drawn.metadata["tier"], PROMPT if drawn.case is None else LAW_PROMPT
    episode = Episode(task_id, SKILL, NAME, drawn.day, tier, task_input, prompt, drawn.metadata)
    hidden = hidden_of(world, stored, first_day, drawn.notices, factor_returns)
    return BuiltTask(episode, truth, certificate, tables, hidden)


def trading_tables(world: TradingWorld, setup: TradingSetup, first_day: date) -> dict[str, pl.DataFrame]:
    """Return the tables of a case at the first decision; `news` is empty."""
    weeks = world.draws.weeks
    styles = {name: world.risk.exposures[:, place - len(STYLES)] for place, name in enumerate(STYLES)}
    names = pl.DataFrame(
        {"ticker": list(world.tickers), "sector": [world.sectors[int(place)] for place in world.sector_of]}
    ).with_columns(
        benchmark_weight=world.book.benchmark,
        impact=world.book.impact,
        specific_volatility=world.risk.specific,
        market_beta=world.risk.exposures[:, 0],
        **styles,
    )
    return {
        "names": names,
        "history": panel_frame(setup, first_day, 1, world.draws.signals[:weeks], world.draws.returns[:weeks]),
        "current": current_frame(setup, setup.book.holdings, world.draws.signals[weeks]),
        "news": panel_frame(setup, first_day, 1, world.draws.signals[:0], world.draws.returns[:0]),
    }


def _summary(optimum: Optimum) -> dict[str, Any]:
    return {
        "kind": "optimal policy",
        "textbook": optimum.textbook_name,
        "textbook_loss": float(optimum.textbook.sum()),
        **({"largest_coefficient": float(np.abs(optimum.worth).max())} if optimum.worth.size else {}),
        "traps": len(optimum.traps),
    }


def hold_still(data: JsonObject) -> JsonObject:
    """Return no decisions."""
    del data
    return {"decisions": 0}


PREFIX = "dk_tt"
SUBTASK: Subtask[Any, tuple[ListedName, ...]] = Subtask(
    name=NAME,
    prefix=PREFIX,
    input=TradingInput,
    answer=Trading,
    template_of=structure_of,
    build=_build,
    proof=proof,
    scorers={Profile.STRICT: certified, Profile.CERTIFIED: certified},
    verification=Verification(
        method=METHOD,
        parameters={"ground_truth_source": "linear-quadratic control under the exact posterior"},
        proved=("desk", "aims", "textbook_losses", "traps", "law"),
    ),
    baselines=Baselines(no_skill=Naive((), hold_still), trivial=Naive((), hold_still), ceiling=0.75),
    examples=Examples(graded=graded_examples, exploits=exploits),
    interactive=InteractiveCase(
        budget=EpisodeBudget(turns=24, output_tokens=80_000, data_calls=30),
        procedures=PROCEDURES,
        tools=(ADVANCE,),
        open_state=open_state,
        filled=("notices",),
    ),
)
