"""Defects of risk episodes, each with the check that must find it: changes of one row of an edition's files."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tests.edition.conftest import Workshop

from finskillbench.domains import domains, subtasks
from finskillbench.domains.risk.objects.recipes import LEAST
from finskillbench.edition.checks.catalog import checks_of

RISK = "risk_management"
Row = dict[str, Any]
Change = Callable[[Row], Any]
CHECKS = {domain.name: checks_of(domain) for domain in domains()}


def at(
    part: str, sub_task: str, change: Change, which: Callable[[Row], Any] = lambda episode: True
) -> Callable[[Workshop], None]:
    """Change a row of a part: that of the first episode of the subtask for which `which` holds."""

    def plant(workshop: Workshop) -> None:
        rows = [
            label | episode
            for label, episode in zip(
                workshop.rows("truth", sub_task), workshop.rows("episodes", sub_task), strict=True
            )
        ]
        index = next(place for place, row in enumerate(rows) if which(row))
        workshop.edit(part, sub_task, change, index)

    return plant


def _rename(workshop: Workshop) -> None:
    for part in ("episodes", "truth", "certificates"):
        workshop.edit(part, "stress_testing", lambda row: row.update(task_id="pc_con_1"))


def _of(*types: str) -> Callable[[Row], bool]:
    return lambda row: row["verification"]["portfolio_type"] in types


def of_kind(kind: str) -> Callable[[Row], bool]:
    return lambda row: row["input"]["stress_scenario"]["type"] == kind


def _not_held(row: Row) -> str:
    held = {item["symbol"] for item in row["input"]["portfolio"]["holdings"]}
    return next(ticker for ticker in row["input"]["sector_mapping"] if ticker not in held)


def _more_volume(row: Row) -> None:
    row["input"]["average_daily_volume_usd"][_not_held(row)] *= 1.01


def _not_concentrated(row: Row) -> bool:
    given = row["input"]
    totals: dict[str, float] = {}
    for item in given["portfolio"]["holdings"]:
        sector = given["sector_mapping"][item["symbol"]]
        totals[sector] = totals.get(sector, 0.0) + item["weight"]
    largest = max(abs(item["weight"]) for item in given["portfolio"]["holdings"])
    return max(totals.values()) < LEAST["sector"] or largest < LEAST["name"]


def _bought_too_much(row: Row) -> None:
    held = row["input"]["portfolio"]["holdings"][0]
    row["input"]["portfolio"]["trades_this_month"][held["symbol"]] = held["weight"] + 0.01


def _flip_status(row: Row) -> None:
    entry = row["expected_output"]["constraints"][0]
    entry["status"] = "FAIL" if entry["status"] == "PASS" else "PASS"


def _add(*path: Any, amount: float) -> Change:
    """Add to a number that the path leads to."""

    def change(row: Row) -> None:
        value: Any = row
        for key in path[:-1]:
            value = value[key]
        value[path[-1]] += amount

    return change


def _swap_ranks(row: Row) -> None:
    listed = row["expected_output"]["top_risk_exposures"]
    listed[0], listed[1] = listed[1], listed[0]


def _rank_one_twice(row: Row) -> None:
    listed = row["expected_output"]["top_risk_exposures"]
    listed[1] = listed[0] | {"rank": 2}


def _perturb(row: Row) -> None:
    stage = row["certificate"]["least_turnover"]
    stage["multipliers"] = [value + 0.01 for value in stage["multipliers"]]


def _unbranched(workshop: Workshop) -> None:
    """Multipliers prove the least turnover; where names were branched on, the stage is solved again."""
    rows = workshop.rows("certificates", "risk_remediation")
    index = next(i for i, row in enumerate(rows) if "least_turnover" in row["certificate"])
    workshop.edit("certificates", "risk_remediation", _perturb, index)


def _of_least_cost(part: str, change: Callable[[Row], Any]) -> Callable[[Workshop], None]:
    """Change a part of the first remediation that can be mended."""

    def plant(workshop: Workshop) -> None:
        rows = workshop.rows("certificates", "risk_remediation")
        index = next(i for i, row in enumerate(rows) if "least_cost" in row["certificate"])
        workshop.edit(part, "risk_remediation", change, index)

    return plant


def _define_otherwise(row: Row) -> None:
    row["input"]["mandate"]["constraints"][0]["definition"] = "no more than most"


OUTPUT = "expected_output"
DEFECTS: dict[str, tuple[str, Callable[[Workshop], None]]] = {
    "coverage: truth inside an episode": (
        "coverage",
        at("episodes", "stress_testing", lambda row: row["input"].update(expected_output={"estimated_pnl_pct": 0.1})),
    ),
    "coverage: a task of another prefix": ("coverage", _rename),
    "coverage: fewer episodes than counted": (
        "coverage",
        lambda workshop: workshop.edit_json("manifest.json", lambda m: m["counts"].update(risk_identification=6)),
    ),
    "dates: of another regime": (
        "dates",
        at("truth", "risk_identification", lambda row: row["verification"].update(regime="calm")),
    ),
    "dates: a Saturday": (
        "dates",
        at(
            "episodes",
            "stress_testing",
            lambda row: row.update(as_of_date="2026-01-03"),
            _of("concentrated", "factor_tilted", "mandate_violating"),
        ),
    ),
    "point_in_time: the volume of another day": ("point_in_time", at("episodes", "risk_identification", _more_volume)),
    "point_in_time: the volatility of another window": (
        "point_in_time",
        at(
            "episodes",
            "risk_identification",
            _add("input", "factor_volatility", "hml", amount=1e-4),
            lambda row: all(one["subject"] != "hml" for one in row[OUTPUT]["top_risk_exposures"]),
        ),
    ),
    "portfolios: no NAV": (
        "portfolios",
        at(
            "episodes",
            "stress_testing",
            lambda row: row["input"]["portfolio"].update(total_nav=-1.0),
            lambda row: not _of("liquidity_stressed")(row),
        ),
    ),
    "portfolios: cash that does not add up": (
        "portfolios",
        at("episodes", "stress_testing", _add("input", "portfolio", "cash_weight", amount=0.01)),
    ),
    "portfolios: an id that tells the type": (
        "portfolios",
        at(
            "episodes",
            "risk_identification",
            lambda row: row["input"]["portfolio"].update(portfolio_id="portfolio_concentrated_000"),
        ),
    ),
    "mandates: another definition": ("mandates", at("episodes", "constraint_monitoring", _define_otherwise)),
    "scenarios: a story that its shocks do not tell": (
        "scenarios",
        at(
            "episodes",
            "stress_testing",
            _add("input", "stress_scenario", "market_shocks", "equity_change_pct", amount=1.0),
        ),
    ),
    "coverage: a type told by the metadata": (
        "coverage",
        at("episodes", "stress_testing", lambda row: row["metadata"].update(portfolio_type="concentrated")),
    ),
    "planted_risks: bought more than is held": (
        "planted_risks",
        at("episodes", "risk_identification", _bought_too_much),
    ),
    "planted_risks: a risk that is not there": (
        "planted_risks",
        at(
            "truth",
            "risk_identification",
            lambda row: row["verification"].update(portfolio_type="concentrated"),
            _not_concentrated,
        ),
    ),
    "constraint_monitoring: another value": (
        "constraint_monitoring",
        at("truth", "constraint_monitoring", _add(OUTPUT, "constraints", 0, "value", amount=1e-6)),
    ),
    "constraint_monitoring: another status": (
        "constraint_monitoring",
        at("truth", "constraint_monitoring", _flip_status),
    ),
    "constraint_monitoring: another count": (
        "constraint_monitoring",
        at("truth", "constraint_monitoring", _add(OUTPUT, "violations_count", amount=1)),
    ),
    "constraint_monitoring: another definition": (
        "constraint_monitoring",
        at("episodes", "constraint_monitoring", lambda row: row["input"]["conventions"].update(units="percent")),
    ),
    "risk_identification: another magnitude": (
        "risk_identification",
        at("truth", "risk_identification", _add(OUTPUT, "top_risk_exposures", 0, "magnitude", amount=1e-6)),
    ),
    "risk_identification: another order": ("risk_identification", at("truth", "risk_identification", _swap_ranks)),
    "risk_identification: an exposure twice": (
        "risk_identification",
        at("truth", "risk_identification", _rank_one_twice),
    ),
    "stress_testing: another P&L": (
        "stress_testing",
        at("truth", "stress_testing", _add(OUTPUT, "estimated_pnl_pct", amount=1e-6)),
    ),
    "stress_testing: another attribution": (
        "stress_testing",
        at("truth", "stress_testing", _add(OUTPUT, "attribution", "by_factor", 0, "contribution_pct", amount=1e-6)),
    ),
    "stress_testing: a sector left out": (
        "stress_testing",
        at("truth", "stress_testing", lambda row: row[OUTPUT]["attribution"]["by_sector"].pop()),
    ),
    "risk_remediation: another trade": (
        "risk_remediation",
        at("truth", "risk_remediation", _add(OUTPUT, "trades", 0, "trade_pct", amount=0.001)),
    ),
    "risk_remediation: another turnover": (
        "risk_remediation",
        at("truth", "risk_remediation", _add(OUTPUT, "total_turnover", amount=0.001)),
    ),
    "risk_remediation: the wrong verdict": (
        "risk_remediation",
        at(
            "truth",
            "risk_remediation",
            lambda row: row[OUTPUT].update(post_trade_compliant=not row[OUTPUT]["post_trade_compliant"]),
        ),
    ),
    "risk_remediation: a least that is not the certified one": (
        "risk_remediation",
        _of_least_cost("truth", _add("verification", "least_cost", amount=-0.001)),
    ),
    "risk_remediation: other multipliers": ("risk_remediation", _unbranched),
    "risk_remediation: a value that is not proved": (
        "risk_remediation",
        _of_least_cost("certificates", _add("certificate", "least_cost", "objective", amount=0.001)),
    ),
    "risk_remediation: violations that are none": (
        "risk_remediation",
        at("episodes", "risk_remediation", lambda row: row["input"].update(violations=[])),
    ),
}
"""What is planted: the check that must fail, alone, and how."""


def _another_figure(label: Row) -> None:
    """Add 1 to the first number of a label's expected output."""
    inside: Any = label[OUTPUT]
    while True:
        keys: Iterable[Any] = inside if hasattr(inside, "keys") else range(len(inside))
        place = next(key for key in keys if type(inside[key]) in (float, dict, list))
        if type(inside[place]) is float:
            inside[place] += 1.0
            return
        inside = inside[place]


DEFECTS.update(
    {
        f"{name}: another figure": (name, at("truth", name, _another_figure))
        for name in CHECKS[RISK].keys()
        & {subtask.name for subtask in subtasks()} - {check for check, _ in DEFECTS.values()}
    }
)
"""A subtask for which nothing is planted above has at least a label altered."""
