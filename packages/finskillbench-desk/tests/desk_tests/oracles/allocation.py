"""Where the book should be, from memo, log and tables alone: every source and every start of the regime, one by one.

Industries are independent, and the effect's size is normal, so that a stretch of quarters under one source has a
closed form. The starts of regimes are summed over from the first half-year to the last; the book is left to CVXPY.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import cvxpy as cp
import numpy as np
import polars as pl
from scipy.special import logsumexp

SENTENCES_THAT_VOUCH = (
    r"- (\w+) joined the firm in quarter \d+ and transferred the whole record",
    r"- (\w+), with us since quarter \d+, wrote the forecasts of quarters 1 to \d+ at another firm",
    r"- (\w+) changed teams in quarter \d+\. The column has been the work of this one person since quarter 1",
    r"- (\w+) went on sale in quarter \d+, but our firm was its pilot client",
    r"- We checked quarters 1 to \d+ of (\w+)\. We had it on trial then, in real time",
    r"- Archive of (\w+): launched in quarter \d+; values before that were delivered to us live",
)
"""Name of an analyst or a vendor whose record is valid from quarter 1."""
SENTENCES_THAT_TURN = (
    r"From quarter (?P<at>\d+) on (?P<who>\w+) has the opposite sign\. Values up to",
    r"- (?P<who>\w+): its scale was reversed at quarter (?P<at>\d+)\. Up to",
    r"- Quarter (?P<at>\d+): (?P<who>\w+) now gives its first choice the highest value\. Until",
)
UNIT = 10.0


@dataclass(frozen=True)
class Desk:
    """One episode's input at full precision."""

    given: Mapping[str, Any]

    @cached_property
    def names(self) -> pl.DataFrame:
        return self.given["names"].frame

    @cached_property
    def sources(self) -> pl.DataFrame:
        return self.given["sources"].frame

    @cached_property
    def log(self) -> str:
        return re.sub(r"\s+", " ", self.given["documents"]["notes"])

    @cached_property
    def loadings(self) -> np.ndarray:
        return self.names.select(self.given["factor_covariance"]["factors"]).to_numpy()

    @cached_property
    def specific(self) -> np.ndarray:
        return self.names["specific_volatility"].to_numpy()

    def _ordered(self, frame: pl.DataFrame) -> pl.DataFrame:
        place = {ticker: i for i, ticker in enumerate(self.names["ticker"])}
        return frame.with_columns(frame["ticker"].replace_strict(place, return_dtype=pl.Int64).alias("place"))

    @cached_property
    def residuals(self) -> np.ndarray:
        """(quarters, names): returns without what the factors did."""
        panel = self._ordered(self.given["panel"].frame).sort("quarter", "place")
        returns = panel["return_bp"].to_numpy().reshape(-1, self.names.height) / 1e4
        factors = self.given["factor_returns"].frame.sort("quarter")
        return returns - factors.select(self.given["factor_covariance"]["factors"]).to_numpy() @ self.loadings.T

    @cached_property
    def scores(self) -> np.ndarray:
        """(quarters and the coming one, names, sources): values over their scale, cured by (d) and (f) of the memo."""
        listed = self.sources["source"].to_list()
        panel = self._ordered(self.given["panel"].frame).sort("quarter", "place").select(listed).to_numpy()
        today = self._ordered(self.given["today"].frame).sort("place").select(listed).to_numpy()
        values = np.concatenate([panel.reshape(-1, *today.shape), today[None]]).astype(float)
        spread = values.std(axis=1)
        for k in range(len(listed)):
            for quarter in range(1, len(values)):
                before, after = spread[:quarter, k], spread[quarter:, k]
                if after.min() > 4 * before.max() and 7 < np.median(after) / np.median(before) < 14:
                    values[quarter:, :, k] /= UNIT
                    break
        for pattern in SENTENCES_THAT_TURN:
            for match in re.finditer(pattern, self.log):
                values[: int(match["at"]) - 1, :, listed.index(match["who"])] *= -1
        return values / self.sources["scale"].to_numpy()

    @cached_property
    def since(self) -> np.ndarray:
        """The first quarter of each source's valid record."""
        vouched = {name for pattern in SENTENCES_THAT_VOUCH for name in re.findall(pattern, self.log)}
        rows = self.sources.to_dicts()
        return np.array([1 if vouched & {row["source"], row["vendor"]} else row["since"] for row in rows])

    @cached_property
    def delivered(self) -> np.ndarray:
        """Whether `today` has something of each source that quarter 44 had not."""
        return ~(np.abs(self.scores[-1] - self.scores[-2]) < 1e-12).all(axis=0)

    @cached_property
    def prior(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of each source: log of the chance that it is the one, mean and standard deviation of its size."""
        family = self.given["family"]
        analyst = (self.sources["kind"] == "analyst").to_numpy()
        share = np.where(
            analyst, family["analyst_share"] / analyst.sum(), (1 - family["analyst_share"]) / (~analyst).sum()
        )
        mean = np.where(analyst, family["analyst_mean"], family["signal_mean"])
        deviation = np.where(analyst, family["analyst_deviation"], family["signal_deviation"])
        return np.log((1 - family["nothing"]) * share), mean, deviation

    def stretch(self, members: np.ndarray, first: int, last: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of an industry's quarters first to last under one regime, by source: log weight, mean, variance of the size.

        The log weight is that of the prior and of the likelihood, against no effect.
        """
        log_share, mean, deviation = self.prior
        quarters = np.arange(first, last + 1)
        x = self.scores[first - 1 : last][:, members] * (quarters[:, None] >= self.since)[:, None, :]
        noise = self.specific[members][None, :, None]
        r = self.residuals[first - 1 : last][:, members][:, :, None]
        seen, pull = (x**2 / noise**2).sum(axis=(0, 1)), (x * r / noise**2).sum(axis=(0, 1))
        variance = 1 / (seen + 1 / deviation**2)
        centre = variance * (pull + mean / deviation**2)
        likelihood = (np.log(variance / deviation**2) + centre**2 / variance - mean**2 / deviation**2) / 2
        return log_share + likelihood, centre, variance

    def industry(self, members: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and covariance of what sources add to the coming quarter's returns of an industry's names."""
        family, quarters = self.given["family"], self.given["quarters"]
        starts = list(range(1, quarters + 1, 2))
        nothing, stay, change = np.log(family["nothing"]), np.log1p(-family["change"]), np.log(family["change"])

        def whole(first: int, last: int) -> float:
            return float(logsumexp([nothing, *self.stretch(members, first, last)[0]]))

        # up_to[i]: log likelihood of all before starts[i], a new regime beginning there
        up_to = [0.0]
        for i in range(1, len(starts)):
            ways = [up_to[j] + (i - j - 1) * stay + whole(starts[j], starts[i] - 1) + change for j in range(i)]
            up_to.append(float(logsumexp(ways)))
        logs, sizes, squares = [], [], []
        for i, first in enumerate(starts):
            weight, centre, variance = self.stretch(members, first, quarters)
            before = up_to[i] + (len(starts) - i - 1) * stay
            logs.append(before + np.append(weight, nothing))
            sizes.append(np.append(centre, 0.0))
            squares.append(np.append(variance + centre**2, 0.0))
        chance = np.exp(np.array(logs) - logsumexp(logs))
        scores = np.where(self.delivered, self.scores[-1][members], 0.0)
        effect = scores @ (chance * sizes).sum(axis=0)[:-1]
        second = scores @ np.diag((chance * squares).sum(axis=0)[:-1]) @ scores.T
        return effect, second - np.outer(effect, effect)

    @cached_property
    def coming(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and covariance of the coming quarter's returns."""
        mean = self.names["equilibrium_return"].to_numpy().copy()
        factors = np.array(self.given["factor_covariance"]["matrix"])
        covariance = self.loadings @ factors @ self.loadings.T + np.diag(self.specific**2)
        column = self.names["industry"].to_numpy()
        for industry in sorted(set(column)):
            members = np.flatnonzero(column == industry)
            effect, spread = self.industry(members)
            mean[members] += effect
            covariance[np.ix_(members, members)] += spread
        return mean, covariance

    def utility(self, weights: np.ndarray) -> float:
        mean, covariance = self.coming
        traded = weights - self.names["current_weight"].to_numpy()
        linear, quadratic = (self.names[each].to_numpy() for each in ("linear_cost", "quadratic_cost"))
        risk = self.given["risk_aversion"] / 2 * weights @ covariance @ weights
        return float(mean @ weights - risk - linear @ np.abs(traded) - quadratic @ traded**2)

    def best(self) -> np.ndarray:
        """(names,) the weights of the greatest expected utility within the limits."""
        mean, covariance = self.coming
        held, benchmark = (self.names[each].to_numpy() for each in ("current_weight", "benchmark_weight"))
        linear, quadratic = (self.names[each].to_numpy() for each in ("linear_cost", "quadratic_cost"))
        limits, column = self.given["limits"], self.names["industry"].to_numpy()
        weights = cp.Variable(len(mean))
        traded = weights - held
        root = np.linalg.cholesky(covariance)
        rules = [cp.sum(weights) == 1, weights >= 0, weights <= limits["max_weight"]]
        rules.append(cp.norm1(traded) <= 2 * limits["max_turnover"])
        for industry in sorted(set(column)):
            mine = np.flatnonzero(column == industry)
            rules.append(cp.abs(cp.sum(weights[mine]) - benchmark[mine].sum()) <= limits["industry_band"])
        risk = self.given["risk_aversion"] / 2 * cp.sum_squares(root.T @ weights)
        gain = mean @ weights - risk - linear @ cp.abs(traded) - cp.sum(cp.multiply(quadratic, traded**2))
        problem = cp.Problem(cp.Maximize(gain), rules)
        problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
        return np.asarray(weights.value)
