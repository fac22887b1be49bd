"""Validation: a built edition passes, and each planted defect fails its own check and no other."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from typing import Any

import numpy as np
import orjson
import polars as pl
import pytest

from finskillbench.domains import domains
from finskillbench.edition import Edition, load_edition
from finskillbench.edition.validation import State, ValidationReport, checks_of, validate_edition
from finskillbench.engines.statistics.covariance import ledoit_wolf
from finskillbench.panels import read_panels
from finskillbench.panels.store import covariance_bytes

MONTH_END = date(2025, 1, 31)


PORTFOLIO = "portfolio_construction"


CHECKS = {domain.name: checks_of(domain) for domain in domains()}


def failed(report: ValidationReport) -> set[tuple[str, str]]:
    return {(check.domain, check.name) for check in report.checks if check.state is State.FAIL}


def test_a_built_edition_passes_every_check(synthetic_report: ValidationReport) -> None:
    report = synthetic_report
    assert [(check.domain, check.name) for check in report.checks] == [
        (domain, name) for domain, checks in CHECKS.items() for name in checks
    ]
    assert {domain: len(checks) for domain, checks in CHECKS.items()} == {
        "portfolio_construction": 9,
        "risk_management": 11,
        "fundamental_analysis": 12,
    }
    assert [(f.where, f.message) for check in report.checks for f in check.findings if f.state is State.FAIL] == []
    assert report.counts[State.SKIP] == 0
    assert report.passed
    figures = {check.name: check.figures for check in report.checks if check.domain == PORTFOLIO}
    assert figures["coverage"]["rebalancing"]["episodes"] == 40
    assert figures["certificates"]["recomputed"] + figures["certificates"]["branched"] == 240
    assert figures["certificates"]["refuted"] == figures["certificates"]["witnesses"] == 20
    assert figures["certificates"]["greatest_gap"] <= 1e-7
    assert figures["truth"]["greatest_excess"] <= 1e-9
    assert orjson.loads(orjson.dumps(report.to_json())) == report.to_json()  # no NumPy scalar among the figures


def _frame(name: str, change: Callable[[pl.DataFrame], pl.DataFrame]) -> Callable[[Any], None]:
    def plant(workshop: Any) -> None:
        path = workshop.folder / "panels" / f"{name}.parquet"
        change(pl.read_parquet(path)).write_parquet(path)

    return plant


def _first(column: str, value: pl.Expr) -> Callable[[pl.DataFrame], pl.DataFrame]:
    """Change the first row of the first month-end."""

    def change(frame: pl.DataFrame) -> pl.DataFrame:
        symbol = frame["symbol"][0]
        here = (pl.col("date") == MONTH_END) & (pl.col("symbol") == symbol)
        return frame.with_columns(pl.when(here).then(value).otherwise(pl.col(column)).alias(column))

    return change


def _jump(frame: pl.DataFrame) -> pl.DataFrame:
    column = next(name for name in frame.columns if name.startswith("adj_close:"))
    return frame.with_columns(
        pl.when(pl.col("date") == date(2017, 6, 1)).then(pl.col(column) * 1.5).otherwise(pl.col(column)).alias(column)
    )


def _row(part: str, sub_task: str, change: Callable[[dict[str, Any]], Any], index: int = 0) -> Callable[[Any], None]:
    return lambda workshop: workshop.edit(part, sub_task, change, index)


def _daily_covariance(workshop: Any) -> None:
    """The factor form in daily units beside a dense matrix in annual ones."""
    path = workshop.folder / "panels" / "covariance" / f"{MONTH_END}.npz"
    with np.load(path) as stored:
        arrays = dict(stored)
    np.savez(path, **{**arrays, "loadings": arrays["loadings"] / 252**0.5, "specific": arrays["specific"] / 252})


def _rename(workshop: Any) -> None:
    for part in ("episodes", "truth", "certificates"):
        workshop.edit(part, "rebalancing", lambda row: row.update(task_id="pc_con_1"))


def _other_sector(workshop: Any) -> None:
    def rename(panels: dict[str, Any]) -> None:
        sectors = panels["sectors"]
        panels["sectors"] = {s: "Financials" if name == "Financial Services" else name for s, name in sectors.items()}

    workshop.edit_json("panels/panels.json", rename)


def _shift(row: dict[str, Any], field: str = "weights") -> None:
    """Move a thousandth from the largest weight to the smallest."""
    weights = row["expected_output"][field]
    ranked = sorted(weights, key=lambda ticker: weights[ticker])
    weights[ranked[-1]] -= 0.001
    weights[ranked[0]] += 0.001


def _flip_trade(row: dict[str, Any]) -> None:
    trades = row["expected_output"]["trade_list"]
    first = next(iter(trades))
    trades[first] = -trades[first]


def _scale_posterior(row: dict[str, Any]) -> None:
    returns = row["expected_output"]["posterior_returns"]
    returns.update({ticker: value / 252 for ticker, value in returns.items()})


def _flip_flag(row: dict[str, Any]) -> None:
    row["expected_output"]["constraint_satisfaction"]["min_names"] = False


def _flip_verdict(row: dict[str, Any]) -> None:
    row["expected_output"]["feasible"] = not row["expected_output"]["feasible"]


def _drop_limit(row: dict[str, Any]) -> None:
    row["expected_output"]["optimizer_call"]["constraints"].pop("max_weight", None)
    row["expected_output"]["optimizer_call"]["objective"] = "max_return"


def _perturb(row: dict[str, Any]) -> None:
    certificate = row["certificate"]
    certificate = certificate.get("stage_2", certificate)
    certificate["multipliers"] = [value + 0.01 for value in certificate["multipliers"]]


def _spoil_refutation(row: dict[str, Any]) -> None:
    if "farkas" in row["certificate"]:
        row["certificate"]["farkas"]["ray"] = [-value for value in row["certificate"]["farkas"]["ray"]]
    else:
        row["certificate"]["witness"] = np.roll(row["certificate"]["witness"], 1).tolist()


DEFECTS = {
    "coverage: truth inside an episode": (
        "coverage",
        _row("episodes", "rebalancing", lambda row: row["input"].update(expected_output={"turnover": 0.1})),
    ),
    "coverage: a task of another prefix": ("coverage", _rename),
    "coverage: fewer episodes than counted": (
        "coverage",
        lambda workshop: workshop.edit_json("manifest.json", lambda m: m["counts"].update(rebalancing=6)),
    ),
    "prices: a jump": ("prices", _frame("prices", _jump)),
    "trading_days: a Saturday": (
        "trading_days",
        _row("episodes", "tool_use_parameterization", lambda row: row.update(as_of_date="2025-02-01")),
    ),
    "trading_days: a session that ends no month": (
        "trading_days",
        _row("episodes", "tool_use_parameterization", lambda row: row.update(as_of_date="2025-02-03")),
    ),
    "trading_days: a portfolio of the future": (
        "trading_days",
        _row("episodes", "rebalancing", lambda row: row["input"].update(current_portfolio_date="2026-01-02")),
    ),
    "point_in_time: shares not yet published": (
        "point_in_time",
        _frame("benchmark_weights", _first("shares_as_of", pl.col("date").dt.offset_by("-89d"))),
    ),
    "point_in_time: earnings not yet published": (
        "point_in_time",
        _frame("views", _first("earnings_as_of", pl.col("date").dt.offset_by("-1d"))),
    ),
    "point_in_time: the rate of another day": (
        "point_in_time",
        _row("episodes", "rebalancing", lambda row: row["input"].update(risk_free_rate=0.5)),
    ),
    "covariance: daily units": ("covariance", _daily_covariance),
    "benchmark: a capitalisation without its shares": (
        "benchmark",
        _frame("benchmark_weights", _first("market_cap_usd", pl.col("market_cap_usd") * 1.01)),
    ),
    "taxonomy: two names of a sector": ("taxonomy", _other_sector),
    "taxonomy: another definition": (
        "taxonomy",
        _row("episodes", "rebalancing", lambda row: row["input"]["conventions"].update(max_turnover="both ways")),
    ),
    "taxonomy: a limit without its definition": (
        "taxonomy",
        _row("episodes", "rebalancing", lambda row: row["input"]["conventions"].pop("sector_limits")),
    ),
    "truth: other weights": ("truth", _row("truth", "unconstrained_optimization", _shift)),
    "truth: weights beyond their limits": ("truth", _row("truth", "constrained_optimization", _shift)),
    "truth: a wrong flag": ("truth", _row("truth", "constrained_optimization", _flip_flag)),
    "truth: a trade of the wrong sign": ("truth", _row("truth", "rebalancing", _flip_trade)),
    "truth: other turnover": (
        "truth",
        _row("truth", "rebalancing", lambda row: row["expected_output"].update(turnover=0.25)),
    ),
    "truth: a daily posterior": ("truth", _row("truth", "black_litterman", _scale_posterior)),
    "truth: other optimal weights": (
        "truth",
        _row("truth", "black_litterman", lambda row: _shift(row, "optimal_weights")),
    ),
    "truth: a call the text does not imply": ("truth", _row("truth", "tool_use_parameterization", _drop_limit)),
    "truth: the wrong verdict": ("truth", _row("truth", "infeasibility_detection", _flip_verdict)),
    "truth: an optimum the zero beats": (
        "truth",
        _row("truth", "unconstrained_optimization", lambda row: row["verification"].update(trivial_value=-1.0)),
    ),
    "truth: another turnover of stage 1": (
        "truth",
        _row("truth", "rebalancing", lambda row: row["verification"].update(stage_1_turnover=0.9)),
    ),
    "truth: a zero that is not the trivial answer's": (
        "truth",
        _row("truth", "constrained_optimization", lambda row: row["verification"].update(trivial_value=9.0)),
    ),
    "truth: judged by another method": (
        "truth",
        _row("truth", "black_litterman", lambda row: row["verification"].update(method="exact_match")),
    ),
    "certificates: other multipliers": ("certificates", _row("certificates", "unconstrained_optimization", _perturb)),
    "certificates: other multipliers of stage 2": ("certificates", _row("certificates", "rebalancing", _perturb)),
    **{
        f"certificates: refutation or witness {index}": (
            "certificates",
            _row("certificates", "infeasibility_detection", _spoil_refutation, index),
        )
        for index in range(5)
    },
    "certificates: uniqueness not proved": (
        "certificates",
        _row("certificates", "black_litterman", lambda row: row["certificate"].update(unique=False)),
    ),
}
"""What is planted: the check that must fail, alone, and how."""


@pytest.mark.parametrize(("check", "plant"), DEFECTS.values(), ids=DEFECTS)
def test_a_planted_defect_fails_its_check_alone(check: str, plant: Callable[[Any], None], workshop: Any) -> None:
    plant(workshop)
    # The risk episodes share the panels, so that a defect there may fail one of their checks too.
    report = workshop.validated(PORTFOLIO)
    told = [(c.name, f.where, f.message) for c in report.checks for f in c.findings if f.state is State.FAIL]
    assert failed(report) == {(PORTFOLIO, check)}, told


def test_the_slim_edition_has_refutations_and_witnesses(slim: Edition) -> None:
    """Else the planted defects of either would be no test."""
    verdicts = {slim.truth(e.task_id).expected_output["feasible"] for e in slim.episodes(["infeasibility_detection"])}
    assert verdicts == {True, False}
    assert failed(validate_edition(slim)) == set()


def test_a_covariance_that_looks_ahead(workshop: Any) -> None:
    """Two checks see it, for the labels were not made with it: the dense matrix stays."""
    panels = read_panels(workshop.folder / "panels")
    days = panels.prices["date"].to_list()
    later = days[days.index(MONTH_END) + 21]
    estimate = ledoit_wolf(panels.window_returns(later, 252)[1], panels.symbols).covariance
    (workshop.folder / "panels" / "covariance" / f"{MONTH_END}.npz").write_bytes(covariance_bytes(estimate))
    report = workshop.validated(PORTFOLIO)
    found = next(check for check in report.checks if check.name == "point_in_time").findings
    assert [(f.where, f.message) for f in found] == [
        (f"covariance {MONTH_END}", "its window ends +21 sessions off: it looks ahead")
    ]
    assert (PORTFOLIO, "covariance") in failed(report)


def test_an_asymmetric_matrix(workshop: Any) -> None:
    path = workshop.folder / "panels" / "covariance" / f"{MONTH_END}.npz"
    with np.load(path) as stored:
        arrays = dict(stored)
    arrays["cov"][0, 1] *= 1.01
    np.savez(path, **arrays)
    report = workshop.validated(PORTFOLIO)
    messages = [f.message for check in report.checks if check.name == "covariance" for f in check.findings]
    assert "the dense matrix is not symmetric" in messages


def test_unreadable_panels_are_findings_not_errors(workshop: Any) -> None:
    (workshop.folder / "panels" / "prices.parquet").write_bytes(b"PAR1")
    names = {"prices", "trading_days", "point_in_time", "covariance"}
    assert failed(workshop.validated()) >= {(PORTFOLIO, name) for name in names}


def test_a_table_without_a_column_is_a_finding(workshop: Any) -> None:
    _frame("views", lambda frame: frame.drop("earnings_as_of"))(workshop)
    report = workshop.validated()
    assert (PORTFOLIO, "point_in_time") in failed(report)


def test_without_truth_its_checks_are_skipped(workshop: Any) -> None:
    for part in ("truth", "certificates"):
        shutil.rmtree(workshop.folder / part)
    report = validate_edition(load_edition(workshop.folder))
    skipped = {check.name: check.reason for check in report.checks if check.state is State.SKIP}
    assert set(skipped) == {
        *("truth", "certificates", "monitoring", "identification", "stress", "remediation"),
        *("normalization", "earnings_quality", "driver_decomposition"),
    }
    assert report.passed


def test_a_malformed_label_is_a_finding(workshop: Any) -> None:
    workshop.edit("truth", "unconstrained_optimization", lambda row: row["expected_output"].clear())
    report = workshop.validated()
    assert failed(report) == {(PORTFOLIO, "truth")}
    finding = next(f for check in report.checks for f in check.findings if f.state is State.FAIL)
    assert finding.where == workshop.rows("truth", "unconstrained_optimization")[0]["task_id"]
    assert finding.message == "malformed: KeyError: 'weights'"


def test_progress_names_each_check(slim: Edition) -> None:
    steps: list[str] = []
    validate_edition(replace(slim), steps.append)
    assert steps == [
        f"checking {domain.replace('_', ' ')}: {name}" for domain, checks in CHECKS.items() for name in checks
    ]
