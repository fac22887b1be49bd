"""Choices that a caller states are made and echoed, or refused: none is silently left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from desk_tests.engines.screening.test_screening import RATIOS, checked, payload

from finskillbench.errors import InputError
from finskillbench_desk.engines.screening.checks import statement_checks
from finskillbench_desk.engines.screening.task import calibrate, case_effects, ratio_innovations, signature_match

SIGNATURE = {"name": "x", "weight": 1, "profile": [1], "shifts": {"receivables": 1}}
HERE = {"company": "C1", "quarter": "2012Q1"}


def archive(values: tuple[str, ...] = ("a", "b"), cases: int = 40) -> dict[str, Any]:
    """Cases that move "a" by two standard deviations in their first quarter, in hundredths."""
    rng = np.random.default_rng(5)
    periods = list(range(-4, 2))
    columns: dict[str, Any] = {
        "case": [case for case in range(cases) for _ in periods],
        "kind": ["k"] * (cases * len(periods)),
        "basis": ["court" if case % 2 else "press" for case in range(cases) for _ in periods],
        "quarter": periods * cases,
    }
    for name in values:
        push = 200.0 * (np.array(columns["quarter"]) == 0) * (name == "a")
        columns[name] = (push + 100.0 * rng.standard_normal(cases * len(periods))).tolist()
    return {"archive": columns, "values": list(values), "profiles": {"k": [1]}, "unit": 0.01}


@pytest.mark.parametrize(
    ("script", "given"),
    [
        (statement_checks, {"statements": {}, "layout": {}}),
        (case_effects, archive()),
        (ratio_innovations, payload()),
        (signature_match, payload() | {"signatures": [SIGNATURE]}),
        (calibrate, {"log_bayes_factors": {"A": 0.0}, "base_rate": 0.1}),
    ],
)
def test_an_unknown_key_is_refused_with_those_that_are_known(
    script: Callable[[dict[str, Any]], dict[str, Any]], given: dict[str, Any]
) -> None:
    with pytest.raises(InputError, match="unknown where; known are ") as told:
        script({**given, "where": {"basis": ["court"]}})
    assert all(name in str(told.value) for name in given if name != "growth_line")
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"ratios": [{**RATIOS[0], "lease_effect": 0.1}]}, "ratios: unknown lease_effect; known are name, "),
        ({"signatures": [{**SIGNATURE, "spread": 0.1}]}, "signatures: unknown spread; known are name, "),
        ({"divide": [{**HERE, "line": ["revenue"], "by": 1000}]}, "divide: unknown line; known are "),
        ({"known_changes": [{**HERE, "shifts": {"receivables": 0.1}}]}, "known_changes: unknown shifts; known are "),
        ({"new_levels": [{**HERE, "size": 1}]}, "new_levels: unknown size; known are "),
        ({"known_changes": [HERE]}, "known_changes: effects must map at least one ratio"),
        ({"known_changes": [{**HERE, "effects": {}}]}, "known_changes: effects must map at least one ratio"),
        (
            {"known_changes": [{**HERE, "effects": {"leases": 1}}]},
            "effects of leases belong to no ratio; ratios are rec",
        ),
        ({"signatures": [{**SIGNATURE, "shifts": {}}]}, "signatures: shifts must map at least one ratio"),
        ({"divide": [{**HERE, "lines": ["goodwill"], "by": 1000}]}, "goodwill, which the statements do not have"),
        ({"divide": [{**HERE, "lines": ["cash"], "by": 1000}]}, "lines must name a line that a ratio uses"),
        ({"ratios": [{**RATIOS[0], "growth_effect": 0.2}]}, "but not growth_line"),
        ({"ratios": [{**RATIOS[0], "innovation_sd": 0.2}, {**RATIOS[0], "name": "b"}]}, "of every ratio or of none"),
        ({"year_ends": [{**HERE, "month": 6}]}, "year_ends: seasons is missing"),
        ({"correlation": [[2.0]]}, "correlation must be a positive definite 1 x 1 matrix with ones"),
        ({"correlation": [[1.0, 0.2], [0.2, 1.0]]}, "correlation must be a positive definite 1 x 1 matrix with ones"),
    ],
)
def test_what_would_correct_nothing_is_refused(change: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        signature_match(payload() | {"signatures": [SIGNATURE]} | change)


def test_an_unknown_key_of_a_year_end_is_refused() -> None:
    members = {"company": [f"C{number}" for number in range(6)], "industry": ["F"] * 6, "year_end_month": [12] * 6}
    seasons = {"industry": ["F"] * 4, "fiscal_quarter": [1, 2, 3, 4], "receivables": [0] * 4}
    given = payload() | {"companies": members, "seasons": seasons, "table_unit": 1}
    with pytest.raises(InputError, match="year_ends: unknown value; known are company, quarter, month"):
        ratio_innovations({**given, "year_ends": [{**HERE, "value": 6}]})


def test_the_result_says_what_was_used() -> None:
    given = payload() | {
        "known_changes": [{**HERE, "effects": {"receivables": 0.1}}, {**HERE, "effects": {"receivables": 0.1}}],
        "divide": [{**HERE, "lines": ["receivables", "cash"], "by": 2}],
    }
    used = ratio_innovations(given)["used"]
    assert used == {
        "window": 8,
        "versions": "last",
        "growth_line": None,
        "table_unit": None,
        "tables": [],
        "freedom": 0.0,
        "innovation_sd": "estimated before the window",
        "correlation": "estimated before the window",
        "number_applied": {"divide": 1, "known_changes": 2, "new_levels": 0, "year_ends": 0},
    }
    assert signature_match(given | {"signatures": [SIGNATURE]})["used"] == used
    stated = {**given, "ratios": [{**RATIOS[0], "innovation_sd": 0.05}]}
    assert ratio_innovations(stated)["used"]["innovation_sd"] == "as stated"
    assert ratio_innovations({**given, "correlation": [[1.0]]})["used"]["correlation"] == "as stated"
    kept = case_effects({**archive(cases=41), "keep": {"basis": ["court"]}, "drop": {"kind": ["K"]}})
    assert kept["used"] == {"unit": 0.01, "group": "kind", "keep": {"basis": {"court": 20}}, "drop": {"kind": {"K": 0}}}
    assert calibrate({"log_bayes_factors": {"A": 0.0}, "base_rate": 0.1})["used"] == {"base_rate": 0.1, "weight": 1.0}
    assert checked(payload())["used"] == {"growth_line": "revenue"}


def test_a_profile_of_one_entry_in_a_single_column_is_measured() -> None:
    found = case_effects(archive(("a",)))["groups"]["k"]
    assert found["mean_shift"]["a"] == pytest.approx(2.0, abs=4 * found["standard_error"]["a"])
    assert found["size_spread"] < 0.4


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"unit": None}, "case_effects: unit must be a number"),
        ({"keep": {"basis": "court"}}, "keep: basis must be a list"),
        ({"keep": {"basis": ["judge"]}}, "keep and drop leave no case"),
        ({"drop": {"basis": "press"}}, "drop: basis must be a list"),
        ({"keep": ["court"]}, "keep must map columns to lists"),
    ],
)
def test_a_choice_of_cases_that_chooses_nothing_is_refused(change: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        case_effects(archive() | change)
