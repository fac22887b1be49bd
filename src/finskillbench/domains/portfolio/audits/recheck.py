"""Certificates examined from their stored weights: that no other portfolio is better, by gradients alone.

Nothing is shared with the solvers or with what `data validate` repeats of their proofs: the limits are written down
again from the conventions of the tasks, in buys and sells, and `stationarity` finds its own multipliers.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from finskillbench.domains.checks.examination import Subject, examining
from finskillbench.domains.checks.stationarity import Floats, possible_gain, stacked
from finskillbench.domains.portfolio import second
from finskillbench.domains.portfolio.audits.refutation import margin
from finskillbench.domains.portfolio.definitions import WAIVABLE, moved, printed, waived
from finskillbench.episode import Episode, JsonObject
from finskillbench.findings import Findings
from finskillbench.scoring.values import is_object, numbers

ACCEPTED_GAIN = 1e-6
"""Another portfolio may be better by this much: objectives are of order 0.01 to 1."""
_SAME = 1e-7
_TRADED = 1e-9
_BELOW = 1e-6
"""By what share a value lies below the least attainable one that is refuted."""
_REACH = 4.0
"""Buys and sells of a fully invested long-only portfolio add up to 2 at most; two of them differ by 4."""


def certified(subject: Subject, findings: Findings) -> None:
    """No portfolio is better than a certified one, and none is feasible where the label says so."""
    edition = subject.edition
    if not edition.has_truth:
        findings.skip("the edition was handed out without truth")
        return
    stored: dict[str, Mapping[str, JsonObject]] = {}
    for episode in subject.episodes:
        name = episode.sub_task
        if name not in stored:
            stored[name] = edition.certificates(name) if edition.has_certificates else {}
        with examining(episode.task_id, findings):
            _examine(subject, episode, stored[name].get(episode.task_id, {}), findings)


def _examine(subject: Subject, episode: Episode, certificate: JsonObject, findings: Findings) -> None:
    truth = subject.edition.truth(episode.task_id)
    if not truth.proof:  # the audit says of every domain which labels carry none
        return
    task_input: JsonObject = subject.input_of(episode)
    if "limit_to_relax" in task_input:
        _examine_conflict(episode, task_input, truth.expected_output, certificate, findings)
        return
    mean: Floats | None = None
    optima = _optima(certificate)
    if "analyst_views" in task_input:
        mean = second.posterior(task_input, second.covariance(task_input)[1])
        halved: JsonObject = {"objective": "max_sharpe", "risk_aversion": task_input["risk_aversion"] / 2}
        task_input = {**task_input, **halved, "constraints": {"long_only": True}}
    cap: float | None = None
    for stage, stored in optima.items():
        program = _Program(task_input, np.array(stored["weights"], dtype=float), mean)
        if stage == "stage_2":
            branched = stored["programs_solved"] > 1
            value, gain = program.cost(), program.gain(program.costs(), cap, same_trades=branched)
        else:
            value, gain = program.value(), program.gain()
        findings.add("optima")
        findings.widest("greatest_gain", gain)
        stated = stored["objective"]
        message = f"states {stated:.9g}; its weights are worth {value:.9g}"
        findings.expect(abs(value - stated) <= _SAME, episode.task_id, message, f"{stage}.objective")
        message = f"another portfolio may be better by {gain:.1e}"
        findings.expect(gain <= ACCEPTED_GAIN, episode.task_id, message, f"{stage}.weights")
        if stage == "stage_1":
            cap = program.required(value)


def _examine_conflict(
    episode: Episode, task_input: JsonObject, output: JsonObject, certificate: JsonObject, findings: Findings
) -> None:
    """No value below the least attainable one can be kept, and the limits in conflict alone cannot be either."""
    named, value = task_input["limit_to_relax"], output["least_attainable"]
    feasible = value <= printed(task_input, named)
    findings.expect(feasible is output["feasible"], episode.task_id, "its value contradicts its verdict", "feasible")
    if "floor" in certificate:
        findings.add("optima")
        found = margin(moved(task_input, named, value * (1 - _BELOW)), certificate["floor"])
        message = f"its multipliers leave a margin of {found:.1e}: that {value:.6f} is the least is not shown"
        findings.expect(found > 0, episode.task_id, message, "floor")
    if "farkas" in certificate:
        findings.add("refutations")
        alone = waived(task_input, [name for name in WAIVABLE if name not in output["conflicting_limits"]])
        found, stated = margin(alone, certificate["farkas"]["ray"]), certificate["farkas"]["margin"]
        message = f"its ray leaves a margin of {found:.1e}, it states {stated:.1e}: the conflict is not shown"
        findings.expect(found > 0 and found >= stated - _SAME, episode.task_id, message, "farkas.ray")


def _optima(certificate: JsonObject) -> dict[str, JsonObject]:
    """The optima of a certificate by the names of their stages."""
    if "weights" in certificate:
        return {"optimum": certificate}
    return {name: part for name, part in certificate.items() if is_object(part) and "weights" in part}


class _Program:
    """A portfolio problem at a point: the limits written in buys u and sells v, w = w0 + u - v."""

    def __init__(self, task_input: JsonObject, weights: Floats, mean: Floats | None) -> None:
        self.task_input, self.weights = task_input, weights
        self.tickers, self.sigma = second.covariance(task_input)
        needs_mean = mean is None and task_input.get("objective") in ("max_return", "max_sharpe")
        self.mean = self._vector("expected_returns") if needs_mean else mean
        self.limits: JsonObject = task_input["constraints"]
        start = "current_portfolio" in task_input
        self.start: Floats = self._vector("current_portfolio") if start else np.zeros(len(weights))

    def _vector(self, field: str) -> Floats:
        return second.vector(self.task_input[field], self.tickers)

    def value(self) -> float:
        """The objective at the point."""
        return second.objective(self.task_input, self.sigma, self.weights, self.mean)

    def turnover(self) -> float:
        """One-way turnover at the point."""
        return float(np.abs(self.weights - self.start).sum()) / 2

    def costs(self) -> Floats:
        """(n,) trading costs."""
        return self._vector("trading_costs_bps")

    def cost(self) -> float:
        """Trading cost of the point."""
        return second.trading_cost(self.task_input, self.weights)

    def required(self, least: float) -> float:
        """The objective that a rebalancing has to reach, given the least one."""
        start = second.objective(self.task_input, self.sigma, self.start, self.mean)
        return start - self.task_input["required_improvement"] * (start - least)

    def gain(self, prices: Floats | None = None, cap: float | None = None, *, same_trades: bool = False) -> float:
        """How much better another portfolio may be, where `prices` (n,) of trades are minimised, else the objective.

        The objective is at most `cap`. With `same_trades` it buys and sells the same names, each by `min_trade` at
        least, and trades no other.
        """
        n = len(self.weights)
        bought, sold = np.maximum(self.weights - self.start, 0.0), np.maximum(self.start - self.weights, 0.0)
        half, buys, sells = np.full(2 * n, 0.5), *np.split(np.eye(2 * n), 2)
        least = self.task_input["min_trade"] if same_trades else 0.0
        parts = [
            (bought - np.where(bought > _TRADED, least, 0.0), -buys),
            (sold - np.where(sold > _TRADED, np.minimum(least, self.start), 0.0), -sells),
        ]
        if same_trades:
            parts += [
                (-bought[bought <= _TRADED], buys[bought <= _TRADED]),
                (-sold[sold <= _TRADED], sells[sold <= _TRADED]),
            ]
        parts += [(slacks, self._lifted(rows)) for slacks, rows in [*self._weight_limits(), *self._names()]]
        limit = self.limits.get("max_turnover")
        if limit is not None and prices is None:
            parts.append((np.array([limit - self.turnover()]), half[None, :]))
        if cap is not None:
            parts.append((np.array([cap - self.value()]), self._lifted(self._slope())))
        gradient = self._lifted(self._slope())[0] if prices is None else np.tile(prices, 2)
        return possible_gain(gradient, stacked(parts, [self._lifted(np.ones((1, n)))]), _REACH)

    def _lifted(self, rows: Floats) -> Floats:
        """Rows over weights (m, n) as rows over buys and sells (m, 2n)."""
        return np.hstack([rows, -rows])

    def _slope(self) -> Floats:
        """(1, n) gradient of the objective."""
        name, risk = self.task_input["objective"], 2 * self.sigma @ self.weights
        mean = np.zeros(len(risk)) if self.mean is None else self.mean
        slopes = {
            "min_variance": lambda: risk,
            "max_return": lambda: -mean,
            "max_sharpe": lambda: self.task_input["risk_aversion"] * risk - mean,
            "risk_parity": lambda: 2 * (self.weights - second.inverse_variance(self.sigma)) + risk / 2,
        }
        return slopes[name]()[None, :]

    def _weight_limits(self) -> list[tuple[Floats, Floats]]:
        """Slacks and gradients over weights of the limits that are no counts and no turnover."""
        limits, weights, eye = self.limits, self.weights, np.eye(len(self.weights))
        parts = [(weights - (limits.get("min_weight") or 0.0), -eye)]
        if limits.get("max_weight") is not None:
            parts.append((limits["max_weight"] - weights, eye))
        for sector, cap in numbers(limits.get("sector_limits")).items():
            mine = np.array([[float(self.task_input["sector_mapping"][ticker] == sector) for ticker in self.tickers]])
            parts.append((cap - mine @ weights, mine))
        if limits.get("max_tracking_error") is not None:
            active = weights - self._vector("benchmark_weights")
            spread = float(active @ self.sigma @ active)
            parts.append((np.array([limits["max_tracking_error"] ** 2 - spread]), 2 * (self.sigma @ active)[None, :]))
        if limits.get("factor_neutrality"):
            given, factors = self.task_input["factor_exposures"], limits["neutral_factors"]
            betas = np.array([[given[ticker][factor] for ticker in self.tickers] for factor in factors])
            tilt = betas @ (weights - self._vector("benchmark_weights"))
            parts += [(limits["neutrality_tolerance"] - tilt, betas), (limits["neutrality_tolerance"] + tilt, -betas)]
        return parts

    def _names(self) -> list[tuple[Floats, Floats]]:
        """Slacks and gradients over weights of a least position, the names held taken as they are.

        Which to hold, and so a least number of them, is left to the branches of `proof`, where it is solved again.
        """
        position, held = self.limits.get("min_position"), self.weights > second.ZERO
        if position is None:
            return []
        eye = np.eye(len(held))
        return [(self.weights[held] - position, -eye[held]), (-self.weights[~held], eye[~held])]
