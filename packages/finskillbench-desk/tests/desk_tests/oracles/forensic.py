"""Who managed its accounts, from the memo and the tables alone: dense normal distributions, one per kind and start.

All forty quarters of all ten log ratios of a company are one vector of 400. Given a kind and a first quarter it is
normal up to the company's variance factor, and with that integrated out multivariate t. Nothing is filtered, whitened
or updated in steps: each hypothesis has its mean and its covariance written out and factorised.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from re import search
from typing import Any

import numpy as np
import polars as pl
from scipy.linalg import cho_factor, cho_solve
from scipy.special import logsumexp

UNITS_ARE_MIXED = 1000.0


@dataclass(frozen=True)
class Probabilities:
    """Of each company: that it managed its accounts, and that it did so in each of the ways."""

    companies: list[str]
    kinds: list[str]
    by_kind: np.ndarray

    @property
    def managed(self) -> np.ndarray:
        return self.by_kind.sum(axis=1)


@dataclass(frozen=True)
class Case:
    """One episode's input, with what its memo says in words turned into numbers."""

    given: Mapping[str, Any]

    @cached_property
    def model(self) -> Mapping[str, Any]:
        return self.given["model"]

    @cached_property
    def base_rate(self) -> float:
        found = search(r"use a base rate of (\d+) per cent", self.given["documents"]["memo"])
        assert found
        return int(found[1]) / 100

    @cached_property
    def large(self) -> float:
        """Per cent of the buyer's assets from which a target blends the levels."""
        found = search(r"target of at least (\d+) per cent", self.given["documents"]["memo"])
        assert found
        return float(found[1])

    @cached_property
    def names(self) -> list[str]:
        return [each["name"] for each in self.model["ratios"]]

    @cached_property
    def quarters(self) -> list[str]:
        return sorted(set(self.given["statements"].frame["quarter"]))

    def of_ratios(self, key: str) -> np.ndarray:
        return np.array([each[key] for each in self.model["ratios"]])

    @cached_property
    def correlation(self) -> np.ndarray:
        return np.array(self.model["correlation_of_innovations"])

    @cached_property
    def lines(self) -> dict[tuple[str, str], dict[str, Any]]:
        """The last version of each company's quarter, balance sheets in the wrong unit cured."""
        sheet = self.given["layout"]["balance_sheet"]
        found: dict[tuple[str, str], dict[str, Any]] = {}
        for row in self.given["statements"].frame.sort("version").iter_rows(named=True):
            if row["cash"] != row["closing_cash"]:
                row |= {line: row[line] / UNITS_ARE_MIXED for line in sheet}
            found[row["company"], row["quarter"]] = row
        return found

    def table(self, name: str, key: str) -> dict[tuple[str, Any], np.ndarray]:
        frame: pl.DataFrame = self.given[name].frame
        return {(row["industry"], row[key]): np.array([row[n] for n in self.names]) / 1e4 for row in frame.to_dicts()}

    def events(self, company: str, event: str) -> list[tuple[int, float]]:
        """Number of the quarter and value of a company's events of one name."""
        frame: pl.DataFrame = self.given["events"].frame
        rows = frame.filter((frame["company"] == company) & (frame["event"] == event)).to_dicts()
        return [(self.quarters.index(row["quarter"]), row["value"]) for row in rows]

    @cached_property
    def paths(self) -> dict[tuple[str, Any], np.ndarray]:
        return self.table("industry_paths", "quarter")

    @cached_property
    def seasons(self) -> dict[tuple[str, Any], np.ndarray]:
        return self.table("seasons", "fiscal_quarter")

    def left_over(self, company: str, industry: str, year_end: int) -> np.ndarray:
        """(quarters, ratios): own level plus deviation, of each log ratio."""
        rows = [self.lines[company, quarter] for quarter in self.quarters]
        tops, bottoms = [[each[k] for each in self.model["ratios"]] for k in ("numerator", "denominator")]
        logs = np.log([[row[a] / row[b] for a, b in zip(tops, bottoms, strict=True)] for row in rows])
        revenue = np.log([row["net_revenue"] for row in rows])
        logs -= np.outer(np.diff(revenue, prepend=revenue[0]), self.of_ratios("growth_effect"))
        for t, quarter in enumerate(self.quarters):
            for since, month in self.events(company, "year end changed"):
                year_end = int(month) if since == t else year_end
            fiscal = (int(quarter[-1]) - year_end // 3 - 1) % 4 + 1
            logs[t] -= self.paths[industry, quarter] + self.seasons[industry, fiscal]
        for since, _ in self.events(company, "lease standard adopted"):
            logs[since:] -= self.of_ratios("lease_effect")
        return logs

    @cached_property
    def deviations(self) -> np.ndarray:
        """(400, 400) covariance of the deviations of a company of variance factor one, quarter by quarter."""
        phi, sd, n = self.of_ratios("persistence"), self.of_ratios("innovation_sd"), len(self.quarters)
        stationary = self.correlation * np.outer(sd, sd) / (1 - np.outer(phi, phi))
        blocks = np.empty((n, len(phi), n, len(phi)))
        for t in range(n):
            for s in range(n):
                early = stationary * phi[:, None] ** max(t - s, 0) * phi[None, :] ** max(s - t, 0)
                blocks[t, :, s, :] = early
        return blocks.reshape(n * len(phi), -1)

    def unmanaged(self, acquired: tuple[int, ...]) -> np.ndarray:
        """(400, 400) covariance of what is left over of a company that bought others in these quarters."""
        sd, n = self.of_ratios("innovation_sd"), len(self.quarters)
        since = [(0, self.model["own_level_sds"]), *((t, self.model["acquired_level_sds"]) for t in acquired)]
        total = self.deviations.copy()
        for start, size in since:
            stands = (np.arange(n) >= start).astype(float)
            total += np.kron(np.outer(stands, stands), np.diag((size * sd) ** 2))
        return total

    def usable(self, kind: str) -> list[np.ndarray]:
        """(20, ratios) innovations in their standard deviations of the cases that may be used, and their quarters."""
        frame: pl.DataFrame = self.given["archive"].frame
        found = frame.filter(
            (frame["kind"] == kind)
            & frame["basis"].is_in(["court judgment", "regulator's order"])
            & (frame["industry"] != "Financials")
        )
        return [part.sort("quarter").select("quarter", *self.names).to_numpy() for part in found.partition_by("case")]

    def shifts(self, kind: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray]:
        """Mean and covariance, in innovation_sds, of the shift of a company of today, by the kind's usable cases.

        All innovations of all cases and the shift wanted are jointly normal; the shift is conditioned on them. A case
        enters by the vector of its 200 innovations, whose covariance is written out.
        """
        width = len(self.names)
        prior, spread = self.model["prior_mean_sds"] ** 2, self.model["case_spread_sds"] ** 2
        precision, weighted = np.eye(width) / prior, np.zeros(width)
        for case in self.usable(kind["name"]):
            profile = np.array([_at(kind["profile"], int(quarter)) for quarter in case[:, 0]])
            loads = np.kron(profile[:, None], np.eye(width))
            spoilt = np.kron(np.eye(len(profile)), self.correlation) + spread * loads @ loads.T
            gain = np.linalg.solve(spoilt, loads).T
            precision += gain @ loads
            weighted += gain @ (case[:, 1:] / 100).ravel()
        covariance = np.linalg.inv(precision)
        return covariance @ weighted, covariance + spread * np.eye(width)

    def response(self, profile: list[float], start: int) -> np.ndarray:
        """(400, ratios): what a shift of one in a ratio's innovations does to its deviations, quarter by quarter."""
        phi, n = self.of_ratios("persistence"), len(self.quarters)
        moved = np.zeros((n, len(phi)))
        for t in range(start, n):
            moved[t] = (phi * moved[t - 1] if t else 0.0) + _at(profile, t - start)
        return np.concatenate([np.diag(row) for row in moved])

    @cached_property
    def hypotheses(self) -> list[tuple[int, float, np.ndarray, np.ndarray]]:
        """(kind, log of its prior probability, mean, added covariance); kind -1 is an honest company."""
        starts, sd = self.model["possible_starts"], np.diag(self.of_ratios("innovation_sd"))
        size, n = len(self.quarters) * len(self.names), len(self.quarters)
        found = [(-1, np.log(1 - self.base_rate), np.zeros(size), np.zeros((size, size)))]
        for number, kind in enumerate(self.model["kinds"]):
            mean, covariance = self.shifts(kind)
            for start in range(n - starts, n):
                loads = self.response(kind["profile"], start) @ sd
                weight = np.log(self.base_rate * kind["share"] / starts)
                found.append((number, weight, loads @ mean, loads @ covariance @ loads.T))
        return found

    def probabilities(self, companies: list[str] | None = None) -> Probabilities:
        """For the named companies, or for all."""
        listed = [
            row for row in self.given["companies"].frame.to_dicts() if not companies or row["company"] in companies
        ]
        alike: dict[tuple[int, ...], list[int]] = {}
        for number, row in enumerate(listed):
            bought = [t for t, size in self.events(row["company"], "acquisition completed") if size >= self.large]
            alike.setdefault(tuple(sorted(bought)), []).append(number)
        left = [self.left_over(row["company"], row["industry"], row["year_end_month"]).ravel() for row in listed]
        logs = np.empty((len(listed), len(self.hypotheses)))
        for bought, members in alike.items():
            plain = self.unmanaged(bought)
            for h, (_, weight, mean, added) in enumerate(self.hypotheses):
                logs[members, h] = weight + self._log_t(np.array([left[m] for m in members]) - mean, plain + added)
        logs -= logsumexp(logs, axis=1, keepdims=True)
        kinds = np.array([kind for kind, *_ in self.hypotheses])
        names = [each["name"] for each in self.model["kinds"]]
        by_kind = np.stack([np.exp(logs[:, kinds == k]).sum(axis=1) for k in range(len(names))], axis=1)
        return Probabilities([row["company"] for row in listed], names, by_kind)

    def _log_t(self, away: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """Log density, up to what all hypotheses share, of multivariate t: normal, its variance factor integrated."""
        freedom = self.model["volatility_degrees_of_freedom"]
        factor = cho_factor(scale, lower=True)
        distance = (away * cho_solve(factor, away.T).T).sum(axis=1)
        half = np.log(np.diag(factor[0])).sum()
        return -half - (freedom + away.shape[1]) / 2 * np.log1p(distance / freedom)


def _at(profile: list[float], quarter: int) -> float:
    """A profile's entry for the quarter, counted from the first managed one; nothing before it and past its end."""
    return profile[quarter] if 0 <= quarter < len(profile) else 0.0
