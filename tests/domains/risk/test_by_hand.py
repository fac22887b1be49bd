"""What the programs answer to the risk subtasks: arithmetic by hand."""

import pytest

from finskillbench.arrays import FACTORS
from finskillbench.domains import subtask_named
from finskillbench.episode import JsonObject
from finskillbench.harness.programs.program import naive_answer

RISK = ("constraint_monitoring", "risk_identification", "stress_testing", "risk_remediation")
PORTFOLIO = {
    "portfolio_id": "P001",
    "holdings": [
        {"symbol": "AAA", "weight": 0.30},
        {"symbol": "BBB", "weight": 0.25},
        {"symbol": "CCC", "weight": 0.20},
        {"symbol": "DDD", "weight": 0.15},
        {"symbol": "EEE", "weight": 0.0005},
    ],
    "cash_weight": 0.0995,
    "total_nav": 1e8,
    "trades_this_month": {"AAA": 0.02},
}
SECTORS = {"AAA": "Technology", "BBB": "Technology", "CCC": "Energy", "DDD": "Utilities", "EEE": "Energy"}


def by_hand(sub_task: str, data: JsonObject) -> JsonObject:
    """What the subtask's arithmetic makes of the fields; an empty answer where there is none."""
    return naive_answer(subtask_named(sub_task).baselines.no_skill, data)


def task(*constraints: JsonObject) -> JsonObject:
    """The fields that by-hand answers read."""
    return {
        "portfolio": PORTFOLIO,
        "sector_mapping": SECTORS,
        "mandate": {"mandate_id": "m", "name": "M", "constraints": list(constraints)},
        "factor_exposures": {name: dict.fromkeys(FACTORS, 0.2) | {"mkt_rf": 1.0, "smb": 0.5} for name in SECTORS},
        "stress_scenario": {
            "factor_shocks": dict.fromkeys(FACTORS, 0.0) | {"mkt_rf": -0.2, "smb": -0.05},
            "sector_sensitivities": {"Technology": 0.0, "Energy": -0.1, "Utilities": 0.0},
        },
    }


def monitored(constraint: JsonObject) -> JsonObject:
    """The one entry that a mandate of one constraint gets."""
    (entry,) = by_hand("constraint_monitoring", task(constraint))["constraints"]
    return entry


@pytest.mark.parametrize(
    ("constraint", "status", "value", "magnitude", "worst"),
    [
        ({"type": "long_only", "value": True}, "PASS", 0.0005, None, {"worst_symbol": "EEE"}),
        ({"type": "position_limit_max", "value": 0.25}, "FAIL", 0.30, 0.05, {"worst_symbol": "AAA"}),
        ({"type": "position_limit_min", "value": 0.01}, "FAIL", 0.0005, 0.0095, {"worst_symbol": "EEE"}),
        ({"type": "sector_limit_max", "value": 0.5}, "FAIL", 0.55, 0.05, {"worst_sector": "Technology"}),
        ({"type": "cash_max", "value": 0.0995}, "PASS", 0.0995, None, {}),
        ({"type": "turnover_max_monthly", "value": 0.015}, "FAIL", 0.02, 0.005, {}),
        ({"type": "gross_exposure_max", "value": 1.0}, "PASS", 0.9005, None, {}),
        ({"type": "hhi_max", "value": 0.2}, "FAIL", 0.21500025, 0.01500025, {}),
        ({"type": "name_count", "min": 5, "max": None}, "FAIL", 4.0, 1.0, {}),
        ({"type": "name_count", "min": 2, "max": 4}, "PASS", 4.0, None, {}),
    ],
)
def test_monitoring_measures_what_sums_can(constraint, status, value, magnitude, worst) -> None:
    entry = monitored(constraint)
    assert (entry["type"], entry["status"]) == (constraint["type"], status)
    assert entry["value"] == pytest.approx(value, abs=1e-15)
    assert entry.get("violation_magnitude") == (magnitude if magnitude is None else pytest.approx(magnitude))
    assert {key: entry[key] for key in entry if key.startswith("worst")} == worst


def test_monitoring_leaves_out_what_it_cannot_know_and_judges_by_the_rest() -> None:
    unknown = [
        {"type": "beta_range", "min": 0.9, "max": 1.1},
        {"type": "tracking_error_max", "value": 0.05},
        {"type": "factor_exposure_max", "factors": ["smb"], "value": 0.2},
    ]
    assert by_hand("constraint_monitoring", task(*unknown)) == {
        "overall_compliant": True,
        "violations_count": 0,
        "constraints": [],
    }
    answer = by_hand("constraint_monitoring", task(*unknown, {"type": "hhi_max", "value": 0.1}))
    assert (answer["overall_compliant"], answer["violations_count"], len(answer["constraints"])) == (False, 1, 1)


def test_a_portfolio_of_cash_alone_has_no_position_to_measure() -> None:
    cash = {**PORTFOLIO, "holdings": [], "cash_weight": 1.0}
    limits = [{"type": kind, "value": 0.5} for kind in ("position_limit_max", "sector_limit_max", "cash_max")]
    data = {**task(*limits), "portfolio": cash}
    assert [entry["type"] for entry in by_hand("constraint_monitoring", data)["constraints"]] == ["cash_max"]
    (exposure,) = by_hand("risk_identification", data)["top_risk_exposures"]
    assert (exposure["type"], exposure["magnitude"]) == ("concentration", 0.0)
    assert by_hand("risk_remediation", data)["trades"] == []


def test_identification_ranks_sector_name_and_herfindahl_index() -> None:
    exposures = by_hand("risk_identification", task())["top_risk_exposures"]
    assert [(item["rank"], item["type"], item["subject"]) for item in exposures] == [
        (1, "sector_concentration", "Technology"),
        (2, "single_name", "AAA"),
        (3, "concentration", "portfolio"),
    ]
    assert [item["magnitude"] for item in exposures] == pytest.approx([0.55, 0.30, 0.21500025])


def test_stress_follows_the_printed_definitions() -> None:
    """Betas of 1 on the market and 0.5 on smb; Energy, 20.05 % of NAV, falls by another tenth."""
    answer = by_hand("stress_testing", task())
    energy = 0.2005 * (-0.2 - 0.5 * 0.05 - 0.1)
    assert answer["estimated_pnl_pct"] == pytest.approx(0.9005 * (-0.2 - 0.5 * 0.05) - 0.1 * 0.2005)
    by_sector = {row["sector"]: row["contribution_pct"] for row in answer["attribution"]["by_sector"]}
    assert by_sector == pytest.approx({"Technology": 0.55 * -0.225, "Energy": energy, "Utilities": 0.15 * -0.225})
    by_factor = {row["factor"]: row["contribution_pct"] for row in answer["attribution"]["by_factor"]}
    moved = {"mkt_rf": -0.2 * 0.9005, "smb": -0.05 * 0.5 * 0.9005, "sector_sensitivity": -0.1 * 0.2005}
    assert by_factor == pytest.approx(dict.fromkeys(FACTORS, 0.0) | moved)


def test_remediation_cuts_to_both_caps_and_reports_its_own_turnover() -> None:
    caps = {"type": "position_limit_max", "value": 0.26}, {"type": "sector_limit_max", "value": 0.45}
    answer = by_hand("risk_remediation", task(*caps))
    after = {item["symbol"]: item["weight"] for item in PORTFOLIO["holdings"]}
    for trade in answer["trades"]:
        assert trade["current_weight"] == after[trade["symbol"]]
        assert trade["trade_pct"] == pytest.approx(trade["target_weight"] - trade["current_weight"], abs=1e-15)
        assert trade["action"] == ("buy" if trade["trade_pct"] > 0 else "sell")
        after[trade["symbol"]] = trade["target_weight"]
    assert max(after.values()) <= 0.26 + 1e-12
    assert after["AAA"] + after["BBB"] == pytest.approx(0.45)
    # What was cut has been spread: the invested weight is what it was, so one-way turnover is the sales.
    assert sum(after.values()) == pytest.approx(0.9005)
    sales = -sum(trade["trade_pct"] for trade in answer["trades"] if trade["action"] == "sell")
    assert answer["total_turnover"] == pytest.approx(sales)
    assert answer["post_trade_compliant"] is True


def test_what_finds_no_room_stays_in_cash() -> None:
    answer = by_hand("risk_remediation", task({"type": "position_limit_max", "value": 0.1}))
    targets = [trade["target_weight"] for trade in answer["trades"]]
    assert targets == pytest.approx([0.1] * len(targets))
    net = sum(trade["trade_pct"] for trade in answer["trades"])
    assert net < 0
    gross = sum(abs(trade["trade_pct"]) for trade in answer["trades"])
    assert answer["total_turnover"] == pytest.approx((gross - net) / 2)


def test_without_caps_nothing_is_traded() -> None:
    assert by_hand("risk_remediation", task({"type": "hhi_max", "value": 0.1}))["trades"] == []


@pytest.mark.parametrize("sub_task", RISK)
def test_arithmetic_reads_only_the_fields_that_it_asks_for(sub_task: str) -> None:
    data = task({"type": "hhi_max", "value": 0.1})
    assert by_hand(
        sub_task, {field: data[field] for field in subtask_named(sub_task).baselines.no_skill.fields}
    ) == by_hand(sub_task, data)


@pytest.mark.parametrize("sub_task", RISK)
def test_what_an_imported_episode_only_names_is_not_answered(sub_task: str) -> None:
    data = {
        "portfolio": {"holdings": [{"symbol": "AAA", "weight": 1.0}], "cash_weight": 0.0},
        "mandate": {"mandate_id": "mandate_balanced_01"},
        "stress_scenario": {"scenario_id": "stress_rates_down_100"},
    }
    assert by_hand(sub_task, data) == {}
