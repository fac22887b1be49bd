"""forensic_screen: the probability and kind of accounts management at each of 200 companies.

A pitfall is a trap if the correction decides the company: management is likelier than not only without it. The truth
stores the sites of traps and the answers of a misreading.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import date
from typing import Any, Literal, NotRequired, TypedDict

import numpy as np
import polars as pl
from pydantic import Field

from finskillbench.arrays import Floats
from finskillbench.domains.base import Answer, Baselines, Naive, Subtask, Verification
from finskillbench.domains.building import BuildContext, BuiltTask
from finskillbench.domains.checks.agreement import leaf_by_leaf
from finskillbench.domains.checks.proofs import expect_agreement, rederivation_proof
from finskillbench.domains.examples import Examples, Label
from finskillbench.domains.interactive import EpisodeBudget, InteractiveCase
from finskillbench.domains.tables import EpisodeTable, TableReference, reference
from finskillbench.episode import Episode, JsonObject, Profile, Score, Truth, lowest_raw
from finskillbench.findings import Findings
from finskillbench.scoring.values import as_array, as_number, as_object, numbers, objects
from finskillbench_desk.disclosure import PlannedCase, plan, structure_of
from finskillbench_desk.engines.posterior.posterior import kind_probabilities
from finskillbench_desk.forensic_screen import law_prompts, procedures, rederive
from finskillbench_desk.forensic_screen.difficulty import (
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
from finskillbench_desk.forensic_screen.examples import assessments_of, exploits, graded_examples, shrunk
from finskillbench_desk.forensic_screen.generator.lines import LOCAL, fallen_probabilities
from finskillbench_desk.forensic_screen.generator.world import ScreeningWorld, drawn_world
from finskillbench_desk.forensic_screen.law_proof import (
    check_law_posterior,
    rederive_law_traps,
    rederive_sample,
    sample_of,
)
from finskillbench_desk.forensic_screen.law_world import LIKELIER, draw_law_world, law_traps
from finskillbench_desk.forensic_screen.laws import STRUCTURES, law_json, read_law
from finskillbench_desk.forensic_screen.reading import AdjustedRatios, read_adjusted_ratios, read_archive, usable
from finskillbench_desk.forensic_screen.rederive import rederive_traps as traps_again
from finskillbench_desk.share import raw_share

EVEN = 0.5
"""Base rate used by a reader who ignores the stated one."""


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
    """Task input of a case: tables, documents and layout; `model` if its law is disclosed, else `examinations`."""

    documents: Mapping[str, str]
    model: NotRequired[Mapping[str, Any]]
    layout: Mapping[str, Any]
    statements: TableReference
    companies: TableReference
    events: TableReference
    industry_paths: TableReference
    seasons: TableReference
    archive: TableReference
    examinations: NotRequired[TableReference]


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
    earned = found["probabilities"] > 0.0
    traps = {
        f"{trap['kind']}@{trap['where']}": probabilities_verdict(parsed, posterior, trap, companies, earned)
        for trap in objects(stated.get("traps"))
    }
    value = math.fsum(weight * found[part] for part, weight in WEIGHTS.items())
    unlimited = score_parts(parsed, posterior, as_number(stated.get("base_rate")) or 0.0, raw_share)
    raw = math.fsum(weight * unlimited[part] for part, weight in WEIGHTS.items())
    empty = bool(np.isnan(parsed.probabilities).all() and (parsed.kinds < 0).all())
    return Score(value, {**found, "traps": traps}, value or lowest_raw(None if empty else raw))


def _build(context: BuildContext, objects_: object) -> Iterator[BuiltTask]:
    """Yield forty worlds, one per case, cycling through structures and tiers; none if the market is not synthetic."""
    del objects_
    if not context.synthetic:
        return
    days = context.panels.month_ends
    for case in plan(context, EPISODES, STRUCTURES, TIERS):
        rng, day = context.generator("desk", NAME, case.number), days[case.number % len(days)]
        if case.structure is None:
            yield screening_task(rng, case.number, case.tier, day)
        else:
            yield law_task(rng, case, case.structure, day)


def screening_task(rng: np.random.Generator, place: int, tier: str, day: date) -> BuiltTask:
    """Return a case whose law is disclosed: task input, the posterior given it, and the traps."""
    quarters = quarters_until(day)
    world = drawn_world(rng, tier, quarters)
    task_id = f"{PREFIX}_{day}_{place + 1:02d}"
    posterior, panel = exact_posterior(world)
    task_input = {
        "documents": procedures.documents(world.model, world.rules),
        "model": procedures.disclosed(world.model),
        "layout": procedures.layout(),
        **_references(task_id, world.tables),
    }
    traps = stored_traps(world, panel)
    truth = _truth(task_id, world.tables, posterior, {"base_rate": world.model.base_rate, "traps": traps, "law": None})
    again = rederive.rederive_answer(_full_input(task_input, world.tables))
    return BuiltTask(
        Episode(task_id, "desk", NAME, day, tier, task_input, procedures.prompt(quarters)),
        replace(truth, proof=rederivation_proof(task_id, leaf_by_leaf(truth.expected_output, again))),
        {"kind": "rederived", "expected_managed": float(posterior.sum()), "orderly_archive": world.orderly_archive},
        world.tables,
    )


def law_task(rng: np.random.Generator, case: PlannedCase, structure: str, day: date) -> BuiltTask:
    """Return a case whose law is not disclosed; zero is the mean probability, the best answer for all companies."""
    quarters = quarters_until(day)
    world = draw_law_world(rng, structure, case.tier, quarters)
    task_id = f"{PREFIX}_{day}_{case.number + 1:02d}_{case.disclosure}"
    described = case.disclosure == "described"
    task_input = {
        "documents": law_prompts.documents(world.rules.material, described),
        "layout": procedures.layout(),
        **_references(task_id, world.tables),
    }
    base_rate = float(world.posterior.sum(axis=1).mean())
    stored: dict[str, Any] = {"base_rate": base_rate, "traps": law_traps(world), "law": law_json(world.law)}
    truth = _truth(task_id, world.tables, world.posterior, stored)
    again = rederive_sample(_full_input(task_input, world.tables), world.law)
    leaves = leaf_by_leaf(sample_of(truth.expected_output, again), again)
    return BuiltTask(
        Episode(task_id, "desk", NAME, day, case.tier, task_input, law_prompts.prompt(quarters[-1], described)),
        replace(truth, proof=rederivation_proof(task_id, leaves)),
        {"kind": "rederived", "expected_managed": float(world.posterior.sum()), "structure": structure},
        world.tables,
    )


def _references(task_id: str, tables: Mapping[str, pl.DataFrame]) -> dict[str, TableReference]:
    return {name: reference(task_id, name, table) for name, table in tables.items()}


def _full_input(task_input: Mapping[str, Any], tables: Mapping[str, pl.DataFrame]) -> dict[str, Any]:
    return {name: EpisodeTable(tables[name]) if name in tables else value for name, value in task_input.items()}


def _truth(task_id: str, tables: Mapping[str, pl.DataFrame], posterior: Floats, stored: dict[str, Any]) -> Truth:
    companies = tables["companies"]["company"].to_list()
    rows = {company: row.tolist() for company, row in zip(companies, posterior, strict=True)}
    answer = assessments_of(companies, posterior.sum(axis=1), posterior.argmax(axis=1))
    return Truth(task_id, NAME, answer, {"base_rate": stored["base_rate"], "posterior": rows, **stored})


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
    expect_agreement(label, findings)
    stated = truth.verification.get("law")
    if stated is not None:
        law = read_law(as_object(stated))
        check_law_posterior(label, law, findings)
        traps = rederive_law_traps(label.task_input, law)
    else:
        _check_disclosed(label, rate, findings)
        traps = traps_again(label.task_input)
    best = score_parts(parse_assessments(truth.expected_output, companies), posterior, rate)
    findings.expect(min(best.values()) > 1.0 - 1e-9, where, f"the stored answer earns {best}; every part must be 1")
    managed, kinds = posterior.sum(axis=1), posterior.argmax(axis=1)
    answer = assessments_of(companies, managed, kinds)
    agree = all(leaf.agrees for leaf in leaf_by_leaf(truth.expected_output, answer))
    findings.expect(agree, where, "the stored answer is not the posterior", "expected_output")
    for factor in (0.0, 0.5, 0.8, 1.25, 2.0):
        other = ParsedAssessments(shrunk(managed, rate, factor), kinds)
        earned = score_parts(other, posterior, rate)["probabilities"]
        findings.expect(earned < 1.0, where, f"evidence times {factor} earns as much as the posterior")
    _check_traps(truth, traps, findings)


def _check_disclosed(label: Label[ForensicInput], rate: float, findings: Findings) -> None:
    """Compare base rate and posterior with those of the memo and the tables."""
    where = label.episode.task_id
    companies, posterior = stored_posterior(label.truth.verification)
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


def _check_traps(truth: Truth, again: list[dict[str, Any]], findings: Findings) -> None:
    """Compare the stored traps with those rederived from the tables."""
    stated = truth.verification.get("traps")
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
    template_of=structure_of,
    build=_build,
    proof=proof,
    scorers={Profile.CERTIFIED: certified, Profile.STRICT: certified},
    verification=Verification(method="expected_log_score", proved=("base_rate", "posterior", "traps", "law")),
    baselines=Baselines(no_skill=Naive((), _base_rate), trivial=Naive((), _base_rate), ceiling=CEILING),
    examples=Examples(graded=graded_examples, exploits=exploits),
    interactive=InteractiveCase(
        budget=BUDGET,
        procedures={"reference": procedures.reference, "textbook": procedures.textbook, "trapped": procedures.trapped},
    ),
)
