"""What to trade in the first of the weeks that are left: all of them solved at once, as one dense system of equations.

The coefficients' expectation is an average over every set of vendors that may be sound and every way in which their
edges may have ended, each a plain Bayesian regression. The rest is certainty equivalence: what is still to be learnt
neither depends on trades nor moves today's best one, so that expected signals stand for those to come, and the whole
horizon is one quadratic program. Its limits are equations, and so are its conditions of optimality.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from typing import Any

import numpy as np
import polars as pl

HALF_LIVES = np.array([1, 2, 4, 8, 16, 32])
SIGNALS = [f"s{k:02}" for k in range(1, 31)]
SET_SIZES = (2, 3)
LIVE_SINCE = (
    r"live feed of vendor (\w) begins with week (\d+)",
    r"Vendor (\w) has delivered live since week (\d+)",
    r"added vendor (\w) to the system in week (\d+)",
)
INFLOWS = (
    (r"Before decision (\d+) a client withdraws (\d+) millions", (1, 2), -1),
    (r"Before decision (\d+) a client adds (\d+) millions", (1, 2), 1),
    (r"redemption of (\d+) millions is paid before decision (\d+)", (2, 1), -1),
    (r"subscription of (\d+) millions arrives before decision (\d+)", (2, 1), 1),
)


@dataclass(frozen=True)
class Memo:
    """What the memo says in words."""

    words: str

    @classmethod
    def of(cls, memo: str) -> Memo:
        return cls(re.sub(r"\s+", " ", memo))

    def number(self, *patterns: str) -> float:
        """The one number that one of the patterns finds."""
        found = [match for pattern in patterns for match in re.findall(pattern, self.words)]
        assert len(found) == 1, (patterns, found)
        return float(found[0])

    @property
    def strengths(self) -> list[float]:
        if found := re.search(r"(0\.\d+), (0\.\d+) and (0\.\d+)", self.words):
            return [float(each) for each in found.groups()]
        return [self.number(r"The strength is (0\.\d+)", r"the strength has been (0\.\d+)")]

    @property
    def bought_history(self) -> dict[str, int]:
        """Vendor to the first week of its live feed, of vendors whose earlier history came with the contract."""
        return {vendor: int(week) for each in LIVE_SINCE for vendor, week in re.findall(each, self.words)}

    @property
    def ends(self) -> list[int]:
        """The weeks with which an edge may have ended."""
        found = re.findall(r"(?:last day|end) of week ((?:\d+, )+\d+ or \d+)", self.words)
        assert len(found) == 1, found
        return [int(each) for each in re.findall(r"\d+", found[0])]

    @property
    def in_force(self) -> float:
        """The chance that the edge of a sound vendor has not ended."""
        return self.number(r"With probability (0\.\d+) the edge", r"With probability (0\.\d+) a sound vendor's edge")

    @property
    def clip(self) -> float:
        return self.number(r"A trade of ([\d.]+) millions", r"stated for a clip of ([\d.]+) millions")

    def capital(self, decisions: int) -> np.ndarray:
        capital = np.full(decisions, self.number(r"a capital of (\d+) millions", r"The capital is (\d+) millions"))
        for pattern, (when, how_much), sign in INFLOWS:
            for match in re.finditer(pattern, self.words):
                capital[int(match[when]) - 1 :] += sign * int(match[how_much])
        return capital

    def aversion(self, decisions: int) -> np.ndarray:
        first = self.number(r"aversion to risk is (0\.\d+)", r"an aversion of (0\.\d+)")
        aversion = np.full(decisions, first)
        for match in re.finditer(r"rises to (?P<to>0\.\d+) with decision (?P<at>\d+)", self.words):
            aversion[int(match["at"]) - 1 :] = float(match["to"])
        for match in re.finditer(r"From decision (?P<at>\d+) on it is (?P<to>0\.\d+)", self.words):
            aversion[int(match["at"]) - 1 :] = float(match["to"])
        return aversion

    @property
    def sectors_from(self) -> int:
        """The decision from which sectors are held to the benchmark."""
        said = (
            r"From decision (\d+) on, after the trades",
            r"Decision (\d+) is the first that must leave no sector bets",
        )
        return int(self.number(*said))


@dataclass(frozen=True)
class Heard:
    """What notices have said so far."""

    notices: list[str]

    @property
    def edges(self) -> dict[str, bool]:
        """Vendor to whether its edge is in force, of those that the house has looked into."""
        for words in self.notices:
            for pattern in (r"these vendors: (.*?)\. They do not .*lost it: (.*)\.", r"force: (.*?)\. .*lost: (.*)\."):
                if found := re.search(pattern, words):
                    parts = [re.findall(r"\b([A-J])\b", each) for each in found.groups()]
                    return {vendor: holds for each, holds in zip(parts, (True, False), strict=True) for vendor in each}
        return {}

    @property
    def tariff(self) -> float:
        """What trades cost as a multiple of what memo and table say."""
        found = [each for words in self.notices for each in re.findall(r"costs ([\d.]*\d) times", words)]
        return float(found[0]) if found else 1.0


@dataclass(frozen=True)
class Desk:
    """An episode as it stands at one of its decisions: `given` at full precision, all news of it put in one table."""

    given: Mapping[str, Any]
    history: pl.DataFrame

    @cached_property
    def memo(self) -> Memo:
        return Memo.of(self.given["memo"])

    @cached_property
    def heard(self) -> Heard:
        return Heard([each["text"] for each in self.given["notices"]])

    @cached_property
    def names(self) -> pl.DataFrame:
        return self.given["names"].frame

    @cached_property
    def specific(self) -> np.ndarray:
        return self.names["specific_volatility"].to_numpy()

    @cached_property
    def sectors(self) -> np.ndarray:
        """(sectors, names) of ones and zeros."""
        column = self.names["sector"].to_numpy()
        return np.array([column == sector for sector in sorted(set(column))], dtype=float)

    @cached_property
    def risk(self) -> np.ndarray:
        factors = self.given["factors"]
        loadings = {"market": self.names["market_beta"].to_numpy()}
        for name in ("size", "value", "momentum"):
            loadings[name] = self.names[name].to_numpy()
        for sector in set(self.names["sector"]):
            loadings[sector] = (self.names["sector"] == sector).to_numpy().astype(float)
        assert loadings.keys() == factors.keys()
        b = np.stack([loadings[name] * factors[name] for name in factors], axis=1)
        return b @ b.T + np.diag(self.specific**2)

    @cached_property
    def weeks(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Numbers of the weeks, (weeks, names, 30) signals and (weeks, names) returns, names as in `names`."""
        order = {ticker: i for i, ticker in enumerate(self.names["ticker"])}
        column = self.history["ticker"].replace_strict(order, return_dtype=pl.Int64)
        table = self.history.with_columns(column.alias("number")).sort("week", "number")
        count = len(order)
        signals = table.select(SIGNALS).to_numpy().reshape(-1, count, len(SIGNALS)) / 100
        return table["week"].to_numpy()[::count], signals, table["next_return"].to_numpy().reshape(-1, count) / 1e5

    @cached_property
    def live(self) -> np.ndarray:
        """(weeks, 30): whether a signal was delivered live."""
        weeks = self.weeks[0]
        since = [self.memo.bought_history.get(self.given["signals"][k]["vendor"], 0) for k in SIGNALS]
        return weeks[:, None] >= np.array(since)

    @cached_property
    def decay(self) -> np.ndarray:
        """Next week's expected value of each signal per unit of this week's."""
        _, signals, _ = self.weeks
        found = np.empty(len(SIGNALS))
        for k, name in enumerate(SIGNALS):
            half_life = self.given["signals"][name]["half_life"]
            if half_life is None:
                path = signals[self.live[:, k], :, k]
                slope = (path[1:] * path[:-1]).sum() / (path[:-1] ** 2).sum()
                half_life = HALF_LIVES[np.abs(0.5 ** (1 / HALF_LIVES) - slope).argmin()]
            found[k] = 0.5 ** (1 / half_life)
        return found

    @cached_property
    def coefficients(self) -> np.ndarray:
        """(30,) their expectation today: Bayesian regressions for each set of sound vendors and each way in which their
        edges ended or did not, weighed by their evidence.
        """
        weeks, signals, returns = self.weeks
        root = np.linalg.inv(np.linalg.cholesky(self.risk))
        regressors = root @ (self.specific[:, None] * signals * self.live[:, None, :])
        spans = np.searchsorted(self.memo.ends, weeks)
        parts = [regressors[spans == span].reshape(-1, len(SIGNALS)) for span in range(max(spans) + 1)]
        grams = np.array([part.T @ part for part in parts])
        targets = [(returns[spans == span] @ root.T).ravel() for span in range(len(parts))]
        crosses = np.array([part.T @ target for part, target in zip(parts, targets, strict=True)])
        vendor = np.array([self.given["signals"][k]["vendor"] for k in SIGNALS])
        last, known = len(self.memo.ends), self.heard.edges
        log_weights, means = [], []
        for size in SET_SIZES:
            sets = list(combinations(sorted(set(vendor)), size))
            for sound, ended in product(sets, product(range(last + 1), repeat=size)):
                alive = {each for each, end in zip(sound, ended, strict=True) if end == last}
                if any((each in alive) != holds for each, holds in known.items()):
                    continue
                on = np.flatnonzero(np.isin(vendor, sound))
                until = np.array([dict(zip(sound, ended, strict=True))[vendor[k]] for k in on])
                owed = (np.arange(last + 1)[:, None] <= until).astype(float)
                gram = (grams[:, on[:, None], on] * owed[:, :, None] * owed[:, None, :]).sum(axis=0)
                cross = (crosses[:, on] * owed).sum(axis=0)
                chance = self.memo.in_force ** len(alive) * ((1 - self.memo.in_force) / last) ** (size - len(alive))
                for strength in self.memo.strengths:
                    variance = strength**2 * (1 - self.decay[on])
                    posterior = gram + np.diag(1 / variance)
                    mean = np.linalg.solve(posterior, cross)
                    evidence = (cross @ mean - np.linalg.slogdet(posterior)[1] - np.log(variance).sum()) / 2
                    log_weights.append(evidence + np.log(chance / len(sets)))
                    means.append(np.zeros(len(SIGNALS)))
                    means[-1][on] = mean * (until == last)
        weights = np.exp(np.array(log_weights) - max(log_weights))
        return weights @ np.array(means) / weights.sum()

    def horizon(self) -> tuple[np.ndarray, np.ndarray]:
        """(left, names) holdings after each decision that is left, and the (names,) holdings before the first."""
        state, current = self.given["state"], self.given["current"].frame
        assert current["ticker"].to_list() == self.names["ticker"].to_list()
        decisions, now = state["decisions"], state["decision"] - 1
        left, count = decisions - now, self.names.height
        capital, aversion = self.memo.capital(decisions)[now:], self.memo.aversion(decisions)[now:]
        held = current["holding"].to_numpy()
        late = state["week"] - state["signals_of_week"]
        signals = current.select(SIGNALS).to_numpy() / 100 * self.decay**late
        cost = 2 * self.names["impact"].to_numpy() * 1e-4 / self.memo.clip * self.heard.tariff
        weights = self.names["benchmark_weight"].to_numpy()
        limited = [d for d in range(left) if d + now + 1 >= self.memo.sectors_from]
        size, rows = left * count, len(self.sectors)
        system, wanted = np.zeros((size + rows * len(limited),) * 2), np.zeros(size + rows * len(limited))
        for d in range(left):
            here = slice(d * count, (d + 1) * count)
            alpha = self.specific * ((signals * self.decay**d) @ self.coefficients)
            system[here, here] += aversion[d] * self.risk + np.diag(cost)
            wanted[here] += alpha + aversion[d] * capital[d] * self.risk @ weights
            if d:
                before = slice((d - 1) * count, d * count)
                system[before, before] += np.diag(cost)
                system[before, here] -= np.diag(cost)
                system[here, before] -= np.diag(cost)
            else:
                wanted[here] += cost * held
        for i, d in enumerate(limited):
            here, rule = slice(d * count, (d + 1) * count), slice(size + i * rows, size + (i + 1) * rows)
            system[rule, here], system[here, rule] = self.sectors, self.sectors.T
            wanted[rule] = capital[d] * self.sectors @ weights
        return np.linalg.solve(system, wanted)[:size].reshape(left, count), held

    def trades(self) -> np.ndarray:
        """(names,) what to buy at the decision that is due."""
        path, held = self.horizon()
        return path[0] - held
