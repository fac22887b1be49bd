"""The two sides of a comparison, with checks that they are comparable.

Other editions, scorers or profiles are refused. Differences that may be the subject of the comparison (packages under
one name, code, arguments) appear in notes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import polars as pl

from finskillbench.analysis.results import Results, collect, distinct_values, entries_of, fill_columns, frame_of_names
from finskillbench.episode import Profile
from finskillbench.errors import InputError
from finskillbench.harness.models import NO_ARGUMENTS, ModelKey, labels
from finskillbench.reports.read import RunRows, join_runs

RUN = "run"
DIMENSIONS = ("model", "harness", "condition")
"""Keys of a pair in addition to the episode; the compared one is excluded."""


class SideDimension(NamedTuple):
    """Compared dimension (one of `DIMENSIONS`), and its value on each side."""

    what: str
    a: str
    b: str


class RowFilter(NamedTuple):
    """Selection of rows; empty fields select all."""

    models: Collection[str] = ()
    conditions: Collection[str] = ()
    sub_tasks: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class Side:
    """Name and results of one side.

    Its rows have the columns of `Results.rows`, `run` (the run's path as given), and `entry_model` and
    `entry_arguments`, which identify the entry within its run.
    """

    name: str
    results: Results


@dataclass(frozen=True, slots=True)
class Sides:
    """Sides A and B; `over` is `RUN` or one of `DIMENSIONS`, `runs` are all runs read, by path."""

    over: str
    a: Side
    b: Side
    runs: Mapping[str, RunRows]
    notes: tuple[str, ...]

    @property
    def keys(self) -> list[str]:
        """Keys that both episodes of a pair share, in addition to the episode.

        Compared models may have one harness each, such as a language model and a person.
        """
        harnesses = [distinct_values(side.results.rows, "harness") for side in (self.a, self.b)]
        apart = self.over == "model" and harnesses[0] != harnesses[1] and all(len(each) == 1 for each in harnesses)
        return [name for name in DIMENSIONS if name != self.over and not (apart and name == "harness")]


def make_sides(
    runs: Sequence[RunRows],
    over: SideDimension | None = None,
    choice: RowFilter = RowFilter(),  # noqa: B008 - immutable
    profile: Profile = Profile.CERTIFIED,
) -> Sides:
    """Split the rows of runs into two sides.

    Parameters
    ----------
    runs : the two runs to compare, A first; with `over`, one or more whose rows are pooled.
    over : None compares the two runs.
    choice : rows to compare.
    profile : as for `collect`.

    Raises
    ------
    InputError : a side is empty, or the sides are not comparable.
    """
    by_path = {str(run.path): run for run in runs}
    runs = [replace(run, rows=fill_columns(run.rows).with_columns(run=pl.lit(str(run.path)))) for run in runs]
    if over is None:
        if len(runs) != 2 or len({run.path.resolve() for run in runs}) != 2:
            raise InputError("compare takes two different runs; to compare within one, add --compare model A B")
        a, b = (_chosen(table, choice) for table in _common_names([run.rows for run in runs]))
        names = (str(runs[0].path), str(runs[1].path))
    else:
        a, b = _split(_chosen(_labelled(join_runs(runs)), choice), over)
        names = (over.a, over.b)
    a, b, left_out = _of_common_editions(a, b)
    _refuse_other_scorers(names, a, b)
    side_a, side_b = Side(names[0], collect(a, profile)), Side(names[1], collect(b, profile))
    _refuse_other_profiles(side_a, side_b)
    what = RUN if over is None else over.what
    notes = (*left_out, *_notes(what, side_a, side_b), *_of_runs(runs))
    return Sides(what, side_a, side_b, by_path, notes)


def _chosen(rows: pl.DataFrame, choice: RowFilter) -> pl.DataFrame:
    for column, wanted in zip(("model", "condition", "sub_task"), choice, strict=True):
        there = distinct_values(rows, column)
        if unknown := [name for name in wanted if name not in there]:
            what = column.replace("_", "")
            raise InputError(f"{rows['run'][0]}: has no {what} {unknown[0]!r}; it has {', '.join(there)}")
        if wanted:
            rows = rows.filter(pl.col(column).is_in(list(wanted)))
    if rows.is_empty():
        raise InputError("no rows match the selection; widen it")
    return rows


def _labelled(rows: pl.DataFrame, names: Mapping[ModelKey, str] | None = None) -> pl.DataFrame:
    """Rename models by entry, by default to the names in tables."""
    names = labels(entries_of(rows)) if names is None else names
    rows = rows.join(frame_of_names(names), on=["model", "arguments"], how="left", maintain_order="left")
    rows = rows.with_columns(entry_model="model", entry_arguments="arguments")
    return rows.with_columns(model="name", arguments=pl.lit(NO_ARGUMENTS)).drop("name")


def _common_names(tables: Sequence[pl.DataFrame]) -> list[pl.DataFrame]:
    """Name entries equally on both sides, also for models with one entry and different arguments on each side."""
    entries = [entries_of(rows) for rows in tables]
    names = labels([*entries[0], *entries[1]])
    alone = [{each.model: each for each in side if sum(o.model == each.model for o in side) == 1} for side in entries]
    renamed = {alone[i][model]: model for model in alone[0].keys() & alone[1].keys() for i in (0, 1)}
    return [
        _labelled(rows, {entry: renamed.get(entry, names[entry]) for entry in side})
        for rows, side in zip(tables, entries, strict=True)
    ]


def _split(rows: pl.DataFrame, over: SideDimension) -> tuple[pl.DataFrame, pl.DataFrame]:
    if over.what not in DIMENSIONS:
        raise InputError(f"--compare {over.what}: choose one of {', '.join(DIMENSIONS)}")
    if over.a == over.b:
        raise InputError(f"--compare {over.what}: both sides are {over.a}; name two")
    found: list[pl.DataFrame] = []
    for name in (over.a, over.b):
        side = rows.filter(pl.col(over.what) == name)
        if side.is_empty() and over.what == "model":  # by its plain name, if it is unique
            side = rows.filter(pl.col("entry_model") == name)
            if len(several := distinct_values(side, "model")) > 1:
                raise InputError(f"{name} has several entries; name one of {'; '.join(several)}")
        if side.is_empty():
            there = ", ".join(distinct_values(rows, over.what))
            raise InputError(f"--compare {over.what}: no rows of {name!r}; choose from {there}")
        found.append(side)
    return found[0], found[1]


def _of_common_editions(a: pl.DataFrame, b: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame, list[str]]:
    editions = [set(distinct_values(rows, "edition")) for rows in (a, b)]
    common = editions[0] & editions[1]
    if not common:
        editions_text = [", ".join(sorted(name[:8] for name in each)) for each in editions]
        raise InputError(
            f"the sides have no edition in common (A {editions_text[0]}, B {editions_text[1]}); run both on one edition"
        )
    notes = [
        f"{rows.height - kept} rows of {side} are omitted: the other side has no rows of their edition."
        for side, rows in (("A", a), ("B", b))
        if (kept := rows.filter(pl.col("edition").is_in(common)).height) < rows.height
    ]
    kept = [rows.filter(pl.col("edition").is_in(common)) for rows in (a, b)]
    return kept[0], kept[1], notes


def _refuse_other_scorers(names: tuple[str, str], a: pl.DataFrame, b: pl.DataFrame) -> None:
    versions = [sorted(distinct_values(rows, "scorer_version")) for rows in (a, b)]
    if len({*versions[0], *versions[1]}) > 1:
        versions_text = [f"{name}: {', '.join(each) or 'unknown'}" for name, each in zip(names, versions, strict=True)]
        raise InputError(
            f"the sides have scores of different scorers ({'; '.join(versions_text)}); update the runs with "
            "finskillbench rescore, then compare"
        )


def _refuse_other_profiles(a: Side, b: Side) -> None:
    for sub_task, profile in a.results.profiles.items():
        other = b.results.profiles.get(sub_task, profile)
        if other != profile:
            raise InputError(
                f"{sub_task} has scores under {profile} in A and only under {other} in B; choose a --profile that both "
                "have"
            )


def _notes(over: str, a: Side, b: Side) -> Iterator[str]:
    """Describe differences between the sides other than the compared one."""
    for side, each in (("A", a), ("B", b)):
        failed = each.results.rows["failed"].sum()
        if failed:
            yield f"{failed} of {each.results.rows.height} rows of {side} ended in an error and have no score."
    yield from _other_mounts(over, a.results.rows, b.results.rows)
    if over == RUN:
        for model in [name for name in a.results.models if name in b.results.models]:
            arguments = [_of_model(side.results.rows, model, "entry_arguments") for side in (a, b)]
            if arguments[0] != arguments[1]:
                yield (
                    f"{model} was called with different arguments: A {', '.join(arguments[0])}; "
                    f"B {', '.join(arguments[1])}."
                )
    harnesses = [distinct_values(side.results.rows, "harness") for side in (a, b)]
    if over == "model" and harnesses[0] != harnesses[1]:
        yield f"The sides ran with different harnesses: A {', '.join(harnesses[0])}; B {', '.join(harnesses[1])}."
    for column, what in (("code_version", "versions of this package"), ("commit", "commits of this package")):
        values = [_known(side.results.rows, column) for side in (a, b)]
        if values[0] and values[1] and values[0] != values[1]:
            yield f"The sides ran with different {what}: A {', '.join(values[0])}; B {', '.join(values[1])}."


def _other_mounts(over: str, a: pl.DataFrame, b: pl.DataFrame) -> Iterator[str]:
    if over == "condition" or "mount" not in a.columns or "mount" not in b.columns:
        return
    for condition in [name for name in distinct_values(a, "condition") if name in distinct_values(b, "condition")]:
        mounts = [_known(rows.filter(pl.col("condition") == condition), "mount") for rows in (a, b)]
        if mounts[0] != mounts[1]:
            mounts_text = f"A {', '.join(mounts[0])}; B {', '.join(mounts[1])}"
            yield f"Under {condition} the sides mounted different packages: {mounts_text}."


def _of_runs(runs: Sequence[RunRows]) -> Iterator[str]:
    for run in runs:
        if run.missing:
            yield f"{run.path} is not finished: {run.missing} episodes have no row yet."
    digests = {run.record.prompts_digest for run in runs if run.record is not None}
    if len(digests) > 1:
        yield "The runs used different prompts."


def _of_model(rows: pl.DataFrame, model: str, column: str) -> list[str]:
    return sorted(distinct_values(rows.filter(pl.col("model") == model), column))


def _known(rows: pl.DataFrame, column: str) -> list[str]:
    """Return the distinct values of an optional column, shortened to digest prefixes."""
    if column not in rows.columns:
        return []
    return sorted({value[:12] for value in rows[column].drop_nulls().to_list()})
