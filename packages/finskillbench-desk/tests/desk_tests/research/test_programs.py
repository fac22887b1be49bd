"""Decisions of research-methods, its documents, and its programs in the sandbox of an agent."""

from __future__ import annotations

import asyncio
import re
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from desk_tests.research.planted import (
    NAMES,
    PACKAGE,
    PERIODS,
    SOURCES,
    archive,
    archives,
    decisions,
    effect_search,
    market_of,
    plant,
)
from scipy.optimize import minimize

from finskillbench.errors import InputError
from finskillbench.harness.skills.loader import load_package
from finskillbench.harness.tools.interpreters import Interpreter, code_runner
from finskillbench_desk.allocate.laws import STRUCTURES as ALLOCATE
from finskillbench_desk.forensic_screen.laws import STRUCTURES as FORENSIC
from finskillbench_desk.trade_over_time.laws import STRUCTURES as TRADE

# Decisions.


def test_the_book_is_the_best_one() -> None:
    rng = np.random.default_rng(1)
    n = 12
    factors = rng.normal(size=(n, 3)) * 0.1
    covariance = factors @ factors.T + np.diag(rng.uniform(0.05, 0.15, n) ** 2)
    mean, held, costs = rng.normal(0, 0.03, n), np.full(n, 1 / n), (np.full(n, 0.002), np.full(n, 0.05))
    groups = (np.arange(3)[:, None] == np.arange(n) % 3).astype(float)
    limits = groups, np.full(3, 0.4)
    w, report = decisions.best_book(mean, covariance, held, costs, 4.0, limits, cap=0.2, turnover=0.3)
    assert report["gap"] < 1e-9
    assert report["breach"] < 1e-9
    assert w.sum() == pytest.approx(1, abs=1e-9)
    found = report["utility"]
    assert found == decisions.utility(w, mean, covariance, held, costs, 4.0)
    assert found > decisions.utility(held, mean, covariance, held, costs, 4.0)
    for _ in range(300):
        other = w + 0.02 * rng.normal(size=n)
        other = np.clip(other, 0, 0.2)
        other = other / other.sum()
        if (groups @ other).max() <= 0.4 and other.max() <= 0.2 and np.abs(other - held).sum() / 2 <= 0.3:
            assert decisions.utility(other, mean, covariance, held, costs, 4.0) <= found + 1e-7


def test_trades_are_best_for_all_dates_together() -> None:
    rng = np.random.default_rng(2)
    dates, n = 3, 4
    covariance, quadratic, held = np.diag(rng.uniform(1, 2, n)), rng.uniform(0.5, 1, n), rng.normal(size=n)
    alphas, targets, aversions = rng.normal(size=(dates, n)), rng.normal(size=(dates, n)), np.array([1.0, 2.0, 1.0])

    def loss(flat: Any) -> float:
        x = flat.reshape(dates, n)
        trades, away = np.diff(np.vstack([held, x]), axis=0), x - targets
        risk = np.einsum("tn,nm,tm->t", away, covariance, away) @ aversions / 2
        return float(risk + (trades**2 @ quadratic).sum() - (alphas * away).sum())

    best = minimize(loss, np.zeros(dates * n), tol=1e-12)
    trades, value = decisions.trade_path(alphas, covariance, aversions, targets, held, quadratic)
    assert value == pytest.approx(-best.fun, abs=1e-6)
    np.testing.assert_allclose(held + trades.cumsum(0), best.x.reshape(dates, n), atol=1e-4)
    rows, right = np.ones((1, n)), np.full((dates, 1), 2.0)
    trades, _ = decisions.trade_path(alphas, covariance, aversions, targets, held, quadratic, (rows, right, 1))
    short, _ = decisions.trade_path(alphas, covariance, aversions, targets, held, quadratic, (rows, right[1:], 1))
    np.testing.assert_allclose(short, trades)
    sums = (held + trades.cumsum(0)).sum(1)
    assert sums[1:] == pytest.approx(2.0)
    assert sums[0] != pytest.approx(2.0)


def test_fast_signals_count_on_few_dates() -> None:
    path = decisions.path_of(np.array([[1.0, 1.0]]), np.array([1.0, 8.0]), 3, end=0.1)
    assert path[:, 0] == pytest.approx([2, 0.9 * (0.5 + 2 ** (-1 / 8)), 0.81 * (0.25 + 2 ** (-2 / 8))])
    mean, doubt = decisions.average([np.array([1.0]), np.array([3.0])], [np.eye(1), np.eye(1)], [0.0, 0.0])
    assert (mean[0], doubt[0, 0]) == (2.0, 2.0)


# Documents and the sandbox.


def test_no_document_names_a_structure() -> None:
    texts = [path.read_text() for path in sorted(PACKAGE.rglob("*")) if path.suffix in (".md", ".py", ".json")]
    assert len(texts) == 14
    for name in (*ALLOCATE, *FORENSIC, *TRADE):
        spelt = re.compile(name.replace("_", "[ _-]"), re.IGNORECASE)
        assert not [text[:60] for text in texts if spelt.search(text)], name


def task_of(market: Any) -> dict[str, Any]:
    """Tables of a market, as a case of quarters states them."""
    rng, tickers = np.random.default_rng(1), [f"T{k:02d}" for k in range(NAMES)]
    panel: dict[str, Any] = {
        "quarter": np.repeat(np.arange(1, PERIODS + 1), NAMES).tolist(),
        "ticker": tickers * PERIODS,
        "return_bp": (1e4 * market.residuals).ravel().tolist(),
    }
    today: dict[str, Any] = {"ticker": tickers}
    for k, source in enumerate(market.sources):
        panel[source] = (2 * market.values[:-1, :, k]).ravel().tolist()
        today[source] = (2 * market.values[-1, :, k]).tolist()
    names = {"ticker": tickers, "industry": [f"G{k}" for k in market.groups], "market": [0.0] * NAMES}
    return {
        "panel": panel,
        "today": today,
        "names": {
            **names,
            "specific_volatility": market.specific.tolist(),
            "benchmark_weight": rng.uniform(size=NAMES).tolist(),
        },
        "factor_returns": {"market": rng.normal(size=PERIODS).tolist()},
        "factor_covariance": {"factors": ["market"]},
        "sources": {
            "source": market.sources,
            "scale": [2.0] * SOURCES,
            "since": [1] * SOURCES,
            "vendor": market.vendors,
        },
    }


@pytest.mark.slow
def test_the_programs_of_the_guide_run_in_the_sandbox() -> None:
    market = plant(market_of(2), "level", "S03", np.arange(NAMES) % 4 == 1, 10, PERIODS, 0.06)
    task, package = task_of(market), load_package(PACKAGE)
    calls = re.split(
        r"\n(?:Second|Third) call", (PACKAGE / "SKILL.md").read_text().split("## Programs to begin with")[1]
    )
    programs = ["\n".join(re.findall(r"(?m)^    (.*)$", call.split("`result.alpha`")[0])) for call in calls]
    programs[1] += '\n[es.screen(market, maps, ["level", "rank"], store="screen.json")][0]'

    async def play() -> list[Any]:
        files, results = {}, []
        for program in programs:
            result = await interpreter.run(program, {"task": task}, files, [package])
            files = result.files
            results.append(result)
        return results

    with code_runner(with_library=True) as runner:
        interpreter = Interpreter(runner)
        first, second, third = asyncio.run(play())
    assert [each.error for each in (first, second, third)] == [None] * 3
    same = ("level @ industry", "by volatility @ industry")  # one volatility for all names
    assert max(second.value, key=second.value.get) in same
    assert "1 S03" in third.printed


def test_scripts_run_without_code() -> None:
    market = plant(market_of(2), "level", "S03", np.arange(NAMES) % 4 == 1, 10, PERIODS, 0.06)
    payload = {key: getattr(market, key).tolist() for key in ("residuals", "specific", "values", "groups")}
    found = effect_search.main(payload)["log_evidence"]
    assert max(found, key=found.get) == "level @ group"
    assert found["level @ group"] > max(effect_search.main({**payload, "shuffle": True})["log_evidence"].values())
    levels, _, labels, bases = archive(wrong=0.4)
    stated = {"levels": levels.tolist(), "labels": labels.tolist(), "bases": bases.tolist(), "kinds": 2, "before": 14}
    result = archives.main({**stated, "starts": [12, 14, 16], "profile": [1]})
    assert result["log_likelihood"] > 3 * result["error"] / 2
    assert result["agreement"]["0"] > result["agreement"]["1"] + 0.15


def test_a_coefficient_is_that_of_the_time_while_it_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(PACKAGE.parent / "signal-trading" / "scripts"))
    worth = import_module("signal_worth").main
    rng, weeks, names = np.random.default_rng(1), 40, ["X", "Y", "Z"]
    signal = rng.normal(size=(weeks, 3))
    returns = 0.01 * rng.normal(size=(weeks, 3)) + 0.02 * signal * (np.arange(weeks) < 20)[:, None]
    history = {
        "week": np.repeat(np.arange(1, weeks + 1), 3).tolist(), "ticker": names * weeks,
        "s": signal.ravel().tolist(), "next_return": returns.ravel().tolist(),
    }  # fmt: skip
    listed = {
        "ticker": names, "sector": ["a", "b", "c"], "benchmark_weight": [0.3, 0.3, 0.4], "impact": [5, 5, 5],
        "specific_volatility": [0.01] * 3,
    }  # fmt: skip
    payload = {
        "history": history, "signals": ["s"], "signal_unit": 1, "return_unit": 1, "names": listed, "factors": {},
        "method": "least_squares",
    }  # fmt: skip
    assert worth(payload)["coefficient"]["s"] == pytest.approx(1, abs=0.4)
    held = worth({**payload, "last_week": 20})
    assert held["coefficient"]["s"] == pytest.approx(2, abs=0.4)
    assert held["used"]["weeks"] == 20
    with pytest.raises(InputError, match="last_week"):
        worth({**payload, "last_week": 0})
