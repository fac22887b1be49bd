"""Second derivation of the posterior under a law: a Kalman filter at unit volatility, and quadrature over volatility.

Shares no code and no method with `law_posterior`, `law_paths` or `reading`. Differences are of the order of rounding.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import polars as pl

from finskillbench.arrays import Floats, Integers
from finskillbench_desk.forensic_screen.laws import Covariates, Law

_LOG_VOLATILITY = np.linspace(-9.0, 9.0, 700)
"""Nodes of the trapezoidal rule; twice as many change no probability by more than 1e-10."""


class _Block(NamedTuple):
    """Ratios that are filtered together, and possible means (c, R) of their shift with kind and log weight (c,)."""

    ratios: list[int]
    means: Floats
    kinds: list[int]
    logs: Floats


class _Likelihoods(NamedTuple):
    """Log likelihoods without management (n,), and by start and possible mean (S, n, c)."""

    plain: Floats
    managed: Floats


def rederive_probabilities(law: Law, y: Floats, acquired: Integers, covariates: Covariates) -> Floats:
    """Return the probability (n, K) of each kind by company; arguments as of `law_posterior.law_probabilities`."""
    kinds, starts = law.signature.shape[0], law.model.starts
    effects = _effects(law, covariates)
    groups: dict[bytes, list[int]] = {}
    for company, effect in enumerate(effects):
        groups.setdefault(effect.tobytes() + bytes(str(acquired[company]), "ascii"), []).append(company)
    probabilities = np.empty((len(y), kinds))
    for companies in groups.values():
        evidence = np.full((len(companies), kinds, starts), -np.inf)
        for block in _blocks(law):
            found = _likelihoods(law, block, y[companies], int(acquired[companies[0]]), effects[companies[0]])
            for place, (kind, log) in enumerate(zip(block.kinds, block.logs, strict=True)):
                ratio = log + (found.managed[:, :, place] - found.plain).T
                evidence[:, kind] = np.logaddexp(evidence[:, kind], ratio)
        for row, company in enumerate(companies):
            rate = law.rates[covariates.industry[company]]
            odds = rate / (1.0 - rate) * law.model.shares * np.exp(evidence[row]).mean(axis=1)
            probabilities[company] = odds / (1.0 + odds.sum())
    return probabilities


def _effects(law: Law, covariates: Covariates) -> Floats:
    """Return the deviation (n, S, T) of log ratios for a shift of 1, quarter by quarter."""
    n, periods = covariates.fiscal.shape
    effects = np.zeros((n, law.model.starts, periods))
    for place in range(law.model.starts):
        for age in range(law.model.starts - place):
            quarter = periods - law.model.starts + place + age
            if law.form == "growing":
                value = np.full(n, (1 + age) / 4)
            elif law.form == "size":
                value = covariates.size
            elif law.form == "growth":
                value = covariates.growth[:, quarter]
            elif law.form == "year_end":
                value = np.array([1.0 if fiscal == 3 else 0.0 for fiscal in covariates.fiscal[:, quarter]])
            elif law.form == "reversing":
                value = np.full(n, 1.0 if age < law.half else -1.0 if age < 2 * law.half else 0.0)
            else:
                value = np.full(n, 1.0 if law.form == "step" else 0.0)
            effects[:, place, quarter] = value
    return effects


def _blocks(law: Law) -> Iterator[_Block]:
    kinds, ratios = law.signature.shape
    signs = (1.0, -1.0) if law.either_sign else (1.0,)
    if law.together:
        rows = [(sign * law.signature[kind], kind) for kind in range(kinds) for sign in signs]
        means = np.array([mean for mean, _ in rows]) * law.model.deviation
        yield _Block(list(range(ratios)), means, [kind for _, kind in rows], np.full(len(rows), -np.log(len(signs))))
        return
    for ratio in range(ratios):
        users = [kind for kind in range(kinds) for _ in signs if law.signature[kind, ratio] != 0.0]
        means = np.array([[law.signature[kind, ratio]] for kind in users]) * law.model.deviation[ratio]
        if users:
            means = means * np.array([*signs] * (len(users) // len(signs)))[:, None]
            touched = np.array([np.count_nonzero(law.signature[kind]) for kind in users])
            yield _Block([ratio], means, users, -np.log(touched * len(signs)))


def _likelihoods(law: Law, block: _Block, y: Floats, acquired: int, effect: Floats) -> _Likelihoods:
    """Sum over quarters of a shock; the last configuration of each filter has no management."""
    starts, periods = effect.shape
    size = len(block.ratios)
    effect = np.vstack([effect, np.zeros((1, periods))])
    noise = np.ones((starts + 1, periods, size))
    shocks = [(0, 1.0 - law.shock)]
    if law.shock > 0.0:
        shocks += [(quarter, law.shock / (periods - 1)) for quarter in range(1, periods)]
    total = np.full((starts + 1, len(y), len(block.kinds)), -np.inf)
    for quarter, chance in shocks:
        shocked = noise.copy()
        shocked[:, quarter] *= np.sqrt(1.0 + law.shock_size**2) if quarter else 1.0
        if law.form != "smoothing":
            found = _filter(law, block, y[:, :, block.ratios], acquired, effect, shocked)
            total = np.logaddexp(total, np.log(chance) + found)
            continue
        for kind in block.kinds:
            calm = shocked.copy()
            for place in range(starts):
                which = np.flatnonzero(law.signature[kind])
                calm[place, periods - starts + place :, which] *= law.damping
            found = _filter(law, block, y[:, :, block.ratios], acquired, effect, calm)
            total[:, :, kind] = found[:, :, kind]
    return _Likelihoods(total[-1, :, 0], total[:-1])


def _filter(law: Law, block: _Block, y: Floats, acquired: int, effect: Floats, noise: Floats) -> Floats:
    """Return log likelihoods (B, n, c) for effects (B, T) and scales of the noise (B, T, R).

    The state holds deviation, level, change of level and the part of the shift about its mean; data and means of the
    shift are filtered side by side, as the filter is linear.
    """
    model, at = law.model, np.array(block.ratios)
    configurations, periods, ratios = noise.shape
    companies, means = len(y), len(block.means)
    sigma = model.sigma[np.ix_(at, at)]
    pull = np.ones(4 * ratios)
    pull[:ratios] = model.persistence[at]
    spread = model.spread * model.deviation[at]
    variance = np.zeros((4 * ratios, 4 * ratios))
    variance[:ratios, :ratios] = model.stationary[np.ix_(at, at)]
    deviations = np.concatenate([model.level_deviation[at], model.acquired[at], np.ones(ratios)])
    variance[ratios:, ratios:] = np.diag(deviations**2)
    variance = np.repeat(variance[None], configurations, axis=0)
    state = np.zeros((configurations, 4 * ratios, companies + means))
    logs = np.zeros(configurations)
    squares = np.zeros((configurations, companies + means, means))
    alone = np.zeros((configurations, companies))
    unit = np.eye(ratios)
    for quarter in range(periods):
        if quarter:
            state = pull[:, None] * state
            variance = pull[:, None] * variance * pull
            scale = noise[:, quarter]
            variance[:, :ratios, :ratios] += sigma * scale[:, :, None] * scale[:, None, :]
        seen = np.zeros((configurations, ratios, 4 * ratios))
        seen[:, :, : 2 * ratios] = np.hstack([unit, unit])
        seen[:, :, 2 * ratios : 3 * ratios] = unit * (0 < acquired <= quarter)
        seen[:, :, 3 * ratios :] = effect[:, quarter, None, None] * np.diag(spread)
        observed = np.empty((configurations, ratios, companies + means))
        observed[:, :, :companies] = y[:, quarter].T
        observed[:, :, companies:] = effect[:, quarter, None, None] * block.means.T
        surprise = observed - seen @ state
        covariance = seen @ variance @ seen.transpose(0, 2, 1)
        solved = np.linalg.solve(covariance, surprise)
        logs += np.linalg.slogdet(covariance)[1]
        alone += (surprise[:, :, :companies] * solved[:, :, :companies]).sum(axis=1)
        squares += surprise.transpose(0, 2, 1) @ solved[:, :, companies:]
        gain = variance @ seen.transpose(0, 2, 1)
        state = state + gain @ solved
        variance = variance - gain @ np.linalg.solve(covariance, gain.transpose(0, 2, 1))
    both = np.einsum("bcc->bc", squares[:, companies:])
    residual = alone[:, :, None] - 2.0 * squares[:, :companies] + both[:, None, :]
    return _over_volatility(residual, periods * ratios, model.freedom) - logs[:, None, None] / 2.0


def _over_volatility(residual: Floats, count: int, freedom: float) -> Floats:
    """Integrate the normal likelihood over the inverse gamma volatility by the trapezoidal rule in its logarithm."""
    top = -(count + freedom) / 2.0 * (np.log((residual + freedom) / (count + freedom)) + 1.0)
    total = np.zeros_like(residual)
    for log in _LOG_VOLATILITY:
        total += np.exp(-(count + freedom) / 2.0 * log - (residual + freedom) / 2.0 * np.exp(-log) - top)
    return top + np.log(total)


def rederive_covariates(tables: Mapping[str, pl.DataFrame]) -> Covariates:
    """Return the public facts of the companies from the tables, by joins and window functions."""
    statements, companies, events = tables["statements"], tables["companies"], tables["events"]
    changed = events.filter(pl.col("event") == "year end changed").select(
        "company", pl.col("quarter").alias("since"), pl.col("value").alias("new")
    )
    industries = companies["industry"].unique().sort()
    order = pl.DataFrame({"industry": industries, "number": np.arange(len(industries))})
    facts = (
        statements.filter(pl.col("version") == pl.col("version").max().over("company", "quarter"))
        .with_columns(revenue=pl.col("net_revenue") / pl.when(pl.col("unit") == "USD").then(1000.0).otherwise(1.0))
        .join(companies, on="company")
        .join(changed, on="company", how="left")
        .sort("company", "quarter")
        .with_columns(
            month=pl.when(pl.col("quarter") >= pl.col("since")).then(pl.col("new")).otherwise(pl.col("year_end_month")),
            ends=pl.col("quarter").str.slice(-1).cast(pl.Int64) * 3,
            grown=pl.col("revenue").log().diff().over("company").fill_null(0.0),
        )
        .with_columns(
            fiscal=(pl.col("ends") - pl.col("month").cast(pl.Int64) + 21) // 3 % 4,
            excess=(pl.col("grown") - pl.col("grown").median().over("industry", "quarter")) / 0.03,
            size=pl.col("revenue").mean().over("company").log(),
        )
    )
    n = len(companies)
    single = facts.group_by("company", maintain_order=True).agg(pl.col("size").first(), pl.col("industry").first())
    size = single["size"].to_numpy()
    return Covariates(
        facts["fiscal"].to_numpy().reshape(n, -1),
        facts["excess"].to_numpy().reshape(n, -1),
        (size - np.mean(size)) / np.std(size),
        single.join(order, on="industry", how="left", maintain_order="left")["number"].to_numpy(),
    )
