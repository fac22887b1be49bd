"""Result rows under one profile, paired comparisons, strata and coverage.

Rows of status `error` have a null score and enter no mean. Repeats of an episode are averaged first, so that each
episode counts once.

Stratifying episodes by the score used in the difference causes regression to the mean. So strata use the mean of a
whole subtask under one model, or repeats that the difference does not use.

The unknown scores of failed rows are within [0, 1], which bounds every mean and difference (Manski 1990).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import polars as pl

from finskillbench.domains import domains, subtasks
from finskillbench.episode import PAPER_SUITE, Profile, Status
from finskillbench.errors import InputError
from finskillbench.harness.conditions import Condition
from finskillbench.harness.models import NO_ARGUMENTS, ModelKey, labels
from finskillbench.harness.skills.user_skills import USER_SKILLS_PREFIX

REFERENCE = Condition.NO_SKILL.value
CURATED = Condition.CURATED.value
OUR_HARNESS = "finskillbench"
_FALLBACK = (Profile.CERTIFIED, Profile.STRICT, Profile.PAPER)
_NEEDED = ("model", "condition", "task_id", "sub_task", "cluster", "status", "scores")
_FILLED: dict[str, pl.Expr] = {
    "harness": pl.lit(OUR_HARNESS),
    "arguments": pl.lit(NO_ARGUMENTS),
    "difficulty": pl.lit("unknown"),
    "run_idx": pl.lit(0, dtype=pl.Int64),
    "edition": pl.lit(""),
    "scorer_version": pl.lit(""),
}
"""Defaults of columns that hand-made tables may omit."""
EPISODE = ("model", "harness", "condition", "episode")
"""Key of an episode's mean over its repeats."""


class Comparison(NamedTuple):
    """Two conditions: the treated one and its reference."""

    treated: str
    reference: str


@dataclass(frozen=True, slots=True)
class Results:
    """Rows of one or several runs under one profile.

    `rows` has the columns of `rows.parquet`; `model` is the label in tables and `score` the score under the subtask's
    profile (`profiles`), null if none. Further columns are `episode` and `cluster` (unique across editions), `program`,
    `headline`, `suite` and `failed` (status `error`). `headline` means that the subtask counts towards it, or towards
    the suite's if all rows are of another suite. `suite` is that of a domain outside of the paper's, else empty, and
    `suite_headline` whether the subtask counts towards that suite's headline.
    `episodes` has one row per model, harness, condition and scored episode: mean `score` over `repeats`, with domain,
    sub_task, difficulty, cluster, program, headline and suite. `excluded` are the models left out.
    """

    profile: Profile
    profiles: dict[str, Profile]
    rows: pl.DataFrame
    episodes: pl.DataFrame
    conditions: tuple[str, ...]
    excluded: tuple[str, ...]

    @property
    def models(self) -> list[str]:
        return distinct_values(self.rows, "model")

    @property
    def sub_tasks(self) -> list[str]:
        return list(self.profiles)

    @property
    def other_profiles(self) -> list[str]:
        """Subtasks with scores of another profile only, as "name (profile)"."""
        return [f"{name} ({other.value})" for name, other in self.profiles.items() if other is not self.profile]

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """All pairs of a condition and its reference that were run."""
        against = {REFERENCE: [name for name in self.conditions if name != REFERENCE]}
        against[CURATED] = [name for name in self.conditions if name.startswith(USER_SKILLS_PREFIX)]
        against[Condition.CODE.value] = [name for name in self.conditions if name == Condition.CODE_CURATED]
        present = {reference: names for reference, names in against.items() if reference in self.conditions}
        return tuple(Comparison(treated, reference) for reference, names in present.items() for treated in names)


def collect(rows: pl.DataFrame, profile: Profile = Profile.CERTIFIED, exclude: Collection[str] = ()) -> Results:
    """Prepare the rows of one or several runs.

    Raises `InputError`: a column is missing, no rows are left, or an excluded model does not occur.

    Parameters
    ----------
    rows : as in `rows.parquet`.
    profile : the wanted profile; subtasks without it use the next of certified, strict, paper that they have.
    exclude : models to leave out, by name or label.
    """
    rows = _without(fill_columns(rows), exclude)
    outside_headline = [subtask.name for subtask in subtasks() if not subtask.headline]
    suites = {each.name: one.suite for one in domains() if one.suite != PAPER_SUITE for each in one.subtasks}
    names = sorted(distinct_values(rows, "sub_task"), key=_place_in([subtask.name for subtask in subtasks()]))
    profiles = {name: _profile_of(rows.filter(pl.col("sub_task") == name), profile) for name in names}
    of_suites = set(names) & suites.keys()
    counted = of_suites.difference(outside_headline) or of_suites
    names_of_headline = set(names) - {*outside_headline, *suites} or counted
    rows = rows.with_columns(
        score=_score(profiles),
        program=pl.col("model").str.starts_with("baseline/"),
        headline=pl.col("sub_task").is_in(sorted(names_of_headline)),
        suite=pl.col("sub_task").replace_strict(suites, default="", return_dtype=pl.String),
        suite_headline=pl.col("sub_task").is_in(sorted(counted)),
        failed=pl.col("status") == Status.ERROR.value,
        **_apart(rows),
    )
    _check_scores(rows)
    return Results(
        profile=profile,
        profiles=profiles,
        rows=rows,
        episodes=_episodes(rows),
        conditions=tuple(sorted(distinct_values(rows, "condition"), key=_place_in([each.value for each in Condition]))),
        excluded=tuple(exclude),
    )


def fill_columns(rows: pl.DataFrame) -> pl.DataFrame:
    """Fill optional columns; raise `InputError` for other missing columns or no rows."""
    absent = [name for name in _NEEDED if name not in rows.columns]
    if absent:
        raise InputError(f"rows: the column {absent[0]!r} is missing; give the rows.parquet of a run")
    if rows.is_empty():
        raise InputError("rows: the table is empty; give the rows.parquet of a finished run")
    rows = rows.with_columns(**{name: value for name, value in _FILLED.items() if name not in rows.columns})
    if "domain" not in rows.columns:
        home = {subtask.name: domain.name for domain in domains() for subtask in domain.subtasks}
        rows = rows.with_columns(domain=pl.col("sub_task").replace_strict(home, default="other"))
    return rows


def pairs(results: Results, comparison: Comparison) -> pl.DataFrame:
    """Pair the episodes scored under both conditions, per model and harness.

    The columns are those of `Results.episodes` without `condition`, `score` and `repeats`, with the scores `treated`
    and `reference` and their `difference`.
    """
    sides = [results.episodes.filter(pl.col("condition") == name).drop("condition", "repeats") for name in comparison]
    keys = ["model", "harness", "episode"]
    paired = (
        sides[0]
        .rename({"score": "treated"})
        .join(sides[1].select(*keys, reference="score"), on=keys, how="inner", maintain_order="left")
    )
    return paired.with_columns(difference=pl.col("treated") - pl.col("reference"))


def distinct_values(rows: pl.DataFrame, column: str) -> list[str]:
    """Return the distinct values of a column, in order of appearance."""
    return rows[column].unique(maintain_order=True).to_list()


def entries_of(rows: pl.DataFrame) -> list[ModelKey]:
    """Return the models of the rows with their arguments, in order of first appearance."""
    return [ModelKey(*each) for each in rows.select("model", "arguments").unique(maintain_order=True).iter_rows()]


def frame_of_names(names: Mapping[ModelKey, str]) -> pl.DataFrame:
    """Table of models and arguments with their names."""
    lines = [(entry.model, entry.arguments, name) for entry, name in names.items()]
    return pl.DataFrame(lines, schema={"model": pl.String, "arguments": pl.String, "name": pl.String}, orient="row")


def _check_scores(rows: pl.DataFrame) -> None:
    odd = rows.with_row_index("_row").filter(~pl.col("score").is_finite())
    if odd.height:
        place, task, score = odd.select("_row", "task_id", "score").row(0)
        problem = f"row {place} ({task}) has a score of {score}"
        raise InputError(f"rows: {problem}; use a finite number, or null for no score")


def _without(rows: pl.DataFrame, exclude: Collection[str]) -> pl.DataFrame:
    entries = entries_of(rows)
    names = labels(entries)
    unknown = sorted(set(exclude) - {entry.model for entry in entries} - set(names.values()))
    if unknown:
        raise InputError(f"exclude: {unknown[0]} has no rows; models: {', '.join(sorted(names.values()))}")
    rows = rows.join(frame_of_names(names), on=["model", "arguments"], how="left", maintain_order="left")
    chosen = list(exclude)
    kept = rows.filter(~(pl.col("model").is_in(chosen) | pl.col("name").is_in(chosen)))
    if kept.is_empty():
        raise InputError(f"exclude: no rows remain without {', '.join(chosen)}; exclude fewer models")
    return kept.with_columns(model="name").drop("name")


def _apart(rows: pl.DataFrame) -> dict[str, pl.Expr]:
    """Make episode and cluster names unique across editions."""
    if rows["edition"].n_unique() == 1:
        return {"episode": pl.col("task_id")}
    mark = pl.col("edition").str.slice(0, 8)
    named = {"episode": "task_id", "cluster": "cluster"}
    return {name: pl.concat_str(mark, column, separator="/") for name, column in named.items()}


def _profile_of(rows: pl.DataFrame, wanted: Profile) -> Profile:
    """Return the wanted profile, or the first other one with a score; the wanted one if there are no scores."""
    for profile in (wanted, *(other for other in _FALLBACK if other is not wanted)):
        if rows["scores"].struct.field(profile.value).is_not_null().any():
            return profile
    return wanted


def _score(profiles: dict[str, Profile]) -> pl.Expr:
    shown = pl.lit(None, dtype=pl.Float64)
    for name, profile in profiles.items():
        score = pl.col("scores").struct.field(profile.value)
        shown = pl.when(pl.col("sub_task") == name).then(score).otherwise(shown)
    return pl.when(pl.col("status") == Status.ERROR.value).then(None).otherwise(shown)


def _episodes(rows: pl.DataFrame) -> pl.DataFrame:
    alike = ("domain", "sub_task", "difficulty", "cluster", "program", "headline", "suite", "suite_headline")
    return (
        rows.filter(pl.col("score").is_not_null())
        .group_by(EPISODE, maintain_order=True)
        .agg(*(pl.col(name).first() for name in alike), pl.col("score").mean(), repeats=pl.len())
    )


def _place_in(order: Sequence[str]) -> Callable[[str], int]:
    return lambda name: order.index(name) if name in order else len(order)


LEVELS = (0.25, 0.5, 0.75)


def by_cell(
    paired: pl.DataFrame, levels: Sequence[float] = LEVELS, cell: Sequence[str] = ("model", "harness", "sub_task")
) -> pl.DataFrame:
    """Stratify pairs by the mean reference score of their model on their subtask.

    Returns the pairs with `baseline`, that mean, and `stratum`, its range ("0.25-0.50", lower end included).

    Parameters
    ----------
    paired : as from `pairs`. levels : ascending boundaries. cell : columns of the mean's groups.
    """
    return _labelled(paired.with_columns(baseline=pl.col("reference").mean().over(cell)), levels)


def by_other_half(results: Results, comparison: Comparison, levels: Sequence[float] = LEVELS) -> pl.DataFrame:
    """Stratify as `by_cell`, by even repeats; differences use the odd ones. Raises `InputError` without repeats."""
    keys = ["model", "harness", "episode"]
    reference = results.rows.filter(pl.col("condition") == comparison.reference, pl.col("score").is_not_null())
    even, odd = (reference.filter(pl.col("run_idx") % 2 == rest) for rest in (0, 1))
    if odd.is_empty() or even.is_empty():
        raise InputError(f"strata: no repeated episodes under {comparison.reference}; run with --epochs 2 or more")
    baseline = even.group_by(keys).agg(baseline=pl.col("score").mean())
    other = odd.group_by(keys).agg(reference=pl.col("score").mean())
    halved = (
        pairs(results, comparison)
        .drop("reference")
        .join(baseline, on=keys, how="inner", maintain_order="left")
        .join(other, on=keys, how="inner", maintain_order="left")
        .with_columns(difference=pl.col("treated") - pl.col("reference"))
    )
    return _labelled(halved, levels)


def _labelled(frame: pl.DataFrame, levels: Sequence[float]) -> pl.DataFrame:
    ends = [0.0, *levels, 1.0]
    names = [f"{low:.2f}-{high:.2f}" for low, high in pairwise(ends)]
    place = pl.sum_horizontal(pl.lit(0), *((pl.col("baseline") >= level).cast(pl.Int32) for level in levels))
    return frame.with_columns(stratum=place.replace_strict(dict(enumerate(names)), return_dtype=pl.String))


LEAST = 0.95
"""Minimum share of rows with a verdict for a meaningful mean."""


def verdict_coverage(
    results: Results, by: Sequence[str] = ("model", "harness", "condition"), least: float = LEAST
) -> pl.DataFrame:
    """Compute the share of rows with a verdict by group, and bounds of the mean.

    Returns the columns of `by`, then `rows`, `verdicts`, `share`, `mean` (over episodes with a verdict), `worst` and
    `best` (all missing scores 0, or 1), and `enough`.

    Parameters
    ----------
    by : at least one column of `Results.rows`. least : minimum share of a covered group.
    """
    keys = list(dict.fromkeys((*by, *EPISODE)))
    episodes = results.rows.group_by(keys, maintain_order=True).agg(
        *_bounds(), pl.col("score").mean(), rows=pl.len(), verdicts=pl.col("score").count()
    )
    totals = [pl.col(name).sum().cast(pl.Int64) for name in ("rows", "verdicts")]
    means = [pl.col("score").mean().alias("mean"), pl.col("worst").mean(), pl.col("best").mean()]
    share = (pl.col("verdicts").sum() / pl.col("rows").sum()).alias("share")
    found = episodes.group_by(by, maintain_order=True).agg(*totals, share, *means)
    return found.with_columns(enough=pl.col("share") >= least)


def difference_bounds(
    results: Results, comparison: Comparison, by: Sequence[str] = ("model", "harness")
) -> pl.DataFrame:
    """Bound the mean difference over the episodes run under both conditions.

    Returns the columns of `by`, `episodes`, `missing` (episodes with a failed row), `worst` and `best` mean difference.

    Parameters
    ----------
    by : at least one column of `Results.rows`, without `condition`.
    """
    keys = list(dict.fromkeys((*by, "model", "harness", "episode")))
    sides = [
        results.rows.filter(pl.col("condition") == name)
        .group_by(keys, maintain_order=True)
        .agg(*_bounds(), pl.col("failed").any())
        for name in comparison
    ]
    both = sides[0].join(sides[1], on=keys, how="inner", suffix="_reference", maintain_order="left")
    return both.group_by(by, maintain_order=True).agg(
        episodes=pl.len().cast(pl.Int64),
        missing=(pl.col("failed") | pl.col("failed_reference")).sum().cast(pl.Int64),
        worst=(pl.col("worst") - pl.col("best_reference")).mean(),
        best=(pl.col("best") - pl.col("worst_reference")).mean(),
    )


def _bounds() -> tuple[pl.Expr, pl.Expr]:
    score = pl.col("score")
    return score.fill_null(0.0).mean().alias("worst"), score.fill_null(1.0).mean().alias("best")
