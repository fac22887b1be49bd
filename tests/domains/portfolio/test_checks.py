# pyright: basic
"""Validation of portfolio construction: each planted defect fails its own check and no other."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.sampling import sampled

from finskillbench.domains.portfolio.definitions import moved
from finskillbench.edition import Edition
from finskillbench.edition.checks.catalog import CheckReport
from finskillbench.edition.checks.engine import validate_edition
from finskillbench.engines.statistics.covariance import ledoit_wolf
from finskillbench.findings import CheckState
from finskillbench.panels import read_panels
from finskillbench.panels.store import covariance_bytes

PORTFOLIO = "portfolio_construction"
MONTH_END = date(2025, 2, 28)


@pytest.fixture(scope="session")
def edition(synthetic_edition: Edition) -> Edition:
    """What is planted is planted in copies of the synthetic edition."""
    return synthetic_edition


def failed(report: CheckReport) -> set[str]:
    """The names of the portfolio checks that failed."""
    return {check.name for check in report.checks if check.domain == PORTFOLIO and check.state is CheckState.FAIL}


def test_every_certificate_of_a_built_edition_is_repeated(synthetic_report: CheckReport) -> None:
    figures = {check.name: check.figures for check in synthetic_report.checks if check.domain == PORTFOLIO}
    optimised = [name for name in figures["coverage"] if "recomputed" in figures.get(name, {})]
    for name in optimised:
        stages = 2 if name == "rebalancing" else 1
        repeated = figures[name]["recomputed"] + figures[name].get("branched", 0)
        assert repeated == stages * figures["coverage"][name]["episodes"], name
        assert figures[name]["greatest_gap"] <= 1e-7, name
        assert figures[name].get("greatest_excess", 0.0) <= 1e-9, name
    assert len(optimised) == 5
    decided = figures["infeasibility_detection"]
    assert decided["refuted"] == decided["witnesses"] == 20


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
        pl.when(pl.col("date") == date(2016, 1, 8)).then(pl.col(column) * 1.5).otherwise(pl.col(column)).alias(column)
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


def _narrow_verdict(workshop: Any) -> None:
    """The limit to relax of a feasible case moved to within two basis points of its least value."""
    truths = workshop.rows("truth", "infeasibility_detection")
    index = next(i for i, row in enumerate(truths) if row["expected_output"]["feasible"])
    value = truths[index]["expected_output"]["least_attainable"] + 2e-4

    def narrow(row: dict[str, Any]) -> None:
        row["input"] = moved(row["input"], row["input"]["limit_to_relax"], value)

    _row("episodes", "infeasibility_detection", narrow, index)(workshop)


def _drop_limit(row: dict[str, Any]) -> None:
    row["expected_output"]["optimizer_call"]["constraints"].pop("max_weight", None)
    row["expected_output"]["optimizer_call"]["objective"] = "max_return"


def _perturb(row: dict[str, Any]) -> None:
    certificate = row["certificate"]
    certificate = certificate.get("stage_1", certificate)
    certificate["multipliers"] = [value + 0.01 for value in certificate["multipliers"]]


def _spoil_refutation(row: dict[str, Any]) -> None:
    if "farkas" in row["certificate"]:
        ray = row["certificate"]["farkas"]["ray"]
        ray |= {limit: [-value for value in values] for limit, values in ray.items()}
    else:
        stored = row["certificate"]["least_attainable"]
        stored["weights"] = np.roll(stored["weights"], 1).tolist()


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
        _frame("benchmark_weights", _first("shares_known", pl.col("date").dt.offset_by("1d"))),
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
    "benchmark: a share count without its capitalisation": (
        "benchmark",
        _frame("benchmark_weights", _first("shares", pl.col("shares") * 1.01)),
    ),
    "expected_returns: an alpha without its premium": (
        "expected_returns",
        _frame("views", _first("equilibrium_premium", pl.lit(0.0))),
    ),
    "taxonomy: two names of a sector": ("taxonomy", _other_sector),
    "rebalancing: another definition": (
        "rebalancing",
        _row("episodes", "rebalancing", lambda row: row["input"]["conventions"].update(max_turnover="both ways")),
    ),
    "rebalancing: another improvement than is reached": (
        "rebalancing",
        _row("episodes", "rebalancing", lambda row: row["input"].update(required_improvement=0.81)),
    ),
    "rebalancing: a minimum trade that is missed": (
        "rebalancing",
        _row("episodes", "rebalancing", lambda row: row["input"].update(min_trade=0.02)),
    ),
    "rebalancing: a limit without its definition": (
        "rebalancing",
        _row("episodes", "rebalancing", lambda row: row["input"]["conventions"].pop("sector_limits")),
    ),
    "unconstrained_optimization: other weights": (
        "unconstrained_optimization",
        _row("truth", "unconstrained_optimization", _shift),
    ),
    "constrained_optimization: weights beyond their limits": (
        "constrained_optimization",
        _row("truth", "constrained_optimization", _shift),
    ),
    "constrained_optimization: a wrong flag": (
        "constrained_optimization",
        _row("truth", "constrained_optimization", _flip_flag),
    ),
    "rebalancing: a trade of the wrong sign": ("rebalancing", _row("truth", "rebalancing", _flip_trade)),
    "rebalancing: other turnover": (
        "rebalancing",
        _row("truth", "rebalancing", lambda row: row["expected_output"].update(turnover=0.25)),
    ),
    "black_litterman: a daily posterior": ("black_litterman", _row("truth", "black_litterman", _scale_posterior)),
    "black_litterman: other optimal weights": (
        "black_litterman",
        _row("truth", "black_litterman", lambda row: _shift(row, "optimal_weights")),
    ),
    "tool_use_parameterization: a call the text does not imply": (
        "tool_use_parameterization",
        _row("truth", "tool_use_parameterization", _drop_limit),
    ),
    "infeasibility_detection: the wrong verdict": (
        "infeasibility_detection",
        _row("truth", "infeasibility_detection", _flip_verdict),
    ),
    "infeasibility_detection: another set in conflict": (
        "infeasibility_detection",
        _row("truth", "infeasibility_detection", lambda row: row["expected_output"]["conflicting_limits"].append("x")),
    ),
    "infeasibility_detection: a verdict that a tolerance would change": ("infeasibility_detection", _narrow_verdict),
    "unconstrained_optimization: an optimum the zero beats": (
        "unconstrained_optimization",
        _row("truth", "unconstrained_optimization", lambda row: row["verification"].update(trivial_value=-1.0)),
    ),
    "rebalancing: another least cost": (
        "rebalancing",
        _row("truth", "rebalancing", lambda row: row["verification"].update(least_cost_bps=0.9)),
    ),
    "constrained_optimization: a zero that is not the trivial answer's": (
        "constrained_optimization",
        _row("truth", "constrained_optimization", lambda row: row["verification"].update(trivial_value=9.0)),
    ),
    **{
        f"{name}: certified's zero is missing": (
            name,
            _row("truth", name, lambda row: row["verification"].pop("trivial_value")),
        )
        for name in ("unconstrained_optimization", "constrained_optimization", "black_litterman")
    },
    **{
        f"{name}: optimal value is missing": (
            name,
            _row("truth", name, lambda row: row["verification"].pop("optimal_value")),
        )
        for name in ("unconstrained_optimization", "constrained_optimization", "black_litterman")
    },
    "rebalancing: required value is missing": (
        "rebalancing",
        _row("truth", "rebalancing", lambda row: row["verification"].pop("required_value")),
    ),
    "black_litterman: judged by another method": (
        "black_litterman",
        _row("truth", "black_litterman", lambda row: row["verification"].update(method="exact_match")),
    ),
    "unconstrained_optimization: other multipliers": (
        "unconstrained_optimization",
        _row("certificates", "unconstrained_optimization", _perturb),
    ),
    "rebalancing: other multipliers of stage 1": ("rebalancing", _row("certificates", "rebalancing", _perturb)),
    **{
        f"infeasibility_detection: refutation or witness {index}": (
            "infeasibility_detection",
            _row("certificates", "infeasibility_detection", _spoil_refutation, index),
        )
        for index in range(5)
    },
    "constrained_optimization: an empty certificate": (
        "constrained_optimization",
        _row("certificates", "constrained_optimization", lambda row: row["certificate"].clear()),
    ),
    "black_litterman: uniqueness not proved": (
        "black_litterman",
        _row("certificates", "black_litterman", lambda row: row["certificate"].update(unique=False)),
    ),
}
"""What is planted: the check that must fail, alone, and how."""


@pytest.mark.parametrize("name", sampled(DEFECTS, 3))
def test_a_planted_defect_fails_its_check_alone(name: str, workshop: Any) -> None:
    check, plant = DEFECTS[name]
    plant(workshop)
    # The risk episodes share the panels, so that a defect there may fail one of their checks too.
    report = workshop.validated(PORTFOLIO)
    defects = [(c.name, f.where, f.message) for c in report.checks for f in c.findings if f.state is CheckState.FAIL]
    assert failed(report) == {check}, defects


def test_the_slim_edition_has_refutations_and_witnesses(slim: Edition) -> None:
    """Else the planted defects of either would be no test."""
    verdicts = {slim.truth(e.task_id).expected_output["feasible"] for e in slim.episodes(["infeasibility_detection"])}
    assert verdicts == {True, False}
    assert failed(validate_edition(slim, only=[PORTFOLIO])) == set()


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
    assert "covariance" in failed(report)


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
    assert failed(workshop.validated(PORTFOLIO)) >= names


def test_a_table_without_a_column_is_a_finding(workshop: Any) -> None:
    _frame("views", lambda frame: frame.drop("earnings_as_of"))(workshop)
    assert "point_in_time" in failed(workshop.validated(PORTFOLIO))
