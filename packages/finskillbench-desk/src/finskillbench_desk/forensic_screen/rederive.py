"""Independent derivation of the label from the task input, sharing no code with the build.

Paths and shifts are whitened by the Cholesky factor of a path's joint covariance, once per acquisition pattern. The
shift is integrated by the determinant lemma. Base rate and materiality are parsed from the memo; traps are found by
omitting one correction at a time.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy.linalg import solve_triangular  # pyright: ignore[reportUnknownVariableType]

from finskillbench.arrays import Floats
from finskillbench.episode import JsonObject

_KEYS = ("company", "quarter")


def rederive_answer(task_input: Mapping[str, Any]) -> JsonObject:
    """Return the expected output: posterior probability and likeliest kind of each company."""
    names = [kind["name"] for kind in task_input["model"]["kinds"]]
    return {
        "assessments": [
            {"company": company, "probability": math.fsum(row), "kind": names[int(np.argmax(row))]}
            for company, row in rederive_kinds(task_input).items()
        ]
    }


def rederive_kinds(task_input: Mapping[str, Any]) -> dict[str, list[float]]:
    """Return the probability of each kind of management by company, in the order of `model.kinds`."""
    y, bought = paths(task_input)
    return of_paths(y, bought, task_input)


def frames_of(task_input: Mapping[str, Any]) -> dict[str, pl.DataFrame]:
    return {name: value.frame for name, value in task_input.items() if hasattr(value, "frame")}


def paths(task_input: Mapping[str, Any]) -> tuple[dict[str, Floats], dict[str, int]]:
    """Return adjusted log ratios (T, R) and the quarter of a material acquisition, by company."""
    model, memo, frames = task_input["model"], task_input["documents"]["memo"], frames_of(task_input)
    material = material_of(memo)
    long = _log_ratios(frames["statements"], model["ratios"])
    long, bought = _adjusted(long, frames, model["ratios"], material)
    names = [ratio["name"] for ratio in model["ratios"]]
    by_company = {key[0]: group.sort("quarter").select(names) for key, group in long.group_by("company")}
    return {name: by_company[name].to_numpy() for name in frames["companies"]["company"].to_list()}, bought


def material_of(text: str) -> float:
    """Return the least share of assets, in per cent, at which an acquisition counts."""
    return _number(r"at least ([\d.]+) per cent of the buyer's total assets", text)


def of_paths(
    y: Mapping[str, Floats], bought: Mapping[str, int], task_input: Mapping[str, Any]
) -> dict[str, list[float]]:
    """Return the probability of each kind by company from adjusted paths (T, R)."""
    model, archive = task_input["model"], task_input["archive"].frame
    periods = max((len(path) for path in y.values()), default=0)
    hypotheses = _hypotheses(periods, model, archive, base_rate(task_input))
    patterns: dict[int, list[str]] = {}
    for company in y:
        patterns.setdefault(bought.get(company, -1), []).append(company)
    found: dict[str, list[float]] = {}
    for quarter, members in patterns.items():
        by_kind = _pattern(np.array([y[name] for name in members]), quarter, model, hypotheses)
        found |= dict(zip(members, by_kind.tolist(), strict=True))
    return {company: found[company] for company in y}


def base_rate(task_input: Mapping[str, Any]) -> float:
    return _number(r"base rate of ([\d.]+) per cent", task_input["documents"]["memo"]) / 100.0


def constant_shares(rows: Mapping[str, list[float]]) -> list[float]:
    """Return the expected number of managed companies by kind, the merit of naming that kind for all."""
    return [math.fsum(column) for column in zip(*rows.values(), strict=True)]


def _number(pattern: str, text: str) -> float:
    found = re.search(pattern, text)
    if found is None:
        raise ValueError(f"memo: no text matches {pattern!r}")
    return float(found[1])


def _log_ratios(statements: pl.DataFrame, ratios: list[dict[str, Any]]) -> pl.DataFrame:
    """Return log ratios less the growth effect, from the last versions with slips corrected."""
    last = statements.filter(pl.col("version") == pl.col("version").max().over(_KEYS)).sort(_KEYS)
    used = {ratio[side] for ratio in ratios for side in ("numerator", "denominator")}
    # A slip affects exactly the lines of the balance sheet.
    columns = statements.columns
    sheet = set(columns[columns.index("cash") : columns.index("equity") + 1]) & used
    slip = pl.when(pl.col("cash") == 1000 * pl.col("closing_cash")).then(1000.0).otherwise(1.0)
    last = last.with_columns([(pl.col(name) / slip).alias(name) for name in sheet])
    growth = pl.col("net_revenue").log().diff().over("company").fill_null(0.0)
    return last.select(
        *_KEYS,
        *[
            ((pl.col(ratio["numerator"]) / pl.col(ratio["denominator"])).log() - ratio["growth_effect"] * growth).alias(
                ratio["name"]
            )
            for ratio in ratios
        ],
    )


def _adjusted(
    long: pl.DataFrame, frames: Mapping[str, pl.DataFrame], ratios: list[dict[str, Any]], material: float
) -> tuple[pl.DataFrame, dict[str, int]]:
    """Subtract announced changes, path and season; also return quarters of material acquisitions."""
    events = frames["events"]
    order = long["quarter"].unique().sort().to_list()
    large = events.filter((pl.col("event") == "acquisition completed") & (pl.col("value") >= material))
    bought = {row["company"]: order.index(row["quarter"]) for row in large.iter_rows(named=True)}
    leases = events.filter(pl.col("event") == "lease standard adopted").select("company", adopted="quarter")
    moved = events.filter(pl.col("event") == "year end changed").select("company", changed="quarter", month="value")
    joined = (
        long.join(frames["companies"], on="company")
        .join(leases, on="company", how="left")
        .join(moved, on="company", how="left")
        .with_columns(
            ends=pl.when(pl.col("quarter") >= pl.col("changed"))
            .then(pl.col("month"))
            .otherwise(pl.col("year_end_month"))
            .cast(pl.Int64),
            calendar=pl.col("quarter").str.slice(-1).cast(pl.Int64),
        )
        .with_columns(
            # A year end in calendar quarter e makes e + 1 the first fiscal quarter.
            fiscal_quarter=((pl.col("calendar") - pl.col("ends") // 3 + 3) % 4 + 1),
            leased=(pl.col("quarter") >= pl.col("adopted")).fill_null(value=False),
        )
    )
    seasons = frames["seasons"].with_columns(pl.col("fiscal_quarter").cast(pl.Int64))
    joined = joined.join(frames["industry_paths"], on=["industry", "quarter"], suffix="_path").join(
        seasons, on=["industry", "fiscal_quarter"], suffix="_season"
    )
    adjusted = [
        (
            pl.col(name := ratio["name"])
            - (pl.col(f"{name}_path") + pl.col(f"{name}_season")) / 10_000
            - pl.col("leased").cast(pl.Float64) * ratio["lease_effect"]
        ).alias(ratio["name"])
        for ratio in ratios
    ]
    return joined.select(*_KEYS, *adjusted), bought


def _archived(archive: pl.DataFrame, kind: dict[str, Any], model: dict[str, Any]) -> tuple[Floats, Floats]:
    """Return mean and covariance of a new case's shift from the archived cases of a kind."""
    names = [ratio["name"] for ratio in model["ratios"]]
    profile = np.array(kind["profile"], dtype=np.float64)
    found = archive.filter(
        pl.col("basis").is_in(["court judgment", "regulator's order"]),
        pl.col("industry") != "Financials",
        pl.col("kind") == kind["name"],
        pl.col("quarter").is_between(0, len(profile) - 1),
    )
    effort = float((profile**2).sum())
    measured = found.group_by("case", maintain_order=True).agg(
        [(pl.col(name) * pl.lit(pl.Series(profile)).gather(pl.col("quarter"))).sum() / effort / 100 for name in names]
    )
    noise = np.array(model["correlation_of_innovations"]) / effort
    between = model["case_spread_sds"] ** 2 * np.eye(len(names))
    mean: Floats = np.zeros(len(names))
    uncertainty = float(model["prior_mean_sds"]) ** 2 * np.eye(len(names))
    cases = len(measured)
    if cases:  # the average of the cases is one measurement
        total = np.asarray(uncertainty + (between + noise) / cases, dtype=np.float64)
        gain = uncertainty @ np.linalg.inv(total)
        mean = gain @ measured.select(names).to_numpy().mean(axis=0)
        uncertainty = uncertainty - gain @ uncertainty
    unit = np.array([ratio["innovation_sd"] for ratio in model["ratios"]])
    return mean * unit, (uncertainty + between) * np.outer(unit, unit)


def _pattern(y: Floats, quarter: int, model: dict[str, Any], hypotheses: _Hypotheses) -> Floats:
    """Return the posterior by kind (n, K) of companies (n, T, R) with an acquisition in one quarter, -1 for none."""
    members, periods, measures = y.shape
    phi = np.array([ratio["persistence"] for ratio in model["ratios"]])
    root = np.linalg.cholesky(_joint_covariance(periods, quarter, phi, model))
    both = np.hstack([y.reshape(members, -1).T, hypotheses.design])
    white = np.asarray(solve_triangular(root, both, lower=True, check_finite=False), dtype=np.float64)
    path, seen = white[:, :members], white[:, members:]
    degrees = model["volatility_degrees_of_freedom"]
    weight = (degrees + periods * measures) / 2.0
    plain = (path**2).sum(axis=0)
    count = len(hypotheses.mean)
    spread = seen.reshape(-1, count, measures).transpose(1, 0, 2) @ hypotheses.scatter
    expected = np.einsum("ahr,hr->ha", seen.reshape(-1, count, measures), hypotheses.mean)
    inner = np.eye(measures) + spread.transpose(0, 2, 1) @ spread
    left = spread.transpose(0, 2, 1) @ path - (spread.transpose(0, 2, 1) @ expected[:, :, None])
    squares = plain - 2.0 * expected @ path + (expected**2).sum(axis=1)[:, None]
    squares -= (left * np.asarray(np.linalg.solve(inner, left), dtype=np.float64)).sum(axis=1)
    logs: Floats = hypotheses.prior[:, None] - 0.5 * np.linalg.slogdet(inner)[1][:, None]
    logs = logs - weight * np.log1p(squares / degrees)
    none = hypotheses.nothing - weight * np.log1p(plain / degrees)
    total = np.logaddexp(np.logaddexp.reduce(logs, axis=0), none)
    by_kind = np.logaddexp.reduce(logs.reshape(len(model["kinds"]), -1, members), axis=1)
    return np.exp(by_kind - total).T


class _Hypotheses(NamedTuple):
    """Every kind and start: response (T * R, H * R), mean and covariance root of the shift, and log prior.

    `nothing` is the log prior of no management.
    """

    design: Floats
    mean: Floats
    scatter: Floats
    prior: Floats
    nothing: float


def _hypotheses(periods: int, model: dict[str, Any], archive: pl.DataFrame, base_rate: float) -> _Hypotheses:
    phi = np.array([ratio["persistence"] for ratio in model["ratios"]])
    starts = model["possible_starts"]
    designs: list[Floats] = []
    means: list[Floats] = []
    scatters: list[Floats] = []
    for kind in model["kinds"]:
        mean, covariance = _archived(archive, kind, model)
        for start in range(periods - starts, periods):
            response = _response(np.array(kind["profile"], dtype=np.float64), start, periods, phi)
            designs.append((response[:, :, None] * np.eye(len(phi))).reshape(-1, len(phi)))
            means.append(mean)
            scatters.append(np.asarray(np.linalg.cholesky(covariance), dtype=np.float64))
    prior = np.repeat([np.log(base_rate * kind["share"] / starts) for kind in model["kinds"]], starts)
    return _Hypotheses(np.hstack(designs), np.array(means), np.array(scatters), prior, float(np.log(1.0 - base_rate)))


def _joint_covariance(periods: int, quarter: int, phi: Floats, model: dict[str, Any]) -> Floats:
    """Return the covariance of an unmanaged path at volatility 1, quarters outer and ratios inner."""
    unit = np.array([ratio["innovation_sd"] for ratio in model["ratios"]])
    shock = np.array(model["correlation_of_innovations"]) * np.outer(unit, unit)
    settled = shock / (1.0 - np.outer(phi, phi))
    times = np.arange(periods)
    gap = times[:, None] - times
    ahead = phi[:, None, None] ** np.maximum(gap, 0)
    # The later quarter's ratio decays with its persistence.
    blocks = np.where(gap >= 0, ahead[:, None] * settled[:, :, None, None], 0.0)
    blocks += np.where(gap < 0, (phi[:, None, None] ** np.maximum(-gap, 0))[None] * settled[:, :, None, None], 0.0)
    level = np.ones((periods, periods)) * model["own_level_sds"] ** 2
    if quarter >= 0:
        later = (times >= quarter).astype(float)
        level = level + np.outer(later, later) * model["acquired_level_sds"] ** 2
    blocks += np.einsum("rs,tu->rstu", np.diag(unit**2), level)
    size = periods * len(phi)
    return blocks.transpose(2, 0, 3, 1).reshape(size, size)


def _response(profile: Floats, start: int, periods: int, phi: Floats) -> Floats:
    """Return the response (T, R) of each log ratio to a unit shift."""
    moved = np.zeros((periods, len(phi)))
    for place, push in enumerate(profile):
        first = start + place
        if first < periods:
            moved[first:] += push * phi ** np.arange(periods - first)[:, None]
    return moved


_CERTAIN = 1e9
"""Degrees of freedom that fix the volatility at its value before the window."""
_LIKELIER = 0.5
_SPURT, _QUARTERS = 0.075, 3
"""Growth above the industry median, and the number of successive quarters of it, that make a spurt."""
Case = Mapping[str, Any]


@dataclass(frozen=True)
class _Read:
    frame: pl.DataFrame


def rederive_traps(case: Case) -> list[dict[str, Any]]:
    """Return kind, site and misread probabilities of every trap: corrections by company, the archive, the base rate."""
    y, bought = paths(case)
    clean = {company: math.fsum(row) for company, row in of_paths(y, bought, case).items()}
    found: list[dict[str, Any]] = []
    for kind, misread in misread_paths(case, y).items():
        where = [name for name in y if name in misread and not np.array_equal(misread[name], y[name])]
        if kind == "acquisition":
            where = [name for name in y if name in bought]
        taken_in = _in_deviations({name: misread[name] for name in where}, case)
        found += [
            {"kind": kind, "where": name, "probabilities": {name: taken_in[name]}}
            for name in where
            if clean[name] < _LIKELIER < taken_in[name]
        ]
    archive = case["archive"].frame
    sound = pl.col("basis").is_in(["court judgment", "regulator's order"]) & (pl.col("industry") != "Financials")
    if not archive.select(sound.all()).item():
        everything = archive.with_columns(basis=pl.lit("court judgment"), industry=pl.lit("any"))
        found.append(_of_all("archive", "archive", {**case, "archive": _Read(everything)}))
    memo = case["documents"]["memo"]
    start = memo.index("base rate of ") + len("base rate of ")
    even = memo[:start] + "50" + memo[memo.index(" per cent", start) :]
    found.append(_of_all("base_rate", "memo", {**case, "documents": {**case["documents"], "memo": even}}))
    return found


def _of_all(kind: str, where: str, case: Case) -> dict[str, Any]:
    return {
        "kind": kind,
        "where": where,
        "probabilities": {name: math.fsum(row) for name, row in rederive_kinds(case).items()},
    }


def misread_paths(case: Case, y: Mapping[str, Floats]) -> dict[str, dict[str, Floats]]:
    """Return the paths without each correction, by its kind."""
    frames = frames_of(case)
    statements, events = frames["statements"], frames["events"]
    read: dict[str, dict[str, pl.DataFrame]] = {
        "unit_slip": {"statements": statements.with_columns(closing_cash=pl.lit(-1))},
        "restatement": {"statements": statements.filter(pl.col("version") == 1)},
        "lease_standard": {"events": events.filter(pl.col("event") != "lease standard adopted")},
        "fiscal_year": {"events": events.filter(pl.col("event") != "year end changed")},
    }
    found = {
        kind: paths({**case, **{name: _Read(frame) for name, frame in tables.items()}})[0]
        for kind, tables in read.items()
    }
    effects = np.array([ratio["growth_effect"] for ratio in case["model"]["ratios"]])
    spurts = _spurts(statements, frames["companies"])
    with_growth = {name: y[name] + np.outer(spurts[name], effects) for name in spurts}
    return dict(sorted({**found, "acquisition": dict(y), "growth": with_growth}.items()))


def _spurts(statements: pl.DataFrame, companies: pl.DataFrame) -> dict[str, Floats]:
    """Return growth (T,) above the industry median for companies with a spurt, 0 in all other quarters."""
    last = statements.filter(pl.col("version") == pl.col("version").max().over("company", "quarter"))
    beyond = (
        last.sort("company", "quarter")
        .select("company", "quarter", pl.col("net_revenue").log().diff().over("company").fill_null(0.0).alias("growth"))
        .join(companies.select("company", "industry"), on="company")
        .with_columns(beyond=pl.col("growth") - pl.col("growth").median().over("industry", "quarter"))
        .sort("company", "quarter")
        .with_columns(run=(pl.col("beyond") > _SPURT).rle_id().over("company"))
        .with_columns(
            spurt=pl.when((pl.col("beyond") > _SPURT) & (pl.len().over("company", "run") >= _QUARTERS))
            .then(pl.col("beyond"))
            .otherwise(0.0)
        )
    )
    found = {str(key[0]): group["spurt"].to_numpy() for key, group in beyond.group_by("company", maintain_order=True)}
    return {name: spurt for name, spurt in found.items() if spurt.any()}


def _in_deviations(y: Mapping[str, Floats], case: Case) -> dict[str, float]:
    """Return probabilities of management if the volatility before the window is taken as known."""
    model = case["model"]
    persistence = np.array([ratio["persistence"] for ratio in model["ratios"]])
    unit = np.array([ratio["innovation_sd"] for ratio in model["ratios"]])
    root = np.linalg.cholesky(np.array(model["correlation_of_innovations"]))
    scaled: dict[str, Floats] = {}
    for name, path in y.items():
        calm = path[: len(path) - model["possible_starts"]]
        moves = (calm[1:] - persistence * calm[:-1]) / unit
        white = np.asarray(np.linalg.solve(root, (moves - moves.mean(axis=0)).T), dtype=np.float64)
        scaled[name] = path / np.sqrt((white**2).sum() / ((len(moves) - 1) * len(unit)))
    certain = {**case, "model": {**model, "volatility_degrees_of_freedom": _CERTAIN}}
    return {name: math.fsum(row) for name, row in of_paths(scaled, {}, certain).items()} if scaled else {}
