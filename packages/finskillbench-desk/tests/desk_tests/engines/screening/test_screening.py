"""The screening scripts on small tables: what they see, what corrections do, and how they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from finskillbench.errors import InputError
from finskillbench_desk.engines.screening.checks import statement_checks
from finskillbench_desk.engines.screening.panel import fiscal_quarters, ratio_panel
from finskillbench_desk.engines.screening.task import calibrate, case_effects, ratio_innovations, signature_match

QUARTERS = [f"{2010 + number // 4}Q{number % 4 + 1}" for number in range(24)]
RATIOS = [{"name": "receivables", "numerator": "receivables", "denominator": "revenue", "persistence": 0.5}]


def payload(companies: int = 6, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    rows = [(f"C{number}", quarter) for number in range(companies) for quarter in QUARTERS]
    deviation = np.zeros((companies, len(QUARTERS)))
    for quarter in range(1, len(QUARTERS)):
        deviation[:, quarter] = 0.5 * deviation[:, quarter - 1] + 0.05 * rng.standard_normal(companies)
    revenue = np.full(companies * len(QUARTERS), 1e6)
    receivables = np.rint(1e6 * 0.7 * np.exp(deviation)).reshape(-1)
    return {
        "statements": {
            "company": [company for company, _ in rows],
            "quarter": [quarter for _, quarter in rows],
            "version": [1] * len(rows),
            "revenue": revenue.tolist(),
            "receivables": receivables.tolist(),
            "cash": [5] * len(rows),
            "closing_cash": [5] * len(rows),
        },
        "ratios": RATIOS,
        "versions": "last",
        "window": 8,
        "growth_line": None,
    }


def checked(given: dict[str, Any]) -> dict[str, Any]:
    layout = {"identities": {"cash": {"closing_cash": 1}}}
    return statement_checks({"statements": given["statements"], "layout": layout, "growth_line": "revenue"})


def row_of(given: dict[str, Any], company: str, quarter: str) -> int:
    statements = given["statements"]
    return list(zip(statements["company"], statements["quarter"], strict=True)).index((company, quarter))


def test_a_slip_is_found_and_divided_away() -> None:
    given = payload()
    clean = ratio_panel(given).y
    row = row_of(given, "C2", "2014Q3")
    for name in ("receivables", "cash"):
        given["statements"][name][row] *= 1000
    found = checked(given)
    assert found["broken"] == [
        {
            "company": "C2",
            "quarter": "2014Q3",
            "total": "cash",
            "stated": 5000.0,
            "added_up": 5.0,
            "stated_over_added_up": 1000.0,
        }
    ]
    loud = ratio_innovations(given)
    assert loud["largest"][0].startswith("C2 2014Q3 receivables +")
    given["divide"] = [{"company": "C2", "quarter": "2014Q3", "lines": ["receivables"], "by": 1000}]
    np.testing.assert_allclose(ratio_panel(given).y, clean, atol=1e-12)


def test_the_version_that_is_asked_for_counts() -> None:
    given = payload()
    row = row_of(given, "C1", "2013Q1")
    statements = given["statements"]
    for name, values in statements.items():
        values.append(values[row])
        assert len(values) == 6 * 24 + 1, name
    statements["version"][-1], statements["receivables"][-1] = 2, 2.0 * statements["receivables"][row]
    first, last = (ratio_panel({**given, "versions": which}).y for which in ("first", "last"))
    moved = last - first
    assert moved[1, 12, 0] == pytest.approx(np.log(2.0))
    assert np.count_nonzero(np.abs(moved) > 1e-12) == 1
    found = checked(given)["restated"]
    assert found[0]["company"] == "C1"
    assert found[0]["largest_log_changes"]["receivables"] == pytest.approx(0.6931, abs=1e-4)


def test_industry_season_growth_and_announced_changes_are_taken_out() -> None:
    given = payload()
    given["companies"] = {
        "company": [f"C{number}" for number in range(6)],
        "industry": ["Food"] * 6,
        "year_end_month": [12, 12, 3, 12, 12, 12],
    }
    given["industry_paths"] = {"industry": ["Food"] * 24, "quarter": QUARTERS, "receivables": list(range(24))}
    given["seasons"] = {"industry": ["Food"] * 4, "fiscal_quarter": [1, 2, 3, 4], "receivables": [100, 200, 300, -600]}
    given |= {"table_unit": 0.001, "year_ends": [{"company": "C3", "quarter": "2012Q1", "month": 6}]}
    given["known_changes"] = [{"company": "C0", "quarter": "2013Q2", "effects": {"receivables": 0.25}}]
    taken = ratio_panel(payload()).y - ratio_panel(given).y
    season = np.array([0.1, 0.2, 0.3, -0.6])
    expected = 0.001 * np.arange(24) + np.tile(season, 6)
    np.testing.assert_allclose(taken[1, :, 0], expected, atol=1e-12)
    np.testing.assert_allclose(taken[0, :, 0] - expected, 0.25 * (np.arange(24) >= 13), atol=1e-12)
    # With a year end in March, the quarter to June is the first of the fiscal year.
    assert taken[2, 1, 0] == pytest.approx(0.001 + 0.1)
    # From 2012Q1 on C3's year ends in June, so that Q1 is its third quarter.
    assert taken[3, 8, 0] == pytest.approx(0.008 + 0.3)
    assert taken[3, 4, 0] == pytest.approx(0.004 + 0.1)


def test_growth_effects_multiply_the_growth_of_a_line() -> None:
    given = payload()
    given["statements"]["revenue"] = [1e6 * 1.1**place for _ in range(6) for place in range(24)]
    plain = ratio_panel(given).y
    adjusted = ratio_panel({**given, "growth_line": "revenue", "ratios": [{**RATIOS[0], "growth_effect": 0.5}]}).y
    np.testing.assert_allclose((plain - adjusted)[:, 1:], 0.5 * np.log(1.1), atol=1e-12)
    np.testing.assert_allclose((plain - adjusted)[:, 0], 0.0, atol=1e-12)


@pytest.mark.parametrize(
    ("month", "ends", "number"), [(3, 12, 1), (12, 12, 4), (6, 3, 1), (3, 3, 4), (9, 6, 1), (3, 9, 2)]
)
def test_fiscal_quarters(month: int, ends: int, number: int) -> None:
    assert fiscal_quarters(np.array(month), np.array(ends)) == number


def test_the_company_with_the_signature_has_the_evidence() -> None:
    given = payload(12, seed=3)
    first = row_of(given, "C7", "2014Q3")
    for place in range(6):
        given["statements"]["receivables"][first + place] *= float(np.exp(0.15 * (2 - 0.5**place)))
    given["signatures"] = [
        {"name": "early", "weight": 1, "profile": [2, 1, 1], "shifts": {"receivables": 1.5}, "size_spread": 0.5},
        {"name": "late", "weight": 1, "profile": [1], "shifts": {"receivables": -1.5}, "size_spread": 0.5},
    ]
    rows = {row[0]: row for row in signature_match(given)["rows"]}
    assert max(rows, key=lambda name: rows[name][1]) == "C7"
    assert rows["C7"][2] == "early"
    assert 0.5 < rows["C7"][3] <= 1.0


def test_a_kind_that_is_stated_twice_is_one_kind() -> None:
    given = {**payload(), "versions": "last"}
    one = {"name": "a", "weight": 0.6, "profile": [1.0], "shifts": {"receivables": 1.0}, "size_spread": 0.3}
    other = {**one, "name": "b", "weight": 0.4, "shifts": {"receivables": 0.9}}
    halves = [{**one, "weight": 0.3}, other, {**one, "weight": 0.3}]
    whole = signature_match({**given, "signatures": [one, other]})
    assert signature_match({**given, "signatures": halves})["rows"] == whole["rows"]


def test_case_effects_recover_shift_and_spread() -> None:
    rng = np.random.default_rng(6)
    cases, profile = 400, np.array([1.0, 0.5, 1.0])
    size = 1.0 + 0.3 * rng.standard_normal(cases)
    columns: dict[str, list[Any]] = {name: [] for name in ("case", "kind", "basis", "quarter", "a", "b")}
    for case in range(cases):
        for quarter in range(-6, 4):
            push = size[case] * profile[quarter] if 0 <= quarter < 3 else 0.0
            columns["case"].append(f"A{case}")
            columns["kind"].append("k")
            columns["basis"].append("court" if case % 2 else "press")
            columns["quarter"].append(quarter)
            columns["a"].append(100 * (1.2 * push + rng.standard_normal()))
            columns["b"].append(100 * (-0.8 * push * (case % 2) + rng.standard_normal()))
    given = {"archive": columns, "values": ["a", "b"], "profiles": {"k": profile.tolist()}, "unit": 0.01}
    kept = case_effects({**given, "keep": {"basis": ["court"]}})
    assert kept["cases_kept"] == 200
    found = kept["groups"]["k"]
    assert found["mean_shift"]["a"] == pytest.approx(1.2, abs=4 * found["standard_error"]["a"])
    assert found["mean_shift"]["b"] == pytest.approx(-0.8, abs=4 * found["standard_error"]["b"])
    assert found["size_spread"] == pytest.approx(0.3, abs=0.12)
    assert case_effects({**given, "drop": {"basis": ["press"]}})["groups"] == kept["groups"]
    diluted = case_effects(given)["groups"]["k"]["mean_shift"]["b"]
    assert diluted == pytest.approx(-0.4, abs=0.15)


def test_calibrate_is_bayes_theorem() -> None:
    found = calibrate({"log_bayes_factors": {"A": 0.0, "B": np.log(9.0), "C": -800.0}, "base_rate": 0.1})
    assert found["calibrated"] == {"A": 0.1, "B": 0.5, "C": 0.0}
    assert found["sum"] == 0.6
    half = calibrate({"log_bayes_factors": {"B": 2 * np.log(9.0)}, "base_rate": 0.1, "weight": 0.5})
    assert half["calibrated"] == {"B": 0.5}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"versions": None}, "versions must be"),
        ({"ratios": []}, "ratios must list"),
        ({"ratios": [{**RATIOS[0], "numerator": "sales"}]}, "no column 'sales'"),
        ({"window": 20}, "window must leave ten quarters"),
        ({"new_levels": [{"company": "Z", "quarter": "2010Q1"}]}, "'Z' is not in the statements"),
        ({"seasons": {"industry": []}}, "companies is missing"),
        ({"signatures": [{"name": "x", "weight": 1, "profile": [], "shifts": {}}]}, "profile of x"),
        ({"signatures": [{"name": "x", "weight": -1, "profile": [1], "shifts": {}}]}, "weights must not be negative"),
        ({"signatures": [{"name": "x", "weight": 1, "profile": [1], "shifts": {"y": 1}}]}, "belong to no ratio"),
        ({"statements": None}, "statements is missing"),
    ],
)
def test_refusals_name_the_field(change: dict[str, Any], told: str) -> None:
    given = payload() | {"signatures": [{"name": "x", "weight": 1, "profile": [1], "shifts": {"receivables": 1}}]}
    with pytest.raises(InputError, match=told):
        signature_match(given | change)
