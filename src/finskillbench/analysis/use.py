"""Whether agents use the skills that they are offered, and what using them is worth.

What a condition changes is the effect of the offer (intention-to-treat): agents are given skills, and use them or not.
The difference over the episodes in which they were used is no effect of the use: an agent chooses in which episodes to
look something up. The effect of the use can be told where the offer changes nothing but through it (`EXCLUSION`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum

import polars as pl

from finskillbench.analysis.inference import proportions
from finskillbench.analysis.intervals import estimate
from finskillbench.analysis.intervals.clustered_t import Spread
from finskillbench.analysis.results import Comparison, Results, distinct, pairs
from finskillbench.domains import domains
from finskillbench.harness.conditions import ARMS, package_names

EXCLUSION = (
    "The effect of using skills takes it that being offered them changes a score only through their use, and that "
    "nobody has them who is not offered them (Imbens & Angrist 1994)."
)
NOT_CAUSAL = "The difference over the episodes in which skills were used is no effect: agents choose when to use them."
OUTPUT = "script_output"
"""A column that a caller may join to the rows: what became of the output of a script, from the trajectory."""
UNCHANGED, ALTERED = "unchanged", "altered"
MIN_USED = 5
"""Clusters with any use: of fewer, the ratio of the two effects is far from normal."""


class Effect(StrEnum):
    """What a mean difference is taken over."""

    OFFERED = "offered"
    WHERE_USED = "where used"
    USED = "used"


def loads_any(packages: Collection[str]) -> pl.Expr:
    """Whether any of some packages was loaded in a row."""
    return pl.col("skills_loaded").list.eval(pl.element().is_in(list(packages))).list.any()


def with_use(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows with `loaded` (any document), `ran` (any script), `used` (either), and `unchanged` and `altered`.

    The last two say whether the output of a script was submitted as it came or changed; null where the rows have no
    column `script_output`, and false where it is null.
    """
    output = pl.col(OUTPUT) if OUTPUT in rows.columns else None
    loaded, ran = pl.col("skills_loaded").list.len() > 0, pl.col("scripts_run").list.len() > 0
    became = {
        name: pl.lit(None, pl.Boolean) if output is None else (output == name).fill_null(value=False)
        for name in (UNCHANGED, ALTERED)
    }
    return rows.with_columns(loaded=loaded, ran=ran, used=loaded | ran, **became)


def use_rates(results: Results, by: Sequence[str] = ("model", "harness", "condition")) -> pl.DataFrame:
    """In what share of the rows without an error skills were loaded, run, and their output submitted.

    Returns
    -------
    The columns of `by`, `step` ("loaded", "ran", "used", "unchanged", "altered"), and those of `proportions`, whose
    share is null where the step is not known.
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
    """How often packages were loaded in episodes that they are for, and how often others were.

    Parameters
    ----------
    meant_for : domains by the name of a package; by default those of the packages of every domain. Other packages are
        for no domain: loading them is a false trigger.

    Returns
    -------
    The columns of `by`, `kind` ("trigger" or "false trigger"), and those of `proportions`, over the rows without an
    error. Conditions under which agents write their own skills are left out: these are for what they load them in.
    """
    known = meant_for or {
        package: [domain.name for domain in domains() if package in package_names(domain.name)]
        for package in dict.fromkeys(name for domain in domains() for name in package_names(domain.name))
    }
    own, other = pl.lit(value=False), pl.lit(value=False)
    for domain in distinct(results.rows, "domain"):
        here = pl.col("domain") == domain
        fitting = [package for package, names in known.items() if domain in names]
        own = own | (here & loads_any(fitting))
        other = other | (here & pl.col("skills_loaded").list.eval(~pl.element().is_in(fitting)).list.any())
    written = [name for name, arm in ARMS.items() if arm.own]
    counted = results.rows.filter(~pl.col("failed"), ~pl.col("condition").is_in(written))
    rows = counted.with_columns(trigger=own, false=other)
    kinds = {"trigger": "trigger", "false trigger": "false"}
    found = [proportions(rows, column, by).with_columns(kind=pl.lit(kind)) for kind, column in kinds.items()]
    return pl.concat(found).select(*by, "kind", pl.exclude(*by, "kind"))


def use_effects(results: Results, comparison: Comparison, by: Sequence[str] = ("model", "harness")) -> pl.DataFrame:
    """What offering skills changed, what changed where they were used, and what using them is worth.

    Using is worth the effect of the offer over the share of use (the Wald estimator of the complier average causal
    effect, under `EXCLUSION`). Its interval is that of the mean of `difference - effect x use`, over the share of use
    (the delta method), clustered as every interval.

    Parameters
    ----------
    by : columns of `pairs`, at least one.

    Returns
    -------
    The columns of `by`, `effect` ("offered", "where used", "used"), `mean`, `low`, `high`, `pairs`, `clusters`, and
    `rate`, the share of use over the repeats of the episodes. The worth of use is null where none was, and has no
    interval where fewer than five clusters have any.
    """
    keys = ["model", "harness", "episode"]
    treated = with_use(results.rows).filter(pl.col("condition") == comparison.treated, pl.col("score").is_not_null())
    share = treated.group_by(keys).agg(use=pl.col("used").mean())
    paired = pairs(results, comparison).join(share, on=keys, how="left", maintain_order="left")
    offered = estimate(paired, by=by)
    mostly = pl.when(pl.col("use") > 0.5).then("difference")
    where = estimate(paired.with_columns(difference=mostly), by=by)
    rates = paired.group_by(by, maintain_order=True).agg(
        rate=pl.col("use").mean(), users=pl.col("cluster").filter(pl.col("use") > 0).n_unique()
    )
    shown = ["mean", "low", "high", "pairs", "clusters"]
    used = _worth(paired, offered.join(rates, on=by, how="left", maintain_order="left"), by)
    parts = {Effect.OFFERED: offered, Effect.WHERE_USED: where, Effect.USED: used}
    found = [lines.select(*by, pl.lit(effect.value).alias("effect"), *shown) for effect, lines in parts.items()]
    return pl.concat(found).join(rates.drop("users"), on=by, how="left", maintain_order="left")


def _worth(paired: pl.DataFrame, offered: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    worth = offered.with_columns(worth=pl.when(pl.col("rate") > 0).then(pl.col("mean") / pl.col("rate")))
    rest = pl.col("difference") - pl.col("worth") * pl.col("use")
    left = paired.join(worth.select(*by, "worth"), on=by, how="left", maintain_order="left").with_columns(rest=rest)
    errors = estimate(left, "rest", by)
    lines: list[tuple[float | None, ...]] = []
    told = zip(worth.iter_rows(named=True), errors.select("error", "freedom").iter_rows(), strict=True)
    for line, (error, freedom) in told:
        if error is None or line["users"] < MIN_USED:
            lines.append((line["worth"], None, None))
            continue
        half = Spread(error, freedom).half_width / line["rate"]
        lines.append((line["worth"], line["worth"] - half, line["worth"] + half))
    said = pl.DataFrame(lines, schema=dict.fromkeys(("mean", "low", "high"), pl.Float64), orient="row")
    return pl.concat([worth.drop("mean", "low", "high"), said], how="horizontal")
