"""Trading over time: twelve decisions in one episode, on signals that decay, at costs that grow with the trade.

What is judged is not what the book earned, which is mostly luck, but what each decision lost against the best that
could be expected at that time, in the book that the agent had; see `merit`.
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
from finskillbench.domains.building import BuildContext, Task
from finskillbench.domains.examples import Label
from finskillbench.domains.interactive import Budget, InteractiveCase
from finskillbench.domains.tables import TableReference, reference
from finskillbench.episode import Episode, JsonObject, Profile, Truth
from finskillbench.findings import Findings
from finskillbench.scoring.values import json_equal
from finskillbench_desk.market import Listed
from finskillbench_desk.trade_over_time import rederive
from finskillbench_desk.trade_over_time.generate import PROCEDURES, draw
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
    Desk,
    Optimum,
    Trap,
    as_json,
    fallen_book,
    from_json,
    held_path,
    losses,
    optimal_path,
    solved,
)
from finskillbench_desk.trade_over_time.posterior import Stretches, history, means
from finskillbench_desk.trade_over_time.prompts import PROMPT, memo, notices
from finskillbench_desk.trade_over_time.world import (
    DECISIONS,
    LEAST_WORTH,
    SIGNALS,
    STYLES,
    TIERS,
    VENDOR_OF,
    VENDORS,
    World,
)

NAME = "trade_over_time"
SKILL = "desk"
EPISODES = 40
METHOD = "regret of each decision against the certified optimal policy"
SAME_WORTH = 1e-6
"""Two derivations of what signals are worth agree to this share of the largest."""
SAME_BOOK = 1e-5
"""Millions by which two derivations of the best book may differ."""


class Offer(TypedDict):
    """Who sells a signal, and its half-life in weeks where it has been measured."""

    vendor: str
    half_life: int | None


class _State(TypedDict):
    """Which decision it is, its week, and the week of the signals that are shown."""

    decision: int
    decisions: int
    week: int
    signals_of_week: int


class TradingInput(TypedDict):
    """What an agent is given; `notices`, `state`, `current` and `news` move on with each decision."""

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
    """Answer: the trades are those of the calls of `advance`; this ends the episode."""

    decisions: int = Field(description="How many decisions were taken: the calls of `advance` that were not refused.")


def _build(context: BuildContext, market: tuple[Listed, ...]) -> Iterator[Task]:
    """40 worlds, the tiers in turns; none where the market is not synthetic."""
    if not context.synthetic:
        return
    days, tiers = context.panels.month_ends, list(TIERS)
    for number in range(context.most(EPISODES)):
        yield task_of(context.generator(SKILL, NAME, number), market, tiers[number % len(tiers)], number, days)


def worth_asking(rng: np.random.Generator, market: Sequence[Listed], tier: str) -> tuple[World, Stretches]:
    """A world of a tier in which enough can be known by the first decision, and the sums of its history."""
    tickers, industries = [each.symbol for each in market], [each.industry for each in market]
    while True:
        world = draw(tickers, industries, TIERS[tier], rng)
        known, decay = history(world), world.signals.decay
        if np.linalg.norm(means(known, world.tier, decay, {}) / np.sqrt(1 - decay)) >= LEAST_WORTH:
            return world, known


def task_of(rng: np.random.Generator, market: Sequence[Listed], tier: str, number: int, days: Sequence[date]) -> Task:
    """One case: its world, what is said of it, its optimum."""
    world, known = worth_asking(rng, market, tier)
    optimum = solved(world, known)
    desk = Desk.of(world)
    day = days[int(rng.integers(len(days)))]
    task_id = f"{PREFIX}_{day}_{tier}_{number:02d}"
    first_day = day - timedelta(weeks=world.draws.weeks)
    tables = tables_of(world, desk, first_day)
    told, said = memo(world, rng), notices(world, rng)
    given: TradingInput = {
        "memo": told,
        "notices": [],
        "state": _State(**state_of(world.draws.weeks + 1, 0, 0)),
        "signals": {
            name: {
                "vendor": tuple(VENDORS)[VENDOR_OF[place]],
                "half_life": int(world.signals.half_life[place]) if world.signals.told[place] else None,
            }
            for place, name in enumerate(SIGNALS)
        },
        "factors": dict(zip(world.risk.factors, world.risk.volatility.tolist(), strict=True)),
        "names": reference(task_id, "names", tables["names"]),
        "history": reference(task_id, "history", tables["history"]),
        "current": reference(task_id, "current", tables["current"]),
        "news": reference(task_id, "news", tables["news"]),
    }
    path = optimal_path(desk, optimum.aims)
    stored = as_json(desk)
    truth = Truth(
        task_id,
        NAME,
        {"decisions": DECISIONS, "record": as_orders(desk, path)},
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
    certificate = {"outage": world.outage, "notices": said, "worth": optimum.worth.tolist(), **packed_future(world)}
    metadata = {"tier": tier, "number": number}
    episode = Episode(task_id, SKILL, NAME, day, tier, given, PROMPT, metadata)
    return Task(episode, truth, certificate, tables, hidden_of(world, stored, first_day, said))


def tables_of(world: World, desk: Desk, first_day: date) -> dict[str, pl.DataFrame]:
    """The tables of a case: the names, the history, the first decision's signals and book, and no news yet."""
    weeks = world.draws.weeks
    styles = {name: world.risk.exposures[:, place - len(STYLES)] for place, name in enumerate(STYLES)}
    names = pl.DataFrame(
        {
            "ticker": list(world.tickers),
            "sector": [world.sectors[int(place)] for place in world.sector_of],
        }
    ).with_columns(
        benchmark_weight=world.book.benchmark,
        impact=world.book.impact,
        specific_volatility=world.risk.specific,
        market_beta=world.risk.exposures[:, 0],
        **styles,
    )
    return {
        "names": names,
        "history": panel_frame(desk, first_day, 1, world.draws.signals[:weeks], world.draws.returns[:weeks]),
        "current": current_frame(desk, desk.book.holdings, world.draws.signals[weeks]),
        "news": panel_frame(desk, first_day, 1, world.draws.signals[:0], world.draws.returns[:0]),
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
    """The posterior and the best actions derived again from what is visible; the optimal orders lose nothing.

    Without a certificate only the latter: what the later files bring is in it.
    """
    truth = label.truth
    where, known = truth.task_id, truth.verification
    desk, aims = from_json(known["desk"]), np.array(known["aims"])
    score = certified(truth.expected_output, truth, label.task_input)
    findings.expect(score.value >= 1 - 1e-9, where, f"its own record scores {score.value:.9f}")
    gain = math.fsum(known["textbook_losses"])
    findings.expect(gain > 0, where, "the textbook loses nothing, so that nothing can be gained")
    _mistakes(truth, desk, aims, findings)
    if not label.certificate:
        return
    if label.hidden:
        _expect_hidden(label, findings)
    signals, returns = unpacked_future(label.certificate, len(desk.tickers))
    seen = rederive.read_case(label.task_input, signals[1:], returns)
    books = [desk.book.holdings, *followed(desk, truth.expected_output["record"])[0]]
    stored = np.array(label.certificate["worth"])
    for place in sorted({0, desk.plan.limit_from - 1, DECISIONS - 2}):
        newest = delivered(place, label.certificate["outage"])
        at = rederive.told(seen, [text for day, text in label.certificate["notices"] if day <= place])
        worth = stored[place]
        if place in {0, DECISIONS - 2}:
            worth = rederive.worth(at, seen.weeks + newest)
            _close(findings, where, "coefficient", worth / np.abs(stored).max(), stored[place] / np.abs(stored).max())
        book = rederive.best(at, place + 1, newest + 1, worth, books[place])
        stated = desk.policy(place).best(place, aims[place], books[place])
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
        findings.expect(same, label.truth.task_id, f"its stage has another {name} than the label")


def _mistakes(truth: Truth, desk: Desk, aims: Floats, findings: Findings) -> None:
    """The textbook's losses and the costs of the traps follow from the desk and the aims.

    Of trading all the way, which takes the signals too, the losses are held to their sum in the proof.
    """
    where, known, stated = truth.task_id, truth.verification, truth.proof
    held = losses(desk, aims, held_path(desk))
    given = np.array(known["textbook_losses"], dtype=float)
    same = given.shape == held.shape and np.isclose(given.sum(), stated["textbook_loss"], rtol=SAME_WORTH)
    findings.expect(same, where, "the textbook's losses are not those of the proof")
    if same and stated["textbook"] == "holding still":
        findings.expect(np.allclose(given, held, rtol=SAME_WORTH), where, "the textbook's losses are not of its book")
    traps = known["traps"]
    findings.expect(len(traps) == stated["traps"], where, f"has {len(traps)} traps, and {stated['traps']} in its proof")
    order = [(one["decision"], one["kind"]) for one in traps]
    findings.expect(order == sorted(set(order)), where, "its traps do not follow each other by decision and kind")
    path = [desk.book.holdings, *optimal_path(desk, aims)]
    for one in traps:
        trap = Trap(one["kind"], one["decision"], np.array(one["aim"]), one["cost"])
        place = trap.decision
        cost = desk.policy(place).loss(place, path[place + 1], fallen_book(desk, trap, path[place])) / held[place]
        findings.expect(np.isclose(cost, trap.cost, rtol=SAME_WORTH), where, f"the trap {trap.kind} costs {cost:.6g}")


def _close(findings: Findings, where: str, what: str, derived: Floats, stated: Floats) -> None:
    difference = float(np.abs(derived - stated).max())
    findings.widest(f"{what}_difference", difference)
    findings.expect(difference <= SAME_WORTH, where, f"a {what} differs by {difference:.1e} when it is derived again")


def still(data: JsonObject) -> JsonObject:
    """Holding still: no decision at all."""
    del data
    return {"decisions": 0}


PREFIX = "dk_tt"
SUBTASK: Subtask[Any, tuple[Listed, ...]] = Subtask(
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
    baselines=Baselines(no_skill=Naive((), still), trivial=Naive((), still), ceiling=0.75),
    interactive=InteractiveCase(
        budget=Budget(turns=24, output_tokens=80_000, data_calls=30),
        procedures=PROCEDURES,
        tools=(ADVANCE,),
        open_state=open_state,
        filled=("notices",),
    ),
    headline=False,
)
