"""The table at the end of a run: per model and subtask, the mean of each condition and what the skills changed.

Means are over episodes with repeats averaged first. Rows of status `error` are no scores: they are counted by
themselves and enter no mean. The headline is the mean over all episodes of the subtasks that count towards it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from finskillbench.analysis.intervals import Difference, paired_difference
from finskillbench.domains import subtasks
from finskillbench.episode import Profile, Status
from finskillbench.errors import InputError
from finskillbench.harness.conditions import Condition
from finskillbench.harness.entries import Entry, labels
from finskillbench.harness.skills.given import GIVEN_ARM

REFERENCE = Condition.NO_SKILL.value
CURATED = Condition.CURATED.value
HEADLINE = "headline"
ABSENT = "-"
_FALLBACK = (Profile.CERTIFIED, Profile.STRICT, Profile.PAPER)
_TIDY = {
    **dict.fromkeys(("model", "sub_task", "profile", "condition", "reference"), pl.String),
    **dict.fromkeys(("mean", "low", "high"), pl.Float64),
    **dict.fromkeys(("episodes", "errors"), pl.Int64),
}
_NEEDED = ("model", "condition", "task_id", "sub_task", "cluster", "status", "scores")


@dataclass(frozen=True, slots=True)
class Cell:
    """One condition of one line: mean score (None: no scored episode), episodes behind it, rows in error."""

    mean: float | None
    episodes: int
    errors: int


@dataclass(frozen=True, slots=True)
class Line:
    """One model on one subtask, or on the headline; where a model has several entries, `model` says which.

    `profile` is the profile that the numbers are in: the one asked for, or the next that the subtask defines; on the
    headline, several joined by "+". `cells` go with `Summary.conditions`, `differences` with `Summary.comparisons`:
    None where one cannot be said.
    """

    model: str
    program: bool
    sub_task: str
    profile: str
    cells: tuple[Cell, ...]
    differences: tuple[Difference | None, ...]


class Comparison(NamedTuple):
    """Two conditions whose difference is `treated - reference`."""

    treated: str
    reference: str


@dataclass(frozen=True, slots=True, repr=False)
class Summary:
    """The table: conditions in column order, the comparisons of them, lines per model with the headline last, notes.

    Every condition is compared with `no_skill`, somebody's own skills with the curated ones besides, and skills for an
    agent that programs with that agent alone. `print` shows it as text, a notebook as a table with drawn intervals.
    """

    profile: Profile
    conditions: tuple[str, ...]
    comparisons: tuple[Comparison, ...]
    lines: tuple[Line, ...]
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        models = len({line.model for line in self.lines})
        return f"Summary({self.profile}: {len(self.lines)} lines, {models} models, {', '.join(self.conditions)})"

    def __str__(self) -> str:
        from finskillbench.analysis.text import render_text  # it reads summaries

        return render_text(self)

    def _repr_html_(self) -> str:
        from finskillbench.analysis.html import render_html  # it reads summaries

        return render_html(self)

    def to_polars(self) -> pl.DataFrame:
        """One row per line and condition, with its mean, and per line and comparison, with the mean difference.

        `reference` is null in the rows of conditions; in those of comparisons `low` and `high` are the 95 % interval,
        null where there is none, and `episodes` the pairs behind it.
        """
        records: list[tuple[object, ...]] = []
        for line in self.lines:
            key = (line.model, line.sub_task, line.profile)
            for condition, cell in zip(self.conditions, line.cells, strict=True):
                records.append((*key, condition, None, cell.mean, None, None, cell.episodes, cell.errors))
            for (treated, reference), each in zip(self.comparisons, line.differences, strict=True):
                if each is not None:
                    low, high = each.interval or (None, None)
                    records.append((*key, treated, reference, each.mean, low, high, each.pairs, 0))
        return pl.DataFrame(records, schema=_TIDY, orient="row")


def summary_table(rows: pl.DataFrame, profile: Profile = Profile.CERTIFIED) -> Summary:
    """Summarise the rows of a run.

    Parameters
    ----------
    rows : as in `rows.parquet`.
    profile : the wanted headline profile. A subtask that does not define it is shown in the next one of certified,
        strict, paper that it has, and labelled so.

    Raises
    ------
    InputError : the table lacks a column or has no rows.
    """
    absent = [name for name in _NEEDED if name not in rows.columns]
    if absent:
        raise InputError(f"rows: the column {absent[0]!r} is missing; give the rows.parquet of a run")
    if rows.is_empty():
        raise InputError("rows: the table is empty; give the rows.parquet of a finished run")
    rows = _labelled(rows)
    order = [subtask.name for subtask in subtasks()]
    excluded = {subtask.name for subtask in subtasks() if not subtask.headline}
    names = sorted(_distinct(rows, "sub_task"), key=_place_in(order))
    conditions = tuple(sorted(_distinct(rows, "condition"), key=_place_in([each.value for each in Condition])))
    comparisons = _comparisons(conditions)
    profiles = {name: _profile_of(rows.filter(pl.col("sub_task") == name), profile) for name in names}
    headline = "+".join(dict.fromkeys(profiles[name].value for name in names if name not in excluded))
    shown = _with_shown_score(rows, profiles)
    lines: list[Line] = []
    for model in _distinct(rows, "model"):
        of_model = shown.filter(pl.col("model") == model)
        parts = [(name, profiles[name].value, of_model.filter(pl.col("sub_task") == name)) for name in names]
        parts.append((HEADLINE, headline, of_model.filter(~pl.col("sub_task").is_in(list(excluded)))))
        lines += [
            _line(part, model, name, label, conditions, comparisons)
            for name, label, part in parts
            if not part.is_empty()
        ]
    return Summary(
        profile, conditions, comparisons, tuple(lines), _notes(rows, profile, profiles, excluded, comparisons)
    )


def _labelled(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with what tables call their entries in place of the model."""
    if "arguments" not in rows.columns:
        return rows
    entries = [Entry(model, arguments) for model, arguments in rows.select("model", "arguments").iter_rows()]
    names = labels(entries)
    return rows.with_columns(pl.Series("model", [names[entry] for entry in entries], pl.String))


def _distinct(rows: pl.DataFrame, column: str) -> list[str]:
    return rows[column].unique(maintain_order=True).to_list()


def _place_in(order: Sequence[str]) -> Callable[[str], int]:
    """A sorting key: known names in their order, then the others."""
    return lambda name: order.index(name) if name in order else len(order)


def _profile_of(rows: pl.DataFrame, wanted: Profile) -> Profile:
    """The wanted profile, or the first other that has a score; the wanted one where nothing was scored at all."""
    for profile in (wanted, *(other for other in _FALLBACK if other is not wanted)):
        if rows["scores"].struct.field(profile.value).is_not_null().any():
            return profile
    return wanted


def _with_shown_score(rows: pl.DataFrame, profiles: dict[str, Profile]) -> pl.DataFrame:
    shown = pl.lit(None, dtype=pl.Float64)
    for name, profile in profiles.items():
        score = pl.col("scores").struct.field(profile.value)
        shown = pl.when(pl.col("sub_task") == name).then(score).otherwise(shown)
    failed = pl.col("status") == Status.ERROR.value
    return rows.with_columns(pl.when(failed).then(None).otherwise(shown).alias("shown"), failed.alias("failed"))


def _comparisons(conditions: Sequence[str]) -> tuple[Comparison, ...]:
    against = {REFERENCE: [name for name in conditions if name != REFERENCE]}
    against[CURATED] = [name for name in conditions if name.startswith(GIVEN_ARM)]
    against[Condition.CODE.value] = [name for name in conditions if name == Condition.CODE_CURATED]
    return tuple(
        Comparison(treated, reference)
        for reference, names in against.items()
        if reference in conditions
        for treated in names
    )


def _line(
    part: pl.DataFrame,
    model: str,
    name: str,
    profile: str,
    conditions: Sequence[str],
    comparisons: Sequence[Comparison],
) -> Line:
    cluster_of = dict(zip(part["task_id"].to_list(), part["cluster"].to_list(), strict=True))
    means = {condition: _episode_means(part, condition) for condition in conditions}
    cells: list[Cell] = []
    for condition in conditions:
        scores = list(means[condition].values())
        errors = part.filter((pl.col("condition") == condition) & pl.col("failed")).height
        cells.append(Cell(float(np.mean(scores)) if scores else None, len(scores), errors))
    differences = [paired_difference(means[treated], means[given], cluster_of) for treated, given in comparisons]
    return Line(model, is_program(model), name, profile, tuple(cells), tuple(differences))


def _episode_means(part: pl.DataFrame, condition: str) -> dict[str, float]:
    """Score by task id under one condition, repeats averaged; unscored episodes are absent."""
    chosen = part.filter((pl.col("condition") == condition) & pl.col("shown").is_not_null())
    table = chosen.group_by("task_id").agg(pl.col("shown").mean()).sort("task_id")
    return dict(zip(table["task_id"].to_list(), table["shown"].to_list(), strict=True))


def is_program(model: str) -> bool:
    """Whether a model is one of the baseline programs and no language model."""
    return model.startswith("baseline/")


def _notes(
    rows: pl.DataFrame,
    wanted: Profile,
    profiles: dict[str, Profile],
    excluded: set[str],
    comparisons: Sequence[Comparison],
) -> tuple[str, ...]:
    notes: list[str] = []
    if any(is_program(model) for model in _distinct(rows, "model")):
        notes.append("baseline/... are programs, not language models.")
    other = [f"{name} ({profile.value})" for name, profile in profiles.items() if profile is not wanted]
    if other:
        notes.append(f"No {wanted.value} scores for: {', '.join(other)}.")
    if excluded & profiles.keys():
        notes.append(f"Not in the headline: {', '.join(sorted(excluded & profiles.keys()))}.")
    if {"code_version", "commit"} <= set(rows.columns):
        made = rows.group_by("code_version", "commit").len().sort("code_version", "commit")
        if made.height > 1:
            told = [f"{count} by {version} ({commit or 'no commit'})" for version, commit, count in made.iter_rows()]
            notes.append(f"The rows were made by several versions of this program: {', '.join(told)}.")
    failed = rows.filter(pl.col("status") == Status.ERROR.value).height
    if failed:
        notes.append(f"{failed} of {rows.height} rows ended in an error and are in no mean; run again to repeat them.")
    against = " and ".join(dict.fromkeys(each.reference for each in comparisons)) or REFERENCE
    notes.append(
        f"Differences are against {against}, paired by episode, with 95 % intervals that count what episodes share "
        "(market date, mandate, scenario, company) once; no interval where fewer than three such clusters were run or "
        "nothing varies."
    )
    return tuple(notes)
