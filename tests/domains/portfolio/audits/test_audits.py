# pyright: basic
"""Audits of portfolio construction: a planted defect is found where it is, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import polars as pl
import pytest

from finskillbench.domains import domain
from finskillbench.domains.checks.examination import Shared, Subject
from finskillbench.edition import Edition
from finskillbench.episode import Truth
from finskillbench.findings import Findings
from finskillbench.panels import Panels, read_panels
from finskillbench.panels.tables import Tables

AS_OF = date(2022, 9, 30)


def _audit(edition: Edition, name: str, panels: Panels | None = None) -> Findings:
    shared = Shared(edition)
    if panels is not None:
        shared.__dict__["panels"] = panels  # what is planted takes the place of what would be read
    findings = Findings()
    domain("portfolio_construction").audits[name](Subject(shared, domain("portfolio_construction")), findings)
    return findings


def _with(panels: Panels, name: str, planted: pl.DataFrame) -> Panels:
    return replace(panels, tables=Tables({name: planted}).merged_over(panels.tables))


@pytest.fixture(scope="module")
def panels(synthetic_edition: Edition) -> Panels:
    return read_panels(synthetic_edition.path / "panels")


@pytest.mark.parametrize("name", ["same_basis", "economics"])
def test_a_built_edition_is_clean(synthetic_edition: Edition, name: str) -> None:
    assert _audit(synthetic_edition, name).found == []


def test_a_count_not_restated_for_a_split_is_found(synthetic_edition: Edition, panels: Panels) -> None:
    symbol = panels.symbols[3]
    after = (pl.col("symbol") == symbol) & (pl.col("date") >= AS_OF)
    planted = panels.benchmark_weights.with_columns(
        pl.when(after).then(pl.col(name) * 4).otherwise(pl.col(name)).alias(name)
        for name in ("shares", "market_cap_usd")
    )
    found = _audit(synthetic_edition, "same_basis", _with(panels, "benchmark_weights", planted)).found
    assert [each.where for each in found] == [f"{symbol} {AS_OF}"]
    assert "not on one basis" in found[0].message


def test_adjusted_closes_and_their_dollar_volume_are_found(synthetic_edition: Edition, panels: Panels) -> None:
    adjusted = panels.prices.with_columns(
        panels.prices[f"adj_close:{symbol}"].alias(f"close:{symbol}") for symbol in panels.symbols
    )
    found = _audit(synthetic_edition, "same_basis", _with(panels, "prices", adjusted)).found
    assert found[0].where == "panels/prices.parquet"
    assert all("USD, from prices" in each.message or "one basis" in each.message for each in found[1:])
    assert len(found) > 1


def test_returns_below_cash_are_found(synthetic_edition: Edition, panels: Panels) -> None:
    day = panels.month_ends[4]
    alphas = panels.views.with_columns(
        pl.when(pl.col("date") == day)
        .then(pl.col("alpha"))
        .otherwise(pl.col("expected_return"))
        .alias("expected_return")
    )
    found: list[Any] = _audit(synthetic_edition, "economics", _with(panels, "views", alphas)).found
    assert {each.where for each in found} == {str(day)}


def test_a_scale_too_narrow_to_judge_by_is_found(synthetic_edition: Edition, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thirty basis points of volatility between right and worthless, in the hard tier's minimum-variance tasks."""
    hard = {
        episode.task_id
        for episode in synthetic_edition.episodes(["constrained_optimization"])
        if episode.difficulty == "hard" and episode.input["objective"] == "min_variance"
    }
    truth = Edition.truth

    def narrow(edition: Edition, task_id: str) -> Truth:
        label = truth(edition, task_id)
        if task_id not in hard:
            return label
        zero = (label.verification["optimal_value"] ** 0.5 + 0.003) ** 2
        return replace(label, verification={**label.verification, "trivial_value": zero})

    monkeypatch.setattr(Edition, "truth", narrow)
    (found,) = _audit(synthetic_edition, "economics").found
    assert found.where == "constrained_optimization_hard"
    assert "30 bp of volatility" in found.message
