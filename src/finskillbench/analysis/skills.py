"""Effects of skills: gain, cost, triggers, and use.

Episodes of other domains than the skill's are negative controls: there it should not be loaded or change scores.

A condition's effect is that of the offer (intention-to-treat), since agents choose to use skills or not. Differences
over the episodes with use are therefore biased. The effect of use is identified if the offer acts only through it
(`EXCLUSION`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import polars as pl

from finskillbench.analysis.clusters import Interval, StandardError
from finskillbench.analysis.inference import proportions
from finskillbench.analysis.intervals import estimate_means
from finskillbench.analysis.noise import LEAST_CHANGE, always_valid_interval, cluster_means
from finskillbench.analysis.results import Comparison, Results, distinct_values, pairs
from finskillbench.domains import domains
from finskillbench.errors import InputError
from finskillbench.harness.conditions import ARMS, package_names
from finskillbench.harness.skills.loader import SkillPackage
from finskillbench.harness.skills.recipes import find_recipe

EXCLUSION = (
    "The effect of using skills assumes that the offer changes a score only through their use, and that skills are "
    "unavailable without the offer (Imbens & Angrist 1994)."
)
NOT_CAUSAL = "The difference over the episodes in which skills were used is not causal: agents choose when to use them."
OUTPUT = "script_output"
"""Optional row column: the fate of a script's output, from the trajectory."""
UNCHANGED, ALTERED = "unchanged", "altered"
MIN_USED = 5
"""Minimum clusters with any use: with fewer, the ratio of the two effects is far from normal."""


class _Effect(StrEnum):
    OFFERED = "offered"
    WHERE_USED = "where used"
    USED = "used"


def loads_any(packages: Collection[str]) -> pl.Expr:
    """Test if any of the packages was loaded in a row."""
    return pl.col("skills_loaded").list.eval(pl.element().is_in(list(packages))).list.any()


def with_use(rows: pl.DataFrame) -> pl.DataFrame:
    """Add `loaded`, `ran`, `used`, and, from `script_output` (else null), `unchanged` and `altered` to rows."""
    output = pl.col(OUTPUT) if OUTPUT in rows.columns else None
    loaded, ran = pl.col("skills_loaded").list.len() > 0, pl.col("scripts_run").list.len() > 0
    became = {
        name: pl.lit(None, pl.Boolean) if output is None else (output == name).fill_null(value=False)
        for name in (UNCHANGED, ALTERED)
    }
    return rows.with_columns(loaded=loaded, ran=ran, used=loaded | ran, **became)


def use_rates(results: Results, by: Sequence[str] = ("model", "harness", "condition")) -> pl.DataFrame:
    """Compute the shares of rows without errors with skills loaded, run, and output submitted, by `by` and `step`.

    Shares of unknown steps are null; the other columns are those of `proportions`.
    """
    rows = with_use(results.rows.filter(~pl.col("failed")))
    steps = ("loaded", "ran", "used", UNCHANGED, ALTERED)
    found = [proportions(rows, step, by).with_columns(step=pl.lit(step)) for step in steps]
    return pl.concat(found).select(*by, "step", pl.exclude(*by, "step"))


def trigger_rates(
    results: Results,
    by: Sequence[str] = ("model", "harness", "condition"),
    meant_for: Mapping[str, Collection[str]] | None = None,
) -> pl.DataFrame:
    """Compute how often packages were loaded in episodes of their domains, and in others.

    Returns the columns of `by`, `kind` ("trigger" or "false trigger"), and those of `proportions`, over rows without
    errors. Conditions with self-written skills are left out.

    Parameters
    ----------
    meant_for : domains by package; by default those of the built-in packages. Loading any other package is a false
        trigger.
    """
    known = meant_for or {
        package: [domain.name for domain in domains() if package in package_names(domain.name)]
        for package in dict.fromkeys(name for domain in domains() for name in package_names(domain.name))
    }
    triggered, false_triggered = pl.lit(value=False), pl.lit(value=False)
    for domain in distinct_values(results.rows, "domain"):
        in_domain = pl.col("domain") == domain
        fitting = [package for package, names in known.items() if domain in names]
        triggered = triggered | (in_domain & loads_any(fitting))
        false_triggered = false_triggered | (
            in_domain & pl.col("skills_loaded").list.eval(~pl.element().is_in(fitting)).list.any()
        )
    written = [name for name, arm in ARMS.items() if arm.own]
    counted = results.rows.filter(~pl.col("failed"), ~pl.col("condition").is_in(written))
    rows = counted.with_columns(trigger=triggered, false=false_triggered)
    kinds = {"trigger": "trigger", "false trigger": "false"}
    found = [proportions(rows, column, by).with_columns(kind=pl.lit(kind)) for kind, column in kinds.items()]
    return pl.concat(found).select(*by, "kind", pl.exclude(*by, "kind"))


def use_effects(results: Results, comparison: Comparison, by: Sequence[str] = ("model", "harness")) -> pl.DataFrame:
    """Estimate the effect of offering skills, the difference where they were used, and the effect of use.

    The effect of use is that of the offer over the share of use (Wald estimator of the complier average causal effect,
    under `EXCLUSION`). Its interval is that of the mean of `difference - effect x use`, over the share of use (delta
    method), clustered.

    Parameters
    ----------
    by : at least one column of `pairs`.

    Returns
    -------
    The columns of `by`, `effect` ("offered", "where used", "used"), `mean`, `low`, `high`, `pairs`, `clusters`, and
    `rate`, the share of use over repeats. The effect of use is null without use; its interval needs five clusters with
    use.
    """
    keys = ["model", "harness", "episode"]
    treated = with_use(results.rows).filter(pl.col("condition") == comparison.treated, pl.col("score").is_not_null())
    share = treated.group_by(keys).agg(use=pl.col("used").mean())
    paired = pairs(results, comparison).join(share, on=keys, how="left", maintain_order="left")
    offered = estimate_means(paired, by=by)
    mostly = pl.when(pl.col("use") > 0.5).then("difference")
    where = estimate_means(paired.with_columns(difference=mostly), by=by)
    rates = paired.group_by(by, maintain_order=True).agg(
        rate=pl.col("use").mean(), users=pl.col("cluster").filter(pl.col("use") > 0).n_unique()
    )
    shown = ["mean", "low", "high", "pairs", "clusters"]
    used = _worth(paired, offered.join(rates, on=by, how="left", maintain_order="left"), by)
    parts = {_Effect.OFFERED: offered, _Effect.WHERE_USED: where, _Effect.USED: used}
    found = [lines.select(*by, pl.lit(effect.value).alias("effect"), *shown) for effect, lines in parts.items()]
    return pl.concat(found).join(rates.drop("users"), on=by, how="left", maintain_order="left")


def _worth(paired: pl.DataFrame, offered: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    worth = offered.with_columns(worth=pl.when(pl.col("rate") > 0).then(pl.col("mean") / pl.col("rate")))
    rest = pl.col("difference") - pl.col("worth") * pl.col("use")
    left = paired.join(worth.select(*by, "worth"), on=by, how="left", maintain_order="left").with_columns(rest=rest)
    errors = estimate_means(left, "rest", by)
    lines: list[tuple[float | None, ...]] = []
    estimates = zip(worth.iter_rows(named=True), errors.select("error", "freedom").iter_rows(), strict=True)
    for line, (error, freedom) in estimates:
        if error is None or line["users"] < MIN_USED:
            lines.append((line["worth"], None, None))
            continue
        half = StandardError(error, freedom).half_width / line["rate"]
        lines.append((line["worth"], line["worth"] - half, line["worth"] + half))
    intervals = pl.DataFrame(lines, schema=dict.fromkeys(("mean", "low", "high"), pl.Float64), orient="row")
    return pl.concat([worth.drop("mean", "low", "high"), intervals], how="horizontal")


IN_DOMAIN, OTHER_DOMAINS, ALL = "its domain", "other domains", "all"


@dataclass(frozen=True, slots=True)
class _Part:
    """Mean scores over episodes scored under both conditions, their difference and interval; None if undefined."""

    name: str
    episodes: int
    clusters: int
    treated: float | None
    reference: float | None
    difference: float | None
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class ConditionUsage:
    """Rows, errors, mean resources and price of a condition; token means cover the `counted` rows with known tokens."""

    condition: str
    rows: int
    errors: int
    turns: float
    tool_calls: float
    counted: int
    input_tokens: float | None
    output_tokens: float | None
    cost_usd: float | None


@dataclass(frozen=True, slots=True)
class Loads:
    """Number of episodes in which the skill was loaded."""

    loaded: int
    episodes: int

    @property
    def rate(self) -> float | None:
        """Share of episodes, None without any."""
        return self.loaded / self.episodes if self.episodes else None


@dataclass(frozen=True, slots=True)
class Flip:
    """An episode whose score changed."""

    task_id: str
    sub_task: str
    treated: float
    reference: float

    @property
    def change(self) -> float:
        return self.treated - self.reference


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Comparison of two conditions under one model.

    `meant_for` are the skill's domains. Without any, there are no triggers and `parts` has only `ALL`. `flips` are
    sorted from best to worst.
    """

    model: str
    meant_for: tuple[str, ...]
    parts: tuple[_Part, ...]
    sides: tuple[ConditionUsage, ConditionUsage]
    loads: Mapping[str, Loads]
    trigger: Loads
    false_trigger: Loads
    flips: tuple[Flip, ...]


def evaluate_skills(
    results: Results,
    comparison: Comparison,
    packages: Collection[str],
    meant_for: Collection[str],
    *,
    sequential: bool = False,
) -> Evaluation:
    """Compare two conditions of a run of one model.

    Raises `InputError`: the rows are of several models, or a condition has none.

    Parameters
    ----------
    comparison : the condition with the skill, and its reference.
    packages : names of the evaluated packages.
    meant_for : their domains, empty if unknown.
    sequential : average over clusters, with intervals that hold although results decide when the run stops.
    """
    arms = [results.rows.filter(pl.col("condition") == name) for name in comparison]
    for name, arm in zip(comparison, arms, strict=True):
        if arm.is_empty():
            raise InputError(f"no finished episode under {name}; rerun the command to resume the run")
    if len(results.models) != 1:
        raise InputError(
            f"rows of several models: {', '.join(sorted(results.models))}; evaluate skills with one model at a time"
        )
    in_domain = pl.col("domain").is_in(list(meant_for))
    groups = (
        {IN_DOMAIN: in_domain, OTHER_DOMAINS: ~in_domain, ALL: pl.lit(value=True)}
        if meant_for
        else {ALL: pl.lit(value=True)}
    )
    paired = pairs(results, comparison)
    treated = arms[0]
    return Evaluation(
        model=results.models[0],
        meant_for=tuple(meant_for),
        parts=tuple(_part(name, paired.filter(group), sequential=sequential) for name, group in groups.items()),
        sides=(_side(comparison.treated, arms[0]), _side(comparison.reference, arms[1])),
        loads={
            name: _loads(treated.filter(pl.col("domain") == name), packages)
            for name in distinct_values(treated, "domain")
        },
        trigger=_loads(treated.filter(in_domain), packages),
        false_trigger=_loads(treated.filter(~in_domain) if meant_for else treated.clear(), packages),
        flips=_flips(paired),
    )


def domains_of(packages: Iterable[SkillPackage]) -> tuple[str, ...]:
    """Return the domains of the packages.

    A package belongs to a domain with a built-in package of its name, if its text names the domain or a subtask
    (`stress_testing`; plain single words do not count), or if it has a script table row for one of its subtasks.
    """
    found = list(packages)
    return tuple(
        domain.name
        for domain in domains()
        if any(
            package.name in package_names(domain.name)
            or any(_names(package, name) for name in (domain.name, *(each.name for each in domain.subtasks)))
            for package in found
        )
    )


def _names(package: SkillPackage, name: str) -> bool:
    text = f"{package.description}\n{package.body}"
    return find_recipe(package.body, name) is not None or ("_" in name and re.search(rf"\b{name}\b", text) is not None)


def _part(name: str, paired: pl.DataFrame, *, sequential: bool) -> _Part:
    columns = ("treated", "reference", "difference")
    clusters = paired["cluster"].n_unique()
    if sequential and clusters:
        means = cluster_means(paired)
        interval = always_valid_interval(means["difference"])
        treated, reference, mean = means.select(pl.mean(*columns)).row(0)
        return _Part(name, paired.height, clusters, treated, reference, mean, interval)
    treated, reference, difference = (estimate_means(paired, each) for each in columns)
    mean, low, high = difference.select("mean", "low", "high").row(0)
    interval = None if low is None else (low, high)
    return _Part(name, paired.height, clusters, treated["mean"].item(), reference["mean"].item(), mean, interval)


def _side(condition: str, rows: pl.DataFrame) -> ConditionUsage:
    turns, calls = (sum(rows[name].to_list()) / rows.height for name in ("episodes", "tool_calls"))
    counted = rows.select("total_input_tokens", "total_output_tokens").drop_nulls()
    read, written = (sum(each.to_list()) / len(each) if len(each) else None for each in counted)
    errors = int(rows["failed"].sum())
    cost = None if rows["cost_usd"].has_nulls() else math.fsum(rows["cost_usd"].to_list())
    return ConditionUsage(condition, rows.height, errors, turns, calls, counted.height, read, written, cost)


def _loads(rows: pl.DataFrame, packages: Collection[str]) -> Loads:
    return Loads(rows.filter(loads_any(packages)).height, rows.height)


def _flips(paired: pl.DataFrame) -> tuple[Flip, ...]:
    scores = paired.select("episode", "sub_task", "treated", "reference").iter_rows()
    moved = [flip for flip in (Flip(*each) for each in scores) if abs(flip.change) > LEAST_CHANGE]
    return tuple(sorted(moved, key=lambda flip: (-flip.change, flip.task_id)))
