"""Rows of any runs under one profile, as every table and figure takes them.

Rows of status `error` are no scores: they stay in the table with a null, are counted by themselves and enter no mean.
Repeats of an episode are averaged first, so that an episode counts once however often it was run.

What skills change where an agent does well without them, and where it does not.

Episodes must not be sorted by the score that the difference is taken from: those with a poor score without skills had
bad luck more often than good, do better the next time whatever they are given, and seem to gain (regression to the
mean). So a stratum is told by the mean of a whole subtask under one model, in which luck averages out, or by repeats
that the difference does not use.

How many episodes have a verdict, and what the others could change.

Rows of status `error` enter no mean. What they would have scored is not known, but it lies between 0 and 1, which
bounds every mean and every difference (Manski 1990).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
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
"""Columns that a table made by hand may leave out, and what they then hold."""
EPISODE = ("model", "harness", "condition", "episode")
"""What an episode's mean over its repeats is told by."""


class Comparison(NamedTuple):
    """Two conditions, of which the first is measured against the second."""

    treated: str
    reference: str


@dataclass(frozen=True, slots=True)
class Results:
    """Rows of any runs under one profile.

    `rows` has the columns of `rows.parquet`, in which `model` is what tables call the entry and `score` is the score
    under the profile of the row's subtask (`profiles`), null where there is none; beside them `episode` and `cluster`
    (told apart by edition where there are several), `program`, `headline` (whether the subtask counts towards it;
    of rows of another suite alone, that is theirs),
    `suite` (the headline of its own under which another domain is summed up, else empty) and `failed` (status `error`).
    `episodes` has a line for each model, harness, condition and episode that has a score: its mean `score` over
    `repeats`, with domain, sub_task, difficulty, cluster, program, headline and suite.
    `excluded` are the models that were left out.
    """

    profile: Profile
    profiles: dict[str, Profile]
    rows: pl.DataFrame
    episodes: pl.DataFrame
    conditions: tuple[str, ...]
    excluded: tuple[str, ...]

    @property
    def models(self) -> list[str]:
        """What tables call the entries, in the order of the rows."""
        return distinct(self.rows, "model")

    @property
    def sub_tasks(self) -> list[str]:
        """The subtasks that were run, in the order of the domains."""
        return list(self.profiles)

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Every condition that is measured against another that was run."""
        against = {REFERENCE: [name for name in self.conditions if name != REFERENCE]}
        against[CURATED] = [name for name in self.conditions if name.startswith(USER_SKILLS_PREFIX)]
        against[Condition.CODE.value] = [name for name in self.conditions if name == Condition.CODE_CURATED]
        return tuple(
            Comparison(treated, reference)
            for reference, names in against.items()
            if reference in self.conditions
            for treated in names
        )


def collect(rows: pl.DataFrame, profile: Profile = Profile.CERTIFIED, exclude: Collection[str] = ()) -> Results:
    """Prepare the rows of one or several runs.

    Parameters
    ----------
    rows : as in `rows.parquet`.
    profile : the wanted profile. A subtask that does not define it is taken in the next one of certified, strict, paper
        that it has.
    exclude : models to leave out, by their names in the rows or in tables.

    Raises
    ------
    InputError : the table lacks a column, has no rows or none that are left, or a model to leave out is not in it.
    """
    rows = _without(complete(rows), exclude)
    beside = [subtask.name for subtask in subtasks() if not subtask.headline]
    suites = {each.name: one.suite for one in domains() if one.suite != PAPER_SUITE for each in one.subtasks}
    names = sorted(distinct(rows, "sub_task"), key=_place_in([subtask.name for subtask in subtasks()]))
    profiles = {name: _profile_of(rows.filter(pl.col("sub_task") == name), profile) for name in names}
    names_of_headline = set(names) - {*beside, *suites} or set(names) & suites.keys()
    rows = rows.with_columns(
        score=_score(profiles),
        program=pl.col("model").str.starts_with("baseline/"),
        headline=pl.col("sub_task").is_in(sorted(names_of_headline)),
        suite=pl.col("sub_task").replace_strict(suites, default="", return_dtype=pl.String),
        failed=pl.col("status") == Status.ERROR.value,
        **_apart(rows),
    )
    _check_scores(rows)
    return Results(
        profile=profile,
        profiles=profiles,
        rows=rows,
        episodes=_episodes(rows),
        conditions=tuple(sorted(distinct(rows, "condition"), key=_place_in([each.value for each in Condition]))),
        excluded=tuple(exclude),
    )


def complete(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows with every column that a table made by hand may leave out.

    Raises
    ------
    InputError : the table lacks a column that cannot be filled in, or has no rows.
    """
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
    """The episodes that both conditions have a score for, a line for each model and harness.

    The columns are those of `Results.episodes` but `condition`, `score` and `repeats`, with `treated` and `reference`
    for the two scores and `difference` between them.
    """
    sides = [results.episodes.filter(pl.col("condition") == name).drop("condition", "repeats") for name in comparison]
    keys = ["model", "harness", "episode"]
    paired = (
        sides[0]
        .rename({"score": "treated"})
        .join(sides[1].select(*keys, reference="score"), on=keys, how="inner", maintain_order="left")
    )
    return paired.with_columns(difference=pl.col("treated") - pl.col("reference"))


def distinct(rows: pl.DataFrame, column: str) -> list[str]:
    """The values of a column, in the order in which they come."""
    return rows[column].unique(maintain_order=True).to_list()


def _check_scores(rows: pl.DataFrame) -> None:
    odd = rows.with_row_index("_row").filter(~pl.col("score").is_finite())
    if odd.height:
        place, task, score = odd.select("_row", "task_id", "score").row(0)
        raise InputError(f"rows: row {place} ({task}) has a score of {score}; leave it null where nothing was scored")


def _without(rows: pl.DataFrame, exclude: Collection[str]) -> pl.DataFrame:
    """The rows under what tables call their entries, without those of some models."""
    entries = [ModelKey(*each) for each in rows.select("model", "arguments").unique(maintain_order=True).iter_rows()]
    names = labels(entries)
    unknown = sorted(set(exclude) - {entry.model for entry in entries} - set(names.values()))
    if unknown:
        raise InputError(f"exclude: no row is of {unknown[0]}; the models are {', '.join(sorted(names.values()))}")
    named = pl.DataFrame(
        [(entry.model, entry.arguments, name) for entry, name in names.items()],
        schema={"model": pl.String, "arguments": pl.String, "name": pl.String},
        orient="row",
    )
    rows = rows.join(named, on=["model", "arguments"], how="left", maintain_order="left")
    chosen = list(exclude)
    kept = rows.filter(~(pl.col("model").is_in(chosen) | pl.col("name").is_in(chosen)))
    if kept.is_empty():
        raise InputError(f"exclude: no row is left without {', '.join(chosen)}; leave fewer models out")
    return kept.with_columns(model="name").drop("name")


def _apart(rows: pl.DataFrame) -> dict[str, pl.Expr]:
    """Names of episodes and clusters: those of two editions are not the same even where they are called the same."""
    if rows["edition"].n_unique() == 1:
        return {"episode": pl.col("task_id")}
    mark = pl.col("edition").str.slice(0, 8)
    return {
        "episode": pl.concat_str(mark, "task_id", separator="/"),
        "cluster": pl.concat_str(mark, "cluster", separator="/"),
    }


def _profile_of(rows: pl.DataFrame, wanted: Profile) -> Profile:
    """The wanted profile, or the first other that has a score; the wanted one where nothing was scored at all."""
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
    alike = ("domain", "sub_task", "difficulty", "cluster", "program", "headline", "suite")
    return (
        rows.filter(pl.col("score").is_not_null())
        .group_by(EPISODE, maintain_order=True)
        .agg(*(pl.col(name).first() for name in alike), pl.col("score").mean(), repeats=pl.len())
    )


def _place_in(order: Sequence[str]) -> Callable[[str], int]:
    """A sorting key: known names in their order, then the others."""
    return lambda name: order.index(name) if name in order else len(order)


LEVELS = (0.25, 0.5, 0.75)
"""Where one stratum ends and the next begins."""


def by_cell(
    paired: pl.DataFrame, levels: Sequence[float] = LEVELS, cell: Sequence[str] = ("model", "harness", "sub_task")
) -> pl.DataFrame:
    """Pairs by the mean reference score of their model on their subtask.

    Parameters
    ----------
    paired : as from `pairs`. levels : ascending scores between strata. cell : what a mean is taken over.

    Returns
    -------
    The pairs with `baseline`, that mean, and `stratum`, its range ("0.25-0.50", lower end included); for `estimate`.
    """
    return _labelled(paired.with_columns(baseline=pl.col("reference").mean().over(cell)), levels)


def by_other_half(results: Results, comparison: Comparison, levels: Sequence[float] = LEVELS) -> pl.DataFrame:
    """Pairs by the reference score of the even repeats of their episode; their difference takes the odd ones.

    Returns
    -------
    As `by_cell`; episodes of which a half has no score are left out.

    Raises
    ------
    InputError : no episode was repeated under the reference condition.
    """
    keys = ["model", "harness", "episode"]
    reference = results.rows.filter(pl.col("condition") == comparison.reference, pl.col("score").is_not_null())
    even, odd = (reference.filter(pl.col("run_idx") % 2 == rest) for rest in (0, 1))
    if odd.is_empty() or even.is_empty():
        raise InputError(f"strata: no episode was repeated under {comparison.reference}; run with --epochs 2 or more")
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
"""The share of rows with a verdict below which a mean stands for too few."""


def coverage(
    results: Results, by: Sequence[str] = ("model", "harness", "condition"), least: float = LEAST
) -> pl.DataFrame:
    """The share of rows with a verdict in each group, and the bounds of its mean.

    Parameters
    ----------
    by : columns of `Results.rows`, at least one. least : the share from which on a group is covered.

    Returns
    -------
    The columns of `by`, then `rows`, `verdicts`, `share`, `mean` (over episodes that have a verdict; null of none),
    `worst` and `best` (over all episodes, had every row without a verdict scored 0, or 1), and `enough`.
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
    """What the mean difference could be, over the episodes that were run under both conditions.

    Parameters
    ----------
    by : columns of `Results.rows`, at least one, that do not tell conditions apart.

    Returns
    -------
    The columns of `by`, then `episodes`, `missing` (those of which a side has a row without a verdict), `worst` and
    `best` mean difference for the treatment.
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
