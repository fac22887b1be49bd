"""Trading over time: twelve decisions in one episode, on signals that decay, with costs that grow with the trade.

A decision is scored by its loss against the best expectation at that time, in the book held then (see `interactive`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from typing import Any, TypedDict

import numpy as np
import polars as pl
from pydantic import Field

from finskillbench.arrays import Floats
from finskillbench.domains.base import Answer, Baselines, Naive, Subtask, Verification
from finskillbench.domains.building import BuildContext, BuiltTask
from finskillbench.domains.examples import Label
from finskillbench.domains.interactive import EpisodeBudget, InteractiveCase
from finskillbench.domains.tables import TableReference, reference
from finskillbench.episode import Episode, JsonObject, Profile, Truth
from finskillbench.findings import Findings
from finskillbench.scoring.values import json_equal
from finskillbench_desk.market import ListedName
from finskillbench_desk.trade_over_time import rederive
from finskillbench_desk.trade_over_time.generate import PROCEDURES, draw_trading_world
from finskillbench_desk.trade_over_time.interactive import (
    ADVANCE,
    Notice,
    as_orders,
    certified,
    current_frame,
    delivered,
    followed,
    hidden_of,
    open_state,
    packed_future,
    panel_frame,
    state_of,
    unpacked_future,
)
from finskillbench_desk.trade_over_time.optimum import (
    Optimum,
    TradingSetup,
    TradingTrap,
    as_json,
    fallen_book,
    from_json,
    held_path,
    losses,
    optimal_path,
    solved,
)
from finskillbench_desk.trade_over_time.posterior import Stretches, history_sums, posterior_means
from finskillbench_desk.trade_over_time.prompts import PROMPT, notices, trading_memo
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
SAME_WORTH = 1e-6
"""Tolerance between derivations of signal worth, as a share of the largest."""
SAME_BOOK = 1e-5
"""Tolerance between derivations of the best book, in millions."""


class Offer(TypedDict):
    """Vendor of a signal, and its half-life in weeks if disclosed."""

    vendor: str
    half_life: int | None


class _State(TypedDict):
    """The decision, its week, and the week of the signals shown."""

    decision: int
    decisions: int
    week: int
    signals_of_week: int


class TradingInput(TypedDict):
    """Task input; `notices`, `state`, `current` and `news` change with each decision."""

    memo: str
    notices: list[Notice]
    state: _State
    signals: dict[str, Offer]
    factors: dict[str, float]
    names: TableReference
    history: TableReference
    current: TableReference
    news: TableReference


class Trading(Answer):
    """Answer: ends the episode; the trades are those of the calls of `advance`."""

    decisions: int = Field(description="Number of decisions taken: the calls of `advance` that were not refused.")


def _build(context: BuildContext, market: tuple[ListedName, ...]) -> Iterator[BuiltTask]:
    """Yield forty cases, cycling through the tiers; none if the market is not synthetic."""
    if not context.synthetic:
        return
    days, tiers = context.panels.month_ends, list(TIERS)
    for number in range(context.most(EPISODES)):
        yield trading_task(context.generator(SKILL, NAME, number), market, tiers[number % len(tiers)], number, days)


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
    """Build one case: world, texts, tables and optimum."""
    world, known = draw_informative_world(rng, market, tier)
    optimum = solved(world, known)
    setup = TradingSetup.of(world)
    day = days[int(rng.integers(len(days)))]
    task_id = f"{PREFIX}_{day}_{tier}_{number:02d}"
    first_day = day - timedelta(weeks=world.draws.weeks)
    tables = trading_tables(world, setup, first_day)
    memo_text, dated_notices = trading_memo(world, rng), notices(world, rng)
    task_input: TradingInput = {
        "memo": memo_text,
        "notices": [],
        "state": _State(**state_of(world.draws.weeks + 1, 0, 0)),
        "signals": {
            name: {
                "vendor": tuple(VENDORS)[VENDOR_OF[place]],
                "half_life": int(world.signals.half_life[place]) if world.signals.disclosed[place] else None,
            }
            for place, name in enumerate(SIGNALS)
        },
        "factors": dict(zip(world.risk.factors, world.risk.volatility.tolist(), strict=True)),
        "names": reference(task_id, "names", tables["names"]),
        "history": reference(task_id, "history", tables["history"]),
        "current": reference(task_id, "current", tables["current"]),
        "news": reference(task_id, "news", tables["news"]),
    }
    path = optimal_path(setup, optimum.aims)
    stored = as_json(setup)
    truth = Truth(
        task_id,
        NAME,
        {"decisions": DECISIONS, "record": as_orders(setup, path)},
        {
            "desk": stored,
            "aims": optimum.aims.tolist(),
            "textbook_losses": optimum.textbook.tolist(),
            "traps": [
                {"kind": each.kind, "decision": each.decision, "aim": each.aim.tolist(), "cost": float(each.cost)}
                for each in optimum.traps
            ],
        },
        _summary(optimum),
    )
    certificate = {
        "outage": world.outage,
        "notices": dated_notices,
        "worth": optimum.worth.tolist(),
        **packed_future(world),
    }
    metadata = {"tier": tier, "number": number}
    episode = Episode(task_id, SKILL, NAME, day, tier, task_input, PROMPT, metadata)
    return BuiltTask(episode, truth, certificate, tables, hidden_of(world, stored, first_day, dated_notices))


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
        "largest_coefficient": float(np.abs(optimum.worth).max()),
        "traps": len(optimum.traps),
    }


def proof(label: Label[Any], findings: Findings) -> None:
    """Rederive the posterior and the best actions, and check that the optimal orders lose nothing.

    The rederivation needs the certificate, which contains the later files.
    """
    truth = label.truth
    where, known = truth.task_id, truth.verification
    setup, aims = from_json(known["desk"]), np.array(known["aims"])
    score = certified(truth.expected_output, truth, label.task_input)
    findings.expect(score.value >= 1 - 1e-9, where, f"its own record scores {score.value:.9f}, not 1")
    gain = math.fsum(known["textbook_losses"])
    findings.expect(gain > 0, where, "the textbook loses nothing, so the case offers no gain")
    _mistakes(truth, setup, aims, findings)
    if not label.certificate:
        return
    if label.hidden:
        _expect_hidden(label, findings)
    signals, returns = unpacked_future(label.certificate, len(setup.tickers))
    seen = rederive.read_case(label.task_input, signals[1:], returns)
    books = [setup.book.holdings, *followed(setup, truth.expected_output["record"])[0]]
    stored = np.array(label.certificate["worth"])
    for place in sorted({0, setup.plan.limit_from - 1, DECISIONS - 2}):
        newest = delivered(place, label.certificate["outage"])
        at = rederive.with_notices(seen, [text for day, text in label.certificate["notices"] if day <= place])
        worth = stored[place]
        if place in {0, DECISIONS - 2}:
            worth = rederive.worth(at, seen.weeks + newest)
            _close(findings, where, "coefficient", worth / np.abs(stored).max(), stored[place] / np.abs(stored).max())
        book = rederive.best(at, place + 1, newest + 1, worth, books[place])
        stated = setup.policy(place).best(place, aims[place], books[place])
        _close(findings, where, "book", book * SAME_WORTH / SAME_BOOK, stated * SAME_WORTH / SAME_BOOK)


def _expect_hidden(label: Label[Any], findings: Findings) -> None:
    """Compare the hidden fields of the case with those that the label was derived from."""
    stated = {
        "desk": label.truth.verification["desk"],
        "week": label.task_input["state"]["week"],
        "first_day": label.task_input["history"].frame["date"][0],
        **{name: label.certificate[name] for name in ("outage", "notices", "signals", "returns")},
    }
    for name in sorted(stated.keys() | label.hidden):
        same = name in stated and json_equal(stated[name], label.hidden.get(name))
        findings.expect(same, label.truth.task_id, f"hidden.{name} differs from the label")


def _mistakes(truth: Truth, setup: TradingSetup, aims: Floats, findings: Findings) -> None:
    """Check the textbook's losses and the costs of traps against setup and aims.

    The losses of trading fully depend on signals too, so only their sum is compared with the proof.
    """
    where, known, stated = truth.task_id, truth.verification, truth.proof
    held = losses(setup, aims, held_path(setup))
    stored_losses = np.array(known["textbook_losses"], dtype=float)
    same = stored_losses.shape == held.shape and np.isclose(
        stored_losses.sum(), stated["textbook_loss"], rtol=SAME_WORTH
    )
    findings.expect(same, where, "textbook_losses differ from the loss in the proof")
    if same and stated["textbook"] == "holding still":
        findings.expect(
            np.allclose(stored_losses, held, rtol=SAME_WORTH),
            where,
            "textbook_losses differ from those of holding still",
        )
    traps = known["traps"]
    findings.expect(len(traps) == stated["traps"], where, f"has {len(traps)} traps, and {stated['traps']} in its proof")
    order = [(one["decision"], one["kind"]) for one in traps]
    findings.expect(order == sorted(set(order)), where, "its traps are not in order of decision and kind")
    path = [setup.book.holdings, *optimal_path(setup, aims)]
    for one in traps:
        trap = TradingTrap(one["kind"], one["decision"], np.array(one["aim"]), one["cost"])
        place = trap.decision
        cost = setup.policy(place).loss(place, path[place + 1], fallen_book(setup, trap, path[place])) / held[place]
        findings.expect(
            np.isclose(cost, trap.cost, rtol=SAME_WORTH),
            where,
            f"the trap {trap.kind} costs {cost:.6g}, not {trap.cost:.6g}",
        )


def _close(findings: Findings, where: str, what: str, derived: Floats, stated: Floats) -> None:
    difference = float(np.abs(derived - stated).max())
    findings.widest(f"{what}_difference", difference)
    findings.expect(difference <= SAME_WORTH, where, f"a {what} differs by {difference:.1e} from its rederivation")


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
    build=_build,
    proof=proof,
    scorers={Profile.STRICT: certified, Profile.CERTIFIED: certified},
    verification=Verification(
        method=METHOD,
        parameters={"ground_truth_source": "linear-quadratic control under the exact posterior"},
        proved=("desk", "aims", "textbook_losses", "traps"),
    ),
    baselines=Baselines(no_skill=Naive((), hold_still), trivial=Naive((), hold_still), ceiling=0.75),
    interactive=InteractiveCase(
        budget=EpisodeBudget(turns=24, output_tokens=80_000, data_calls=30),
        procedures=PROCEDURES,
        tools=(ADVANCE,),
        open_state=open_state,
        filled=("notices",),
    ),
    headline=False,
)
