"""Find the book of greatest expected utility net of trading costs, under limits, from source effects that you state.

Payload: names, today, sources, factor_covariance, limits, risk_aversion (inject all six); effects, a list of
{"industry", "source", "effect", "variance"}: effect is return per quarter for one score, variance that of the effect
(0 if left out); repairs, [{"source", "multiply"}], for values in today that are wrong. An empty list of
effects ignores all sources. Sources are scored as values divided by scale. Other keys are refused.
Result: holdings (ticker to weight), utility of them and of the current book, turnover and costs, binding limits,
the largest expected effects, and the proof of optimality. Effects that are not listed are taken as zero.
"""

from typing import Any

import numpy as np

from finskillbench.engines.fields import mapping, number, refuse_unknown, require, table_of, texts_of
from finskillbench.engines.portfolio.report import proof
from finskillbench.engines.statistics.risk_model import RiskModel
from finskillbench.errors import InputError
from finskillbench.sandbox.script import cli, rounded
from finskillbench_desk.engines.source_tables import column, entries, place_of, repairs_of, scale_of, texts, values_of
from finskillbench_desk.engines.trading.net_of_costs import TradingProblem, optimum

_STATED = ("names", "today", "sources", "factor_covariance", "limits", "risk_aversion", "effects")
_LIMITS = ("max_weight", "industry_band", "max_turnover", "price_of_breaking")
_EFFECT = ("industry", "source", "effect", "variance")
_DIGITS = 6
_SHOWN = 10


def main(payload: dict[str, Any]) -> dict[str, Any]:
    """Solve once and prove it."""
    require(payload, *_STATED)
    refuse_unknown(payload, (*_STATED, "repairs"), "optimize_net_of_costs")
    names, limits = mapping(payload, "names"), mapping(payload, "limits")
    refuse_unknown(limits, _LIMITS, "limits")
    tickers = texts(names, "ticker", "names")
    industries = np.array(texts(names, "industry", "names", len(tickers)))

    def stated(name: str) -> Any:
        return column(names, name, "names", len(tickers))

    mean, doubt = _effects(payload, tickers, industries)
    factors, matrix = _factor_covariance(payload)
    loadings = np.column_stack([stated(name) for name in factors])
    covariance = loadings @ matrix @ loadings.T + np.diag(stated("specific_volatility") ** 2) + doubt
    groups = list(dict.fromkeys(industries.tolist()))
    inside = np.array([stated("benchmark_weight")[industries == group].sum() for group in groups])
    band = number(limits, "industry_band", "limits")
    problem = TradingProblem(
        expected=stated("equilibrium_return") + mean,
        risk=RiskModel.from_matrix((covariance + covariance.T) / 2),
        risk_aversion=number(payload, "risk_aversion", "the task"),
        held=stated("current_weight"),
        linear=stated("linear_cost"),
        quadratic=stated("quadratic_cost"),
        caps=np.full(len(tickers), number(limits, "max_weight", "limits")),
        groups=np.array([groups.index(group) for group in industries.tolist()]),
        least=np.maximum(inside - band, 0.0),
        most=inside + band,
        turnover=number(limits, "max_turnover", "limits"),
    )
    best = optimum(problem)
    weights = best.weights.clip(0.0)
    trade = np.abs(weights - problem.held)
    order = np.argsort(-np.abs(mean))[:_SHOWN]
    return rounded(
        {
            "holdings": {
                ticker: round(weight, _DIGITS) for ticker, weight in zip(tickers, weights.tolist(), strict=True)
            },
            "utility": {"of_holdings": problem.utility(weights), "of_current": problem.utility(problem.held)},
            "turnover": float(trade.sum()) / 2,
            "costs": float(problem.linear @ trade + problem.quadratic @ trade**2),
            "binding": _binding(problem, weights),
            "largest_effects": {tickers[place]: float(mean[place]) for place in order if mean[place]},
            "proof": proof(best),
        }
    )


def _factor_covariance(payload: dict[str, Any]) -> tuple[tuple[str, ...], Any]:
    """Factors and their covariance."""
    stated = mapping(payload, "factor_covariance")
    factors = texts_of(stated.get("factors"))
    try:
        matrix = np.array(stated.get("matrix"), dtype=np.float64)
    except (TypeError, ValueError):
        matrix = np.zeros(0)
    if not factors or matrix.shape != (len(factors), len(factors)) or not np.isfinite(matrix).all():
        raise InputError("factor_covariance must hold factors, k texts, and matrix, k rows of k numbers; inject it")
    return factors, matrix


def _effects(payload: dict[str, Any], tickers: list[str], industries: Any) -> tuple[Any, Any]:
    """Mean and covariance of returns from the stated effects, which are independent."""
    values, sources = values_of(payload, "today", tickers)
    scores = values[-1] / scale_of(payload, sources)
    for repair in repairs_of(payload, ("source", "multiply")):
        scores[:, place_of(str(repair["source"]), sources, "repairs")] *= number(repair, "multiply", "repairs")
    mean, doubt = np.zeros(len(tickers)), np.zeros((len(tickers), len(tickers)))
    for entry in entries(payload, "effects"):
        row = table_of(entry)
        if row is None or not {"industry", "source", "effect"} <= row.keys():
            raise InputError(f"effects must list objects with {', '.join(_EFFECT)}; variance may be left out")
        refuse_unknown(row, _EFFECT, "an entry of effects")
        inside = industries == row["industry"]
        if not inside.any():
            raise InputError(f"effects names the industry {row['industry']!r}, which the table names does not have")
        score = scores[:, place_of(str(row["source"]), sources, "effects")] * inside
        mean += number(row, "effect", "effects") * score
        variance = number(row, "variance", "effects", default=0.0)
        if variance < 0:
            raise InputError(f"effects: the variance of {row['source']} in {row['industry']} is negative")
        doubt += variance * np.outer(score, score)
    return mean, doubt


def _binding(problem: TradingProblem, weights: Any) -> dict[str, int | bool]:
    """Numbers of names at a bound and industries at a limit, and whether turnover is at its limit."""
    inside, near = problem.membership @ weights, 1e-7
    return {
        "names_at_zero": int((weights < near).sum()),
        "names_at_cap": int((weights > problem.caps - near).sum()),
        "industries": int(((inside > problem.most - near) | (inside < problem.least + near)).sum()),
        "turnover": bool(np.abs(weights - problem.held).sum() / 2 > problem.turnover - near),
    }


if __name__ == "__main__":
    cli(main)
