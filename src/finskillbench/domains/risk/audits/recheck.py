"""The least turnover of a remediation shown again from gradients alone, by code that shares nothing with the solvers.

The mandate is written down again from its own definitions, in buys and sells of names and cash. Limits that take a
decision name by name (least positions, counts of names) are left out, which can only make a portfolio better: what is
then left open is told apart as what the engine's branches close.
"""

from __future__ import annotations

import math

import numpy as np

from finskillbench.domains.examination import Subject, examining
from finskillbench.domains.stationarity import Floats, possible_gain, stacked
from finskillbench.episode import Episode, JsonObject
from finskillbench.findings import Findings
from finskillbench.scoring.values import mapping, number, objects

ACCEPTED_GAIN = 1e-6
_SAME = 1e-6
_REACH = 6.0
"""Buys, sells and cash of a long-only portfolio add up to 3 at most; two such trade lists differ by 6."""
_BY_NAME = frozenset({"position_limit_min", "name_count"})
_STAGE = "least_turnover"


def least_turnover(subject: Subject, findings: Findings) -> None:
    """No cheaper cure exists than the certified one, and where it exceeds what is left, the label says so."""
    if not (subject.edition.has_truth and subject.edition.has_certificates):
        findings.skip("the edition was handed out without truth or certificates")
        return
    episodes = [episode for episode in subject.episodes if "violations" in episode.input]
    stored = subject.edition.certificates(episodes[0].sub_task) if episodes else {}
    for episode in episodes:
        certificate = mapping(stored.get(episode.task_id))
        if _STAGE in certificate:
            with examining(episode.task_id, findings):
                _examine(subject, episode, certificate[_STAGE], findings)


def _examine(subject: Subject, episode: Episode, stored: JsonObject, findings: Findings) -> None:
    task_input: JsonObject = subject.input_of(episode)
    limits = {str(limit["type"]): limit for limit in objects(task_input["mandate"]["constraints"])}
    if "long_only" not in limits:
        findings.add("long_short_left_to_validation")
        return
    weights = np.array(stored["weights"], dtype=float)
    cure = _Cure(task_input, weights, limits)
    value, gain = cure.turnover(), cure.gain()
    open_ends = int(stored["programs_solved"]) > 1 or bool(_BY_NAME & limits.keys())
    findings.add("left_to_branches" if open_ends else "optima")
    findings.widest("greatest_gain_left_to_branches" if open_ends else "greatest_gain", gain)
    message = f"states {stored['objective']:.9g}; its weights turn over {value:.9g}"
    findings.expect(abs(value - stored["objective"]) <= _SAME, episode.task_id, message, f"{_STAGE}.objective")
    if not open_ends:
        message = f"a cheaper cure may save {gain:.1e}"
        findings.expect(gain <= ACCEPTED_GAIN, episode.task_id, message, f"{_STAGE}.weights")


class _Cure:
    """Trades from the portfolio to given weights: x = (buys, sells, cash in, cash out), all at least 0."""

    def __init__(self, task_input: JsonObject, weights: Floats, limits: dict[str, JsonObject]) -> None:
        portfolio = task_input["portfolio"]
        held = {str(one["symbol"]): float(one["weight"]) for one in objects(portfolio["holdings"])}
        self.task_input, self.weights, self.limits = task_input, weights, limits
        ordered = mapping(task_input.get("covariance_matrix")).get("tickers") or task_input["sector_mapping"]
        self.tickers = [str(ticker) for ticker in ordered]
        self.start = np.array([held.get(ticker, 0.0) for ticker in self.tickers])
        self.cash = float(portfolio["cash_weight"]) - float((weights - self.start).sum())
        self.cash_before = float(portfolio["cash_weight"])

    def turnover(self) -> float:
        """Half of all changes, cash included."""
        return (float(np.abs(self.weights - self.start).sum()) + abs(self.cash - self.cash_before)) / 2

    def gain(self) -> float:
        """By how much, at most, other trades that keep the mandate turn over less."""
        n = len(self.weights)
        change, cash = self.weights - self.start, self.cash - self.cash_before
        sides = np.concatenate([np.maximum(change, 0), np.maximum(-change, 0), [max(cash, 0.0), max(-cash, 0.0)]])
        into_cash = np.concatenate([np.zeros(2 * n), [1.0, -1.0]])[None, :]
        parts = [(sides, -np.eye(2 * n + 2)), (np.array([self.cash]), -into_cash)]
        if "cash_max" in self.limits:
            parts.append((np.array([self.limits["cash_max"]["value"] - self.cash]), into_cash))
        parts += [(slacks, _lifted(rows)) for slacks, rows in self._mandate()]
        budget = _lifted(np.ones((1, n))) + into_cash
        return possible_gain(np.full(2 * n + 2, 0.5), stacked(parts, [budget]), _REACH)

    def _mandate(self) -> list[tuple[Floats, Floats]]:
        """Slacks and gradients over weights."""
        weights, eye = self.weights, np.eye(len(self.weights))
        parts = [(weights, -eye)]
        for kind, limit in self.limits.items():
            most = _number(limit, "value")
            match kind:
                case "position_limit_max":
                    parts.append((most - weights, eye))
                case "gross_exposure_max":
                    parts.append((np.array([most - weights.sum()]), np.ones((1, len(weights)))))
                case "sector_limit_max":
                    sectors = self.task_input["sector_mapping"]
                    for sector in sorted(set(sectors.values())):
                        mine = np.array([[float(sectors[ticker] == sector) for ticker in self.tickers]])
                        parts.append((most - mine @ weights, mine))
                case "hhi_max":
                    parts.append((np.array([most - weights @ weights]), 2 * weights[None, :]))
                case "tracking_error_max":
                    parts.append(self._tracking_error(most))
                case "factor_exposure_max":
                    for factor in limit["factors"]:
                        betas = self._betas(factor)
                        parts += [(most - betas @ weights, betas), (most + betas @ weights, -betas)]
                case "beta_range":
                    betas = self._betas("mkt_rf")
                    ends = _number(limit, "max") - betas @ weights, betas @ weights - _number(limit, "min")
                    parts += [
                        (slack, rows)
                        for slack, rows in zip(ends, (betas, -betas), strict=True)
                        if np.isfinite(slack).all()
                    ]
                case _:
                    pass  # turnover is what is minimised; counts are left to the branches
        return parts

    def _betas(self, factor: str) -> Floats:
        given = self.task_input["factor_exposures"]
        return np.array([[float(given[ticker][factor]) for ticker in self.tickers]])

    def _tracking_error(self, most: float) -> tuple[Floats, Floats]:
        table = self.task_input["covariance_matrix"]
        place = [list(table["tickers"]).index(ticker) for ticker in self.tickers]
        if "matrix" in table:
            sigma = np.array(table["matrix"], dtype=float)
        else:
            loadings = np.array(table["loadings"], dtype=float)
            sigma = loadings.T @ loadings + np.diag(np.array(table["specific"], dtype=float))
        sigma = sigma[np.ix_(place, place)]
        benchmark = self.task_input["benchmark_weights"]
        active = self.weights - np.array([float(benchmark.get(ticker, 0.0)) for ticker in self.tickers])
        return np.array([most**2 - float(active @ sigma @ active)]), 2 * (sigma @ active)[None, :]


def _number(limit: JsonObject, name: str) -> float:
    """A number of a limit; NaN where it has none of that name."""
    found = number(limit.get(name))
    return math.nan if found is None else found


def _lifted(rows: Floats) -> Floats:
    """Rows over weights (m, n) as rows over buys, sells and cash (m, 2n + 2)."""
    return np.hstack([rows, -rows, np.zeros((len(rows), 2))])
