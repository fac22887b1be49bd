"""Independent derivation of posterior and optimum from the memo and the tables, sharing no code with the build.

The memo is parsed by patterns. The panel is whitened by the covariance's Cholesky factor and reduced by QR. Patterns of
edges are weighed by a filter from stretch to stretch. The best action is the first block of one dense system of
optimality conditions over all remaining weeks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, pairwise, product
from typing import Any

import numpy as np
import polars as pl

from finskillbench.arrays import Floats, Integers
from finskillbench.errors import InputError

_WEEKS_TO_COME = 12
_SIZES = (2, 3)
"""Possible numbers of sound vendors, as every memo states."""
_STYLES = ("size", "value", "momentum")


@dataclass(frozen=True, slots=True)
class Memo:
    """Numbers of a memo; decisions count from 1.

    `late` is a vendor and the week of its first live file, `ends` are possible last weeks of an edge, `holds` the
    probability that it holds. Notices set `found` (vendor to whether its edge holds) and `tariff` (multiple of costs).
    """

    capital: float
    flows: tuple[tuple[int, float], ...]
    aversion: float
    tighter: float
    limit_from: int
    clip: float
    strengths: tuple[float, ...]
    late: tuple[str, int] | None
    ends: tuple[int, ...]
    holds: float
    found: Mapping[str, bool] = field(default_factory=dict[str, bool])
    tariff: float = 1.0

    def capital_at(self, decision: int) -> float:
        return self.capital + math.fsum(amount for first, amount in self.flows if first <= decision)

    def aversion_at(self, decision: int) -> float:
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
    """Parse the numbers of a memo; InputError if one is missing or worded in an unknown way."""
    text = " ".join(text.split())
    flows = [
        (int(day), sign * float(size)) for pattern, sign in _FLOWS.items() for size, day in re.findall(pattern, text)
    ]
    flows += [
        (int(day), sign * float(size)) for pattern, sign in _CLIENTS.items() for day, size in re.findall(pattern, text)
    ]
    aversion = float(_one(text, rf"aversion to risk is {_NUMBER} per", rf"with an aversion of {_NUMBER} per")[0])
    rises = re.search(rf"From decision \d+ on it is {_NUMBER}\.|It rises to {_NUMBER} with decision", text)
    limit = _one(
        text, r"From decision (\d+) on, after the trades", r"Decision (\d+) is the first that must leave no sector bets"
    )
    clip = _one(text, rf"A trade of {_NUMBER} millions in a name loses", rf"for a clip of {_NUMBER} millions")
    late = re.search(
        r"Vendor (\w) has delivered live since week (\d+)|live feed of vendor (\w) begins with week (\d+)"
        r"|added vendor (\w) to the system in week (\d+)",
        text,
    )
    strengths = _one(
        text,
        rf"The strength is {_NUMBER}\.",
        rf"the strength has been {_NUMBER} for",
        r"do not know it: ([\d., and]+) are equally",
        r"it is one of ([\d., and]+), each",
    )[0]
    ends = _one(
        text, r"with the last day of week ([\d, ]+ or \d+), each", r"since the end of week ([\d, ]+ or \d+), each"
    )
    holds = _one(text, rf"With probability {_NUMBER} the edge", rf"With probability {_NUMBER} a sound vendor's edge")
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
        tuple(int(each) for each in re.findall(r"\d+", ends[0])),
        float(holds[0]),
    )


def memo_of(text: str, offers: Mapping[str, Mapping[str, Any]]) -> Memo:
    """Parse a memo, given the field `signals`; a memo that does not state the law has no strengths and no ends."""
    late = next(((offer["vendor"], offer["since"]) for offer in offers.values() if offer.get("since", 1) > 1), None)
    if not any("since" in offer for offer in offers.values()):
        return read_memo(text)
    text = " ".join(text.split())
    capital, aversion = (
        [float(each) for each in re.findall(_NUMBER, _one(text, rf"{start}: ([\d., -]+)\.")[0])]
        for start in ("by decision, known in advance", "Aversion to risk per million, by decision")
    )
    flows = [(day, after - before) for day, (before, after) in enumerate(pairwise(capital), 2) if after != before]
    limit = _one(text, r"From decision (\d+) on, after the trades")[0]
    clip = _one(text, rf"A trade of {_NUMBER} millions in a name loses")[0]
    return Memo(capital[0], tuple(flows), aversion[0], aversion[-1], int(limit), float(clip), (), late, (), 1.0)


def apply_notices(memo: Memo, notices: Sequence[str]) -> Memo:
    """Return the memo with the content of notices; InputError for unknown wordings."""
    for notice in notices:
        text = " ".join(notice.split())
        if costs := re.search(rf"every trade of the book costs {_NUMBER} times|trading costs {_NUMBER} times", text):
            memo = replace(memo, tariff=float(costs[1] or costs[2]))
        elif "edge" in text.lower():
            holds, not_holds = _one(
                text,
                r"for these vendors: (.*?)\. They do not hold for these, .* lost it: (.*?)\.$",
                r"in force: (.*?)\. .* lost: (.*?)\.$",
            )
            letters = dict.fromkeys(re.findall(r"\b[A-J]\b", holds), True)
            memo = replace(memo, found=letters | dict.fromkeys(re.findall(r"\b[A-J]\b", not_holds), False))
        else:
            _one(text, "cash equities", "clients without a contract")
    return memo


def _one(text: str, *patterns: str) -> tuple[str, ...]:
    for pattern in patterns:
        if (found := re.search(pattern, text)) is not None:
            return found.groups()
    raise InputError(f"memo: no text matches any of the patterns {' | '.join(patterns)}")


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """Visible data as arrays; signals are (weeks, n, k), returns (weeks, n) end one week earlier."""

    memo: Memo
    vendors: tuple[str, ...]
    half_life: Floats
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
    """Read a case from its input, with the signals and returns of later files."""
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
    offers = task_input["signals"]
    memo = memo_of(task_input["memo"], offers)
    stated = [offers[name].get("half_life") for name in columns]
    return Seen(
        memo=memo,
        vendors=tuple(offers[name]["vendor"] for name in columns),
        half_life=_half_life_of(panel[:weeks], stated, whole=bool(memo.strengths)),
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


def with_notices(seen: Seen, notices: Sequence[str]) -> Seen:
    return replace(seen, memo=apply_notices(seen.memo, notices))


def _half_life_of(panel: Floats, disclosed: list[float | None], *, whole: bool) -> Floats:
    """Return (k,) half-lives; where not disclosed by the panel's decay, as the nearest of six if `whole`."""
    choices = np.array([1, 2, 4, 8, 16, 32], dtype=float)
    shown = (panel[1:] * panel[:-1]).sum(axis=(0, 1)) / (panel[:-1] ** 2).sum(axis=(0, 1))
    if not whole:
        return -np.log(2.0) / np.log(shown)
    nearest = choices[np.abs(shown[:, None] - 0.5 ** (1 / choices)).argmin(axis=1)]
    return np.array([near if each is None else each for near, each in zip(nearest, disclosed, strict=True)])


def worth(seen: Seen, returns: int) -> Floats:
    """Return (k,) posterior means of today's coefficients after so many weeks of returns."""
    memo, total, highest = seen.memo, 0.0, -np.inf
    means = np.zeros(len(seen.vendors))
    stretches = _stretches(seen, returns)
    prior = 1 - 0.5 ** (1 / seen.half_life)
    letters = sorted(set(seen.vendors))
    for size in _SIZES:
        sets = list(combinations(letters, size))
        covers = np.array(list(product(range(1, len(stretches) + 1), repeat=size)))
        holds = covers == len(stretches)
        chance = np.where(holds, memo.holds, (1 - memo.holds) / len(memo.ends)).prod(axis=1) / len(sets)
        for sound in sets:
            members = [[each == vendor for each in seen.vendors] for vendor in sound]
            at = np.concatenate([np.flatnonzero(each) for each in members])
            of = np.repeat(np.arange(size), [sum(each) for each in members])
            possible = np.ones(len(covers), dtype=bool)
            for vendor, found in memo.found.items():
                in_force = holds[:, sound.index(vendor)] if vendor in sound else np.zeros(len(covers), dtype=bool)
                possible &= in_force == found
            if not possible.any():
                continue
            reduced = [_reduced(upper[:, at], left) for upper, left in stretches]
            for strength in memo.strengths:
                log, centres = _filtered(reduced, covers[possible][:, of], strength**2 * prior[at])
                log += np.log(chance[possible])
                if (top := float(log.max())) > highest:
                    means, total, highest = means * np.exp(highest - top), total * np.exp(highest - top), top
                weights = np.exp(log - highest)
                total += float(weights.sum())
                means[at] += weights @ (centres * holds[possible][:, of])
    return means / total


def _stretches(seen: Seen, returns: int) -> list[tuple[Floats, Floats]]:
    """Return the whitened panel as a triangle, and the reduced returns, for each stretch between possible ends."""
    root = np.linalg.cholesky(seen.covariance)
    design = seen.signals[:returns] * seen.specific[:, None]
    if seen.memo.late is not None:
        vendor, week = seen.memo.late
        design[: week - 1, :, [each == vendor for each in seen.vendors]] = 0.0
    found: list[tuple[Floats, Floats]] = []
    for first, last in pairwise((0, *seen.memo.ends, returns)):
        part = design[first:last]
        white = np.linalg.solve(root, part.transpose(1, 0, 2).reshape(len(root), -1)).reshape(-1, part.shape[2])
        target = np.linalg.solve(root, seen.returns[first:last].T).reshape(-1)
        found.append(_reduced(np.asarray(white, dtype=float), np.asarray(target, dtype=float)))
    return found


def _reduced(design: Floats, target: Floats) -> tuple[Floats, Floats]:
    basis, upper = np.linalg.qr(design)
    return np.asarray(upper, dtype=float), np.asarray(basis.T @ target, dtype=float)


def _filtered(stretches: Sequence[tuple[Floats, Floats]], covers: Integers, variances: Floats) -> tuple[Floats, Floats]:
    """Return log densities (s,) relative to no effect, and coefficients (s, c), by a filter over stretches.

    `covers` (s, c) are the numbers of stretches that each edge covers.
    """
    mean = np.zeros(covers.shape)
    spread = np.broadcast_to(np.diag(variances), (*covers.shape, covers.shape[1]))
    log = np.zeros(len(covers))
    for number, (upper, left) in enumerate(stretches, 1):
        design = upper * (covers >= number)[:, None, :]
        across = design @ spread
        predicted = across @ design.transpose(0, 2, 1) + np.eye(len(left))
        missed = left - (design @ mean[..., None])[..., 0]
        solved = np.linalg.solve(predicted, np.concatenate([missed[..., None], across], axis=2))
        log += (left @ left - (missed * solved[..., 0]).sum(axis=1) - np.linalg.slogdet(predicted)[1]) / 2
        mean = mean + (across.transpose(0, 2, 1) @ solved[..., :1])[..., 0]
        spread = spread - across.transpose(0, 2, 1) @ solved[..., 1:]
    return log, mean


def best(seen: Seen, decision: int, delivered: int, coefficients: Floats, book: Floats) -> Floats:
    """Return the (n,) best book after a decision (from 1), given the decision of the newest signals."""
    n, memo = len(book), seen.memo
    days = range(decision, _WEEKS_TO_COME + 1)
    size = n * len(days)
    hessian, linear = np.zeros((size, size)), np.zeros(size)
    curvature = seen.curvature * memo.tariff
    rows: list[Floats] = []
    amounts: list[float] = []
    newest = seen.signals[seen.weeks + delivered - 1]
    for place, day in enumerate(days):
        block = slice(n * place, n * (place + 1))
        left = 0.5 ** ((day - delivered) / seen.half_life)
        risk = memo.aversion_at(day) * seen.covariance
        target = memo.capital_at(day) * seen.benchmark
        hessian[block, block] += risk + np.diag(curvature)
        linear[block] += seen.specific * (newest @ (coefficients * left)) + risk @ target
        if place:
            before = slice(n * (place - 1), n * place)
            hessian[before, before] += np.diag(curvature)
            hessian[before, block] -= np.diag(curvature)
            hessian[block, before] -= np.diag(curvature)
        else:
            linear[block] += curvature * book
        if day >= memo.limit_from:
            for sector in seen.sector_rows:
                row = np.zeros(size)
                row[block] = sector
                rows.append(row)
                amounts.append(float(sector @ target))
    limits = np.array(rows)
    system = np.block([[hessian, limits.T], [limits, np.zeros((len(rows), len(rows)))]])
    return np.asarray(np.linalg.solve(system, np.concatenate([linear, amounts]))[:n], dtype=float)
