"""What a skill was worth: gains by domain, loads, flips, and the price."""

from pathlib import Path

import polars as pl
import pytest

from finskillbench.analysis.results import Comparison, collect
from finskillbench.analysis.skills import ALL, IN_DOMAIN, OTHER_DOMAINS, Evaluation, Flip, domains_of, evaluate_skills
from finskillbench.domains import domains
from finskillbench.errors import InputError
from finskillbench.harness.skills.loader import SkillPackage, curated

RISK, FILINGS = "risk_management", "fundamental_analysis"
SKILL = "skill:mine"


def row(condition: str, task_id: str, score: float | None, *, domain: str = RISK, loaded: tuple[str, ...] = (), **more):
    return {
        "model": "m",
        "condition": condition,
        "task_id": task_id,
        "domain": domain,
        "sub_task": f"{domain}/x",
        "cluster": task_id,
        "status": "error" if score is None else "scored",
        "scores": {"paper": 0.0, "strict": None, "certified": score},
        "skills_loaded": list(loaded),
        "episodes": 2,
        "tool_calls": 3,
        "total_input_tokens": 100,
        "total_output_tokens": 10,
        "cost_usd": 0.5,
        **more,
    }


def evaluated(rows: list[dict], treated: str, reference: str, packages: list[str], meant_for: list[str]) -> Evaluation:
    return evaluate_skills(collect(pl.DataFrame(rows)), Comparison(treated, reference), packages, meant_for)


def simple() -> list[dict]:
    """Three episodes of its domain, of which one rises, one falls and one fails, and a control that is left alone."""
    return [
        *(row("no_skill", task, score) for task, score in (("a", 0.25), ("b", 0.5), ("c", 0.5))),
        row("no_skill", "d", 0.75, domain=FILINGS),
        row(SKILL, "a", 1.0, loaded=("mine", "mine"), episodes=6, total_input_tokens=500),
        row(SKILL, "b", 0.125, loaded=("working-notes",)),
        row(SKILL, "c", None, loaded=("mine",), cost_usd=None),
        row(SKILL, "d", 0.75, domain=FILINGS, loaded=("mine",)),
    ]


def test_the_parts_are_paired_and_controls_are_told_apart() -> None:
    rows = simple()
    found = evaluated(rows, SKILL, "no_skill", ["mine"], [RISK])
    assert [(part.name, part.episodes, part.treated, part.reference) for part in found.parts] == [
        (IN_DOMAIN, 2, 0.5625, 0.375),
        (OTHER_DOMAINS, 1, 0.75, 0.75),
        (ALL, 3, 0.625, 0.5),
    ]
    assert [(part.difference, part.clusters, part.interval) for part in found.parts] == [
        (0.1875, 2, None),
        (0.0, 1, None),
        (0.125, 3, pytest.approx((-1.0, 1.0))),
    ]
    assert found.flips == (Flip("a", f"{RISK}/x", 1.0, 0.25), Flip("b", f"{RISK}/x", 0.125, 0.5))


def test_what_was_loaded_where_it_should_be_and_where_it_should_not() -> None:
    found = evaluated(simple(), SKILL, "no_skill", ["mine"], [RISK])
    assert (found.trigger.loaded, found.trigger.episodes) == (2, 3)
    assert found.trigger.rate == pytest.approx(2 / 3)
    assert (found.false_trigger.loaded, found.false_trigger.episodes, found.false_trigger.rate) == (1, 1, 1.0)
    assert {name: (loads.loaded, loads.episodes) for name, loads in found.loads.items()} == {
        RISK: (2, 3),
        FILINGS: (1, 1),
    }


def test_where_no_domain_is_known_nothing_is_a_trigger() -> None:
    found = evaluated(simple(), SKILL, "no_skill", ["mine"], [])
    assert [part.name for part in found.parts] == [ALL]
    assert (found.trigger.rate, found.false_trigger.rate) == (None, None)
    assert found.loads[RISK].loaded == 2


def test_both_arms_are_priced() -> None:
    treated, reference = evaluated(simple(), SKILL, "no_skill", ["mine"], [RISK]).sides
    assert (reference.condition, reference.rows, reference.errors, reference.cost_usd) == ("no_skill", 4, 0, 2.0)
    assert (reference.turns, reference.tool_calls, reference.input_tokens, reference.output_tokens) == (2, 3, 100, 10)
    assert (treated.rows, treated.errors, treated.cost_usd) == (4, 1, None)
    assert (treated.turns, treated.input_tokens) == (3, 200)


def test_unknown_tokens_are_left_out_of_means() -> None:
    rows = [row(SKILL, "a", 1.0, total_output_tokens=None), row(SKILL, "b", 1.0), row("no_skill", "a", 0.5)]
    rows.append(row("no_skill", "b", 0.5))
    treated, reference = evaluated(rows, SKILL, "no_skill", ["mine"], [RISK]).sides
    assert (treated.counted, treated.input_tokens, treated.output_tokens) == (1, 100, 10)
    assert (reference.counted, reference.rows) == (2, 2)


def test_repeats_are_averaged() -> None:
    rows = [*simple(), row(SKILL, "b", 0.875)]
    found = evaluated(rows, SKILL, "no_skill", ["mine"], [RISK])
    assert [flip.task_id for flip in found.flips] == ["a"]
    assert (found.parts[0].treated, found.trigger.episodes) == (0.75, 4)


def test_rows_that_say_nothing_are_refused() -> None:
    rows = simple()
    with pytest.raises(InputError, match="no finished episode under curated"):
        evaluated(rows, SKILL, "curated", ["mine"], [RISK])
    other = [*simple(), row(SKILL, "a", 1.0, model="n")]
    with pytest.raises(InputError, match="rows of several models: m, n; evaluate"):
        evaluated(other, SKILL, "no_skill", ["mine"], [RISK])


def test_the_curated_packages_are_for_their_domains() -> None:
    names = {domain.name: [folder.name for folder in domain.skills] for domain in domains()}
    for package in curated().values():
        assert domains_of([package]) == tuple(domain for domain, skills in names.items() if package.name in skills)
    assert domains_of(curated().values()) == tuple(names)


OF_RISK = tuple(one.name for one in domains() if any(folder.name == "risk-management" for folder in one.skills))


@pytest.mark.parametrize(
    ("name", "description", "body", "expected"),
    [
        ("notes", "Writes notes.", "On rebalancing and normalization, as everybody does.", ()),
        ("risk-management", "Notes.", "", OF_RISK),
        ("notes", "Use when the subtask is stress_testing.", "", (RISK,)),
        ("notes", "Notes.", "| normalization | `scripts/x.py` | a | b |", (FILINGS,)),
        ("notes", "Notes.", "For fundamental_analysis and risk_identification.", (RISK, FILINGS)),
        ("notes", "Notes.", "my_stress_testing_tool", ()),
    ],
)
def test_a_package_is_for_what_its_documents_name(name: str, description: str, body: str, expected) -> None:
    package = SkillPackage(name, description, Path(), body, {}, (), "d" * 64)
    assert domains_of([package]) == expected
