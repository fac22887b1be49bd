"""forensic_screen: the probability and kind of accounts management at each of 200 companies.

A pitfall is a trap if the correction decides the company: management is likelier than not only without it. The truth
stores the sites of traps and the answers of a misreading.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any, Literal, TypedDict

import numpy as np
from pydantic import Field

from finskillbench.arrays import Floats, Integers
from finskillbench.domains.base import Answer, Baselines, Naive, Subtask, Verification
from finskillbench.domains.building import BuildContext, BuiltTask
from finskillbench.domains.examples import Examples, GradedExample, Label
from finskillbench.domains.interactive import EpisodeBudget, InteractiveCase
from finskillbench.domains.tables import TableReference, reference
from finskillbench.episode import Episode, JsonObject, Profile, Score, Truth
from finskillbench.findings import Findings
from finskillbench.scoring.values import as_array, as_number, as_object, numbers, objects
from finskillbench_desk.engines.posterior.posterior import kind_probabilities
from finskillbench_desk.forensic_screen import procedures, rederive
from finskillbench_desk.forensic_screen.difficulty import (
    FLOOR,
    KIND_NAMES,
    QUARTERS,
    TIERS,
    WEIGHTS,
    ParsedAssessments,
    parse_assessments,
    probabilities_verdict,
    score_parts,
    single_kind,
    stored_posterior,
)
from finskillbench_desk.forensic_screen.generator.lines import LOCAL, fallen_probabilities
from finskillbench_desk.forensic_screen.generator.world import ScreeningWorld, drawn_world
from finskillbench_desk.forensic_screen.reading import AdjustedRatios, read_adjusted_ratios, read_archive, usable
from finskillbench_desk.forensic_screen.rederive import rederive_traps as traps_again

EVEN = 0.5
"""Base rate used by a reader who ignores the stated one."""
LIKELIER = 0.5
"""Probability from which management is likelier than not."""


def stored_traps(world: ScreeningWorld, panel: AdjustedRatios) -> list[dict[str, Any]]:
    """Return kind, site and misread probabilities of every trap: corrections by company, the archive, the base rate."""
    companies = world.tables["companies"]["company"].to_list()
    clean = kind_probabilities(panel.y, panel.acquired, world.model, world.prediction).sum(axis=1)
    found: list[dict[str, Any]] = []
    for kind in sorted(LOCAL):
        misread = read_adjusted_ratios(world.tables, world.model, world.rules, left_out=kind)
        moved = np.any(misread.y != panel.y, axis=(1, 2)) | (misread.acquired != panel.acquired)
        where = np.flatnonzero(moved)
        if not where.size:
            continue
        fallen = fallen_probabilities(misread.y[where], world.model, world.prediction).sum(axis=1)
        for company, probability in zip(where.tolist(), fallen.tolist(), strict=True):
            if clean[company] < LIKELIER < probability:
                name = companies[company]
                found.append({"kind": kind, "where": name, "probabilities": {name: round(probability, 6)}})
    archive = world.tables["archive"]
    if not archive.select(usable().all()).item():
        everything = read_archive(archive, world.model, usable_only=False)
        fallen_all = kind_probabilities(panel.y, panel.acquired, world.model, everything).sum(axis=1)
        found.append({"kind": "archive", "where": "archive", "probabilities": _named(companies, fallen_all)})
    even = replace(world.model, base_rate=EVEN)
    neglect = kind_probabilities(panel.y, panel.acquired, even, world.prediction).sum(axis=1)
    found.append({"kind": "base_rate", "where": "memo", "probabilities": _named(companies, neglect)})
    return found


def _named(companies: list[str], probabilities: Floats) -> dict[str, float]:
    return dict(zip(companies, np.round(probabilities, 6).tolist(), strict=True))


_ROUNDED = 0.97
"""Least score of probabilities rounded to two decimals."""


def assessments_of(companies: Sequence[str], probabilities: Floats, kinds: Integers) -> dict[str, Any]:
    return {
        "assessments": [
            {"company": company, "probability": float(probability), "kind": KIND_NAMES[int(kind)]}
            for company, probability, kind in zip(companies, probabilities, kinds, strict=True)
        ]
    }


def graded_examples(label: Label[Any]) -> list[GradedExample]:
    """Grade answers from the posterior through rounding and shrinkage to one answer for all."""
    companies, posterior = stored_posterior(label.truth.verification)
    rate = as_number(label.truth.verification.get("base_rate")) or 0.0
    managed, kinds = posterior.sum(axis=1), posterior.argmax(axis=1)
    nothing = np.full(len(companies), rate)
    one_kind = np.full(len(companies), single_kind(posterior))
    half = shrunk(managed, rate, 0.5)
    return [
        GradedExample("the posterior", assessments_of(companies, managed, kinds), 1.0, 1.0),
        GradedExample("to two decimals", assessments_of(companies, managed.round(2), kinds), _ROUNDED, 1.0),
        GradedExample("half of the evidence", assessments_of(companies, half, kinds), 0.5, 0.98),
        GradedExample(
            "half of the evidence, one kind", assessments_of(companies, half, one_kind), 0.2, WEIGHTS["probabilities"]
        ),
        GradedExample("kinds alone", assessments_of(companies, nothing, kinds), WEIGHTS["kinds"], WEIGHTS["kinds"]),
        GradedExample("base rate and one kind", assessments_of(companies, nothing, one_kind), 0.0, 0.0),
    ]


def shrunk(probabilities: Floats, base_rate: float, weight: float) -> Floats:
    """Multiply the evidence, in log odds beyond the base rate, by a weight."""
    clipped = np.clip(probabilities, FLOOR * 1e-6, 1.0 - FLOOR * 1e-6)
    prior = np.log(base_rate) - np.log1p(-base_rate)
    evidence = np.log(clipped) - np.log1p(-clipped) - prior
    return 1.0 / (1.0 + np.exp(-(prior + weight * evidence)))


def exploits(task_input: Mapping[str, Any]) -> dict[str, JsonObject]:
    """Return answers without analysis: one number for all, or suspicion by events and restatements."""
    companies: list[str] = task_input["companies"]["company"]
    shares = np.array([kind["share"] for kind in task_input["model"]["kinds"]])
    largest = np.full(len(companies), int(shares.argmax()))
    events: set[str] = set(task_input["events"]["company"])
    restated = {
        company
        for company, version in zip(
            task_input["statements"]["company"], task_input["statements"]["version"], strict=True
        )
        if version > 1
    }

    def suspected(names: set[str]) -> JsonObject:
        listed = np.array([0.3 if company in names else 0.08 for company in companies])
        return assessments_of(companies, listed, largest)

    return {
        "even odds": assessments_of(companies, np.full(len(companies), 0.5), largest),
        "zero for all": assessments_of(companies, np.zeros(len(companies)), largest),
        "one in ten, the kind of largest share": assessments_of(companies, np.full(len(companies), 0.1), largest),
        "companies with an event": suspected(events),
        "companies with a restatement": suspected(restated),
    }


NAME = "forensic_screen"
PREFIX = "dk_fs"
EPISODES = 40
BUDGET = EpisodeBudget(turns=24, output_tokens=60_000, data_calls=30)
CEILING = 0.75
"""Least mean score of the reference."""
TRAP_AGREEMENT = 2e-6
"""Tolerance for misread probabilities, which are stored to six decimals."""
AGREEMENT = 1e-6
"""Tolerance for stored posterior probabilities."""
KindName = Literal[
    "early_revenue",
    "channel_stuffing",
    "capitalised_costs",
    "inventory_overstatement",
    "cookie_jar_reserves",
    "asset_lives",
]


class ForensicInput(TypedDict):
    """Task input of a case; statements, companies, events, industry tables and archive are tables."""

    documents: Mapping[str, str]
    model: Mapping[str, Any]
    layout: Mapping[str, Any]
    statements: TableReference
    companies: TableReference
    events: TableReference
    industry_paths: TableReference
    seasons: TableReference
    archive: TableReference


class Assessment(Answer):
    """One company."""

    company: str = Field(description="Company, as the table companies names it.")
    probability: float = Field(description="Probability that it managed its accounts, between 0 and 1.")
    kind: KindName = Field(description="The likeliest kind of management, if there was any.")


class ForensicScreen(Answer):
    """Answer: an assessment of every company."""

    assessments: list[Assessment] = Field(description="One entry per company; one left out counts as the base rate.")


def certified(answer: JsonObject, truth: Truth, task_input: ForensicInput) -> Score:
    """Score 0.7 x the expected logarithmic score + 0.3 x the expected share of kinds named right."""
    del task_input
    companies, posterior = stored_posterior(truth.verification)
    stated = truth.verification
    parsed = parse_assessments(answer, companies)
    found = score_parts(parsed, posterior, as_number(stated.get("base_rate")) or 0.0)
    traps = {
        f"{trap['kind']}@{trap['where']}": probabilities_verdict(parsed, posterior, trap, companies)
        for trap in objects(stated.get("traps"))
    }
    value = math.fsum(weight * found[part] for part, weight in WEIGHTS.items())
    return Score(value, {**found, "traps": traps})


def _build(context: BuildContext, objects_: object) -> Iterator[BuiltTask]:
    """Yield forty worlds, one per case, cycling through the tiers; none if the market is not synthetic."""
    del objects_
    if not context.synthetic:
        return
    days = context.panels.month_ends
    tiers = list(TIERS)
    for place in range(context.most(EPISODES)):
        rng = context.generator("desk", NAME, place)
        yield screening_task(rng, place, tiers[place % len(tiers)], days[place % len(days)])


def screening_task(rng: np.random.Generator, place: int, tier: str, day: date) -> BuiltTask:
    """Return the case of a world: task input, the posterior given it, and the traps."""
    quarters = quarters_until(day)
    world = drawn_world(rng, tier, quarters)
    task_id = f"{PREFIX}_{day}_{place + 1:02d}"
    posterior, panel = exact_posterior(world)
    companies = world.tables["companies"]["company"].to_list()
    task_input: ForensicInput = {
        "documents": procedures.documents(world.model, world.rules),
        "model": procedures.disclosed(world.model),
        "layout": procedures.layout(),
        "statements": reference(task_id, "statements", world.tables["statements"]),
        "companies": reference(task_id, "companies", world.tables["companies"]),
        "events": reference(task_id, "events", world.tables["events"]),
        "industry_paths": reference(task_id, "industry_paths", world.tables["industry_paths"]),
        "seasons": reference(task_id, "seasons", world.tables["seasons"]),
        "archive": reference(task_id, "archive", world.tables["archive"]),
    }
    traps = stored_traps(world, panel)
    stored = {company: row.tolist() for company, row in zip(companies, posterior, strict=True)}
    return BuiltTask(
        Episode(task_id, "desk", NAME, day, tier, dict(task_input), procedures.prompt(quarters)),
        Truth(
            task_id,
            NAME,
            assessments_of(companies, posterior.sum(axis=1), posterior.argmax(axis=1)),
            {"base_rate": world.model.base_rate, "posterior": stored, "traps": traps},
        ),
        {"kind": "rederived", "expected_managed": float(posterior.sum()), "orderly_archive": world.orderly_archive},
        world.tables,
    )


def quarters_until(day: date) -> list[str]:
    """Return the last forty calendar quarters reported by a day, 45 days after their end."""
    last = (day.year * 12 + day.month - 1 - 2) // 3 - 1
    return [f"{place // 4}Q{place % 4 + 1}" for place in range(last - QUARTERS + 1, last + 1)]


def exact_posterior(world: ScreeningWorld) -> tuple[np.ndarray, Any]:
    """Return the posterior by company and kind given the tables, and the ratios read from them."""
    panel = read_adjusted_ratios(world.tables, world.model, world.rules)
    prediction = read_archive(world.tables["archive"], world.model)
    return kind_probabilities(panel.y, panel.acquired, world.model, prediction), panel


def proof(label: Label[ForensicInput], findings: Findings) -> None:
    """Recheck one label: posterior, score of the stored answer, alternatives, and traps."""
    truth, where = label.truth, label.episode.task_id
    companies, posterior = stored_posterior(truth.verification)
    rate = as_number(truth.verification.get("base_rate")) or 0.0
    stated = rederive.base_rate(label.task_input)
    findings.expect(abs(stated - rate) < 1e-12, where, f"base_rate is {rate} in the truth and {stated} in the memo")
    again = rederive.rederive_kinds(label.task_input)
    findings.expect(list(again) == companies, where, "the stored posterior has other companies than the case")
    if list(again) == companies:
        widest = float(np.abs(np.array(list(again.values())) - posterior).max())
        findings.widest("greatest_difference", widest)
        findings.expect(widest < AGREEMENT, where, f"the posterior differs by {widest:.1e} from its rederivation")
        constants = rederive.constant_shares(again)
        single = constants[single_kind(posterior)]
        findings.expect(single > max(constants) - AGREEMENT * len(companies), where, "another single kind earns more")
    best = score_parts(parse_assessments(truth.expected_output, companies), posterior, rate)
    findings.expect(min(best.values()) > 1.0 - 1e-9, where, f"the stored answer earns {best}; every part must be 1")
    managed, kinds = posterior.sum(axis=1), posterior.argmax(axis=1)
    for factor in (0.0, 0.5, 0.8, 1.25, 2.0):
        other = ParsedAssessments(shrunk(managed, rate, factor), kinds)
        earned = score_parts(other, posterior, rate)["probabilities"]
        findings.expect(earned < 1.0, where, f"evidence times {factor} earns as much as the posterior")
    _traps(truth, label.task_input, findings)


def _traps(truth: Truth, task_input: ForensicInput, findings: Findings) -> None:
    """Compare the stored traps with those rederived from the tables."""
    stated, again = truth.verification.get("traps"), traps_again(task_input)
    stated_keys = [(trap.get("kind"), trap.get("where")) for trap in objects(stated)]
    same = len(stated_keys) == len(as_array(stated)) and stated_keys == [
        (trap["kind"], trap["where"]) for trap in again
    ]
    findings.expect(same, truth.task_id, "the traps differ from those that the tables imply", "verification.traps")
    if not same:
        return
    for trap, other in zip(objects(stated), again, strict=True):
        stated_probabilities, wanted = numbers(as_object(trap.get("probabilities"))), other["probabilities"]
        near = stated_probabilities.keys() == wanted.keys() and all(
            abs(stated_probabilities[name] - wanted[name]) < TRAP_AGREEMENT for name in wanted
        )
        found = near and len(trap) == len(other)
        message = f"trap {trap['kind']} at {trap['where']} has other probabilities than the tables imply"
        findings.expect(found, truth.task_id, message, "verification.traps")


def _base_rate(fields: Mapping[str, Any]) -> JsonObject:
    """Return no assessments, which scores as the base rate for all without kinds."""
    del fields
    return {"assessments": []}


SUBTASK: Subtask[ForensicInput, Any] = Subtask(
    name=NAME,
    prefix=PREFIX,
    input=ForensicInput,
    answer=ForensicScreen,
    cluster=lambda episode: episode.task_id,
    build=_build,
    rederive=rederive.rederive_answer,
    proof=proof,
    scorers={Profile.CERTIFIED: certified, Profile.STRICT: certified},
    verification=Verification(method="expected_log_score", proved=("base_rate", "posterior", "traps")),
    baselines=Baselines(no_skill=Naive((), _base_rate), trivial=Naive((), _base_rate), ceiling=CEILING),
    examples=Examples(graded=graded_examples, exploits=exploits),
    interactive=InteractiveCase(
        budget=BUDGET,
        procedures={"reference": procedures.reference, "textbook": procedures.textbook, "trapped": procedures.trapped},
    ),
    headline=False,
)
