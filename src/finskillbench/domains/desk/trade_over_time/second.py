"""The second derivation: the memo read again, the posterior and the optimum derived without the code that built them.

It starts from what an agent sees: the text of the memo and the tables. The memo is read by rule; the panel is whitened
with a dense square root of the covariance and reduced by QR, and each pattern of sound vendors is weighed by the normal
density of what is left (not by determinants in the space of coefficients); the best action is taken from the first
block of one dense system of optimality conditions over all weeks to come (not by recursion).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from finskillbench.arrays import Floats, Integers
from finskillbench.errors import InputError

_WEEKS_TO_COME = 12
_STYLES = ("size", "value", "momentum")


@dataclass(frozen=True, slots=True)
class Memo:
    """The numbers of a memo; `late` is a vendor and the week of its first live file, decisions count from 1."""

    capital: float
    flows: tuple[tuple[int, float], ...]
    aversion: float
    tighter: float
    limit_from: int
    clip: float
    strengths: tuple[float, ...]
    late: tuple[str, int] | None

    def capital_at(self, decision: int) -> float:
        """Millions at a decision."""
        return self.capital + sum(amount for first, amount in self.flows if first <= decision)

    def aversion_at(self, decision: int) -> float:
        """Per million at a decision."""
        return self.tighter if decision >= self.limit_from else self.aversion


_NUMBER = r"([\d.]+\d|\d)"
_FLOWS = {
    rf"A subscription of {_NUMBER} millions arrives before decision (\d+)": 1.0,
    rf"A redemption of {_NUMBER} millions is paid before decision (\d+)": -1.0,
}
_CLIENTS = {
    rf"Before decision (\d+) a client adds {_NUMBER} millions": 1.0,
    rf"Before decision (\d+) a client withdraws {_NUMBER} millions": -1.0,
}


def read_memo(text: str) -> Memo:
    """The numbers that a memo states.

    Raises
    ------
    InputError : something that a decision depends on is not in the text, or in words that are not known.
    """
    text = " ".join(text.split())
    flows = [(int(day), sign * float(size)) for words, sign in _FLOWS.items() for size, day in re.findall(words, text)]
    flows += [
        (int(day), sign * float(size)) for words, sign in _CLIENTS.items() for day, size in re.findall(words, text)
    ]
    aversion = float(_one(text, rf"aversion to risk is {_NUMBER} per", rf"with an aversion of {_NUMBER} per")[0])
    rises = re.search(rf"From decision \d+ on it is {_NUMBER}\.|It rises to {_NUMBER} with decision", text)
    limit = _one(text, r"From decision (\d+) on, after the trades", r"Sector bets end with decision (\d+):")
    clip = _one(text, rf"A trade of {_NUMBER} millions in a name loses", rf"for a clip of {_NUMBER} millions")
    late = re.search(
        r"Vendor (\w) delivers live since week (\d+)|live feed of vendor (\w) begins with week (\d+)"
        r"|have taken vendor (\w) into the system in week (\d+)",
        text,
    )
    strengths = _one(
        text,
        rf"The strength is {_NUMBER}\.",
        rf"the strength has been {_NUMBER} for",
        r"do not know it: ([\d., and]+) are equally",
        r"it is one of ([\d., and]+), each",
    )[0]
    named = None if late is None else [each for each in late.groups() if each]
    return Memo(
        float(_one(text, rf"capital is {_NUMBER} millions", rf"a capital of {_NUMBER} millions")[0]),
        tuple(sorted(flows)),
        aversion,
        aversion if rises is None else float(rises.group(1) or rises.group(2)),
        int(limit[0]),
        float(clip[0]),
        tuple(float(each) for each in re.findall(r"\d+\.\d+", strengths)),
        None if named is None else (named[0], int(named[1])),
    )


def _one(text: str, *patterns: str) -> tuple[str, ...]:
    for pattern in patterns:
        if (found := re.search(pattern, text)) is not None:
            return found.groups()
    raise InputError(f"memo: none of these was found, so that it cannot be read: {' | '.join(patterns)}")


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """What an agent sees of a case, as arrays; signals are (weeks, n, k), returns (weeks, n) one shorter at the end."""

    memo: Memo
    vendors: tuple[str, ...]
    half_lives: Floats
    covariance: Floats
    specific: Floats
    benchmark: Floats
    sector_rows: Floats
    curvature: Floats
    holdings: Floats
    signals: Floats
    returns: Floats
    weeks: int


def read_case(task_input: Mapping[str, Any], signals: Integers, returns: Integers) -> Seen:
    """A case from its input at full precision, with the signals and returns that later files brought."""
    names: pl.DataFrame = task_input["names"].frame
    history: pl.DataFrame = task_input["history"].frame
    current: pl.DataFrame = task_input["current"].frame
    columns = list(task_input["signals"])
    n, specific = names.height, names["specific_volatility"].to_numpy()
    weeks = history.height // n
    past = history.select(columns).to_numpy().reshape(weeks, n, len(columns))
    now = current.select(columns).to_numpy()[None]
    panel = np.concatenate([past, now, signals]) / 100.0
    earned = np.concatenate([history["next_return"].to_numpy().reshape(weeks, n), returns]) / 100_000.0
    sectors = sorted(set(names["sector"].to_list()))
    rows = np.array([(names["sector"] == sector).to_numpy() for sector in sectors], dtype=float)
    volatility: Mapping[str, float] = task_input["factors"]
    covariance = np.diag(specific**2)
    loadings = [("market", names["market_beta"].to_numpy())]
    loadings += [*zip(sectors, rows, strict=True), *((style, names[style].to_numpy()) for style in _STYLES)]
    for factor, loading in loadings:
        covariance += volatility[factor] ** 2 * np.outer(loading, loading)
    memo = read_memo(task_input["memo"])
    return Seen(
        memo=memo,
        vendors=tuple(task_input["signals"][name]["vendor"] for name in columns),
        half_lives=_half_lives(panel[:weeks], [task_input["signals"][name]["half_life"] for name in columns]),
        covariance=covariance,
        specific=specific,
        benchmark=names["benchmark_weight"].to_numpy(),
        sector_rows=rows,
        curvature=2 * names["impact"].to_numpy() / memo.clip / 10_000,
        holdings=current["holding"].to_numpy(),
        signals=panel,
        returns=earned,
        weeks=weeks,
    )


def _half_lives(panel: Floats, told: list[float | None]) -> Floats:
    """(k,) half-lives: those told, and of the others the one of six whose decay the panel shows."""
    choices = np.array([1, 2, 4, 8, 16, 32], dtype=float)
    shown = (panel[1:] * panel[:-1]).sum(axis=(0, 1)) / (panel[:-1] ** 2).sum(axis=(0, 1))
    nearest = choices[np.abs(shown[:, None] - 0.5 ** (1 / choices)).argmin(axis=1)]
    return np.array([near if each is None else each for near, each in zip(nearest, told, strict=True)])


def worth(seen: Seen, returns: int) -> Floats:
    """(k,) posterior means of the coefficients after so many weeks of returns."""
    root = np.linalg.cholesky(seen.covariance)
    design = seen.signals[:returns] * seen.specific[:, None]
    if seen.memo.late is not None:
        vendor, week = seen.memo.late
        design[: week - 1, :, [each == vendor for each in seen.vendors]] = 0.0
    count = design.shape[2]
    white = np.linalg.solve(root, design.transpose(1, 0, 2).reshape(len(root), -1)).reshape(-1, count)
    target = np.linalg.solve(root, seen.returns[:returns].T).reshape(-1)
    basis, upper = np.linalg.qr(white)
    left = basis.T @ target
    prior = 1 - 0.5 ** (1 / seen.half_lives)
    logs: list[float] = []
    centres: list[Floats] = []
    letters = sorted(set(seen.vendors))
    for size in (2, 3, 4):
        sets = list(combinations(letters, size))
        for sound in sets:
            member = np.array([vendor in sound for vendor in seen.vendors])
            for strength in seen.memo.strengths:
                spread = np.where(member, strength**2 * prior, 0.0)
                covariance = (upper * spread) @ upper.T + np.eye(count)
                factor = np.linalg.cholesky(covariance)
                standard = np.linalg.solve(factor, left)
                logs.append(-float(standard @ standard) / 2 - float(np.log(np.diag(factor)).sum()) - np.log(len(sets)))
                centres.append(np.asarray(spread * (upper.T @ np.linalg.solve(factor.T, standard)), dtype=float))
    weights = np.exp(np.array(logs) - max(logs))
    return weights @ np.array(centres) / weights.sum()


def best(seen: Seen, decision: int, delivered: int, coefficients: Floats, book: Floats) -> Floats:
    """(n,) the best book after the trades of a decision (from 1), from one dense system over the weeks to come.

    `delivered` is the decision whose signals are the newest.
    """
    n, memo = len(book), seen.memo
    days = range(decision, _WEEKS_TO_COME + 1)
    size = n * len(days)
    hessian, linear = np.zeros((size, size)), np.zeros(size)
    rows: list[Floats] = []
    amounts: list[float] = []
    newest = seen.signals[seen.weeks + delivered - 1]
    for place, day in enumerate(days):
        here = slice(n * place, n * (place + 1))
        left = 0.5 ** ((day - delivered) / seen.half_lives)
        risk = memo.aversion_at(day) * seen.covariance
        target = memo.capital_at(day) * seen.benchmark
        hessian[here, here] += risk + np.diag(seen.curvature)
        linear[here] += seen.specific * (newest @ (coefficients * left)) + risk @ target
        if place:
            before = slice(n * (place - 1), n * place)
            hessian[before, before] += np.diag(seen.curvature)
            hessian[before, here] -= np.diag(seen.curvature)
            hessian[here, before] -= np.diag(seen.curvature)
        else:
            linear[here] += seen.curvature * book
        if day >= memo.limit_from:
            for sector in seen.sector_rows:
                row = np.zeros(size)
                row[here] = sector
                rows.append(row)
                amounts.append(float(sector @ target))
    limits = np.array(rows)
    system = np.block([[hessian, limits.T], [limits, np.zeros((len(rows), len(rows)))]])
    return np.asarray(np.linalg.solve(system, np.concatenate([linear, amounts]))[:n], dtype=float)
