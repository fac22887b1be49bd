"""Standard mistakes with the Black-Litterman model, and their effects on posterior and portfolio."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.domains.examples import GradedExample, Label
from finskillbench.domains.portfolio.examples.exploits import WORTHLESS, of_digits, weights_by_ticker
from finskillbench.engines.fields import weights_from
from finskillbench.engines.portfolio.black_litterman import (
    AnalystView,
    Picks,
    Posterior,
    idzorek,
    optimal_weights,
    picks_of,
    posterior_returns,
    view_variances,
    without_shorts,
)
from finskillbench.engines.portfolio.mandates.fields import black_litterman_from, views_from
from finskillbench.engines.portfolio.problem import PortfolioProblem
from finskillbench.episode import JsonObject

NO_CASH = 0.01
"""Risk-free rate below which total and excess returns are nearly equal."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """Total returns (n,) under a mistake, and a function that returns its weights (n,)."""

    returns: Floats
    weights: Callable[[], Floats]


@dataclass(frozen=True)
class _Reader:
    """One task, and the posterior under alternative readings of its views."""

    problem: PortfolioProblem
    prior: Floats
    market: Floats
    views: Sequence[AnalystView]
    cash: float
    aversion: float
    tau: float

    def picks(
        self, *, views: Sequence[AnalystView] | None = None, market: Floats | None = None, cash: float | None = None
    ) -> Picks:
        return picks_of(
            self.problem.tickers,
            self.views if views is None else views,
            self.market if market is None else market,
            self.cash if cash is None else cash,
        )

    def optimum(self, mean: Floats, factor: float = 1.0) -> Callable[[], Floats]:
        """Return a lazy solver of the long-only optimum at a multiple of the risk aversion."""
        problem, aversion = self.problem, factor * self.aversion
        return lambda: (
            optimal_weights(problem.tickers, problem.risk, mean, risk_aversion=aversion, unique=False).weights
        )

    def mean(self, picks: Picks, uncertainty: Floats | None = None, prior: Floats | None = None) -> Floats:
        """Return the posterior mean, by default with Idzorek's uncertainty and the equilibrium prior."""
        risk = self.problem.risk
        if uncertainty is None:
            uncertainty = idzorek(picks.confidence, view_variances(risk, picks, self.tau))
        return posterior_returns(risk, self.prior if prior is None else prior, picks, uncertainty, tau=self.tau).mean

    def of(self, mean: Floats, cash: float | None = None) -> Mistake:
        """Return a mistake with the optimum under a mean and the mean plus cash."""
        return Mistake(mean + (self.cash if cash is None else cash), self.optimum(mean))


def view_mistakes(task_input: Any, problem: PortfolioProblem, after: Posterior) -> dict[str, Mistake]:
    """Return the mistakes that apply to an episode, by name; `problem` and `after` are the correct ones."""
    reader = _Reader(
        problem,
        after.equilibrium,
        weights_from(task_input["market_cap_weights"], problem.tickers, "market_cap_weights"),
        views_from(task_input["analyst_views"]),
        task_input["risk_free_rate"],
        task_input["risk_aversion"],
        task_input["tau"],
    )
    return {
        **_of_confidence(reader),
        **_of_views(reader),
        **(_of_cash(reader, after.mean) if reader.cash >= NO_CASH else {}),
        **_of_weights(reader, after.mean),
    }


def _of_confidence(reader: _Reader) -> dict[str, Mistake]:
    picks = reader.picks()
    variances, confidence = view_variances(reader.problem.risk, picks, reader.tau), picks.confidence
    uncertainties = {
        "uncertainty of (1 - c), not (1 - c) / c": (1 - confidence) * variances,
        "uncertainty of He and Litterman, whatever the confidence": variances,
        "confidence read as doubt": idzorek(1 - confidence, variances),
        "uncertainty without tau": idzorek(confidence, variances) / reader.tau,
        "views taken as certain": np.zeros(len(confidence)),
    }
    return {name: reader.of(reader.mean(picks, uncertainty)) for name, uncertainty in uncertainties.items()}


def _of_views(reader: _Reader) -> dict[str, Mistake]:
    swapped = [replace(v, symbols=v.against, against=v.symbols) if v.against else v for v in reader.views]
    absolute = [replace(view, kind="absolute", against=()) for view in reader.views]
    found = {
        "views ignored": reader.of(reader.prior),
        "first view only": reader.of(reader.mean(reader.picks(views=reader.views[:1]))),
        "legs of relative views swapped": reader.of(reader.mean(reader.picks(views=swapped))),
        "relative views read as absolute": reader.of(reader.mean(reader.picks(views=absolute))),
        "prior of zero": reader.of(reader.mean(reader.picks(), prior=np.zeros(reader.problem.size))),
    }
    if any(len(view.symbols) > 1 for view in reader.views):
        equally = reader.picks(market=np.full(reader.problem.size, 1.0))
        found["names of a leg weighted equally"] = reader.of(reader.mean(equally))
    return found


def _of_cash(reader: _Reader, mean: Floats) -> dict[str, Mistake]:
    blind = reader.mean(reader.picks(cash=0.0))
    return {
        "total returns read as excess returns": reader.of(blind),
        "risk-free rate ignored": reader.of(blind, cash=0.0),
        "excess returns submitted": reader.of(mean, cash=0.0),
    }


def _of_weights(reader: _Reader, mean: Floats) -> dict[str, Mistake]:
    returns, risk = mean + reader.cash, reader.problem.risk
    free, invested = without_shorts(risk, mean, risk_aversion=reader.aversion)
    equal = np.full(reader.problem.size, 1.0 / reader.problem.size)
    return {
        "risk aversion without the factor 1/2": Mistake(returns, reader.optimum(mean, 2.0)),
        "unconstrained optimum without its short positions": Mistake(returns, lambda: free),
        "fully invested optimum without its short positions": Mistake(returns, lambda: invested),
        "right returns, equal weights": Mistake(returns, lambda: equal),
        "right returns, market weights": Mistake(returns, lambda: reader.market),
    }


def shortcuts(task_input: Any) -> dict[str, JsonObject]:
    """Return the answer of each mistake."""
    problem, after = black_litterman_from(task_input)
    return {
        name: {
            "posterior_returns": weights_by_ticker(problem, mistake.returns),
            "optimal_weights": weights_by_ticker(problem, mistake.weights()),
        }
        for name, mistake in view_mistakes(task_input, problem, after).items()
    }


def graded_examples(label: Label[Any]) -> list[GradedExample]:
    """Return graded answers to Black-Litterman tasks."""
    task_input, truth = label.task_input, label.truth.expected_output
    problem, after = black_litterman_from(task_input)
    market = task_input["market_cap_weights"]
    equal = weights_by_ticker(problem, np.full(problem.size, 1.0 / problem.size))
    prior = weights_by_ticker(problem, after.equilibrium + task_input["risk_free_rate"])
    tilted = {name: 0.95 * value + 0.05 * prior[name] for name, value in truth["posterior_returns"].items()}
    return [
        GradedExample("posterior and its optimum", truth, 1.0, 1.0),
        *of_digits(problem, truth, "optimal_weights"),
        GradedExample("views held a twentieth too weakly", {**truth, "posterior_returns": tilted}, 0.6, 0.95),
        GradedExample("the posterior, with the market portfolio", {**truth, "optimal_weights": market}, 0.0, WORTHLESS),
        GradedExample("the posterior alone", {"posterior_returns": truth["posterior_returns"]}, 0.0, 0.0),
        GradedExample("the equilibrium", {"posterior_returns": prior, "optimal_weights": market}, 0.0, WORTHLESS),
        GradedExample(
            "one return for every name, and equal weights",
            {"posterior_returns": dict.fromkeys(equal, 0.08), "optimal_weights": equal},
            0.0,
            WORTHLESS,
        ),
    ]
