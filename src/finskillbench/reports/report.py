"""The report on rows: all tables of results, the template environment, and report formats of plugins.

Distributions register formats under the entry points `finskillbench.reports`.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from enum import StrEnum
from functools import cache
from pathlib import Path

import polars as pl
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from finskillbench.analysis.cutoffs import Cutoffs, CutoffSide, dated, side
from finskillbench.analysis.results import Results, collect
from finskillbench.edition.checks.catalog import CheckReport
from finskillbench.episode import Profile
from finskillbench.errors import InputError
from finskillbench.reports.compare.gates import Threshold
from finskillbench.reports.published import with_paper_columns
from finskillbench.reports.read import RunRows
from finskillbench.reports.tables.base import Table, render_html
from finskillbench.reports.tables.common import hosted_models
from finskillbench.reports.tables.episodes import conduct, endings, faults, library
from finskillbench.reports.tables.scores import grouped, models, overview
from finskillbench.runs.postprocess.show import printable


@cache
def environment(folder: Path) -> Environment:
    """Return the template environment of a folder, with autoescaping and printable control characters."""
    return Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )


def source_digest(text: str) -> str:
    """Return the content security policy hash of an inline style or script."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _shown(value: object) -> object:
    return value if isinstance(value, Markup) or not isinstance(value, str) else printable(value)


class By(StrEnum):
    """Grouping by which tables of a report are selected."""

    DOMAIN = "domain"
    SUBTASK = "subtask"
    DIFFICULTY = "difficulty"
    MODEL = "model"
    CONDITION = "condition"
    STATUS = "status"
    HARNESS = "harness"


TABLES: Mapping[Callable[[Results], Table | None], By] = {
    grouped.pooled_table: By.CONDITION,
    grouped.domains_table: By.DOMAIN,
    grouped.subtasks_table: By.SUBTASK,
    models.significance_table: By.SUBTASK,
    grouped.difficulty_table: By.DIFFICULTY,
    models.models_table: By.MODEL,
    models.strata_table: By.CONDITION,
    models.arms_table: By.CONDITION,
    conduct.resources_table: By.CONDITION,
    conduct.model_resources_table: By.MODEL,
    conduct.budgets_table: By.MODEL,
    conduct.savings_table: By.MODEL,
    conduct.repeats_table: By.MODEL,
    conduct.use_table: By.MODEL,
    conduct.use_effects_table: By.MODEL,
    library.library_table: By.MODEL,
    faults.faults_table: By.MODEL,
    library.activation_table: By.MODEL,
    endings.traps_table: By.CONDITION,
    endings.signed_table: By.CONDITION,
    grouped.harnesses_table: By.HARNESS,
    endings.status_table: By.STATUS,
    endings.incidents_table: By.STATUS,
    endings.coverage_table: By.STATUS,
}
"""Tables of the text formats in order, with their grouping; a function returns None if its table is empty."""


_UNLIKE_CUTOFFS = "Models have different cut-offs and so different episodes here: do not compare them with each other."


@dataclass(frozen=True, slots=True, repr=False)
class Report:
    """Report on rows under a profile; `print` shows the overview table, a notebook shows it as HTML."""

    results: Results
    published: Results | None
    """The same rows under the profile `paper`, for its floors; None if no program was run."""
    paper: bool = False
    everything: Results | None = None
    """The rows with the excluded models; None if none was excluded."""
    sides: Mapping[CutoffSide, Report] = field(default_factory=dict["CutoffSide", "Report"])
    """Reports on episodes before and after the models' cut-offs; empty without cut-offs."""

    def __repr__(self) -> str:
        results = self.results
        size = f"{results.rows.height} rows, {len(results.models)} models"
        return f"Report({results.profile}: {size}, {', '.join(results.conditions)})"

    def __str__(self) -> str:
        return str(self.overview)

    def _repr_html_(self) -> str:
        return render_html(self.overview)

    @property
    def overview(self) -> Table:
        return overview.overview_table(self.results, self.published)

    def tables(self, by: By | None = None) -> list[Table]:
        """Return the tables of a grouping, or all; with `paper`, printed values follow ours.

        With cut-offs, return those of each side after a table of the differences between both.
        """
        if self.sides:
            return [overview.contamination_table(self.results), *self._of_sides(by)]
        made = (make(self.results) for make, of in TABLES.items() if by in (None, of))
        found = [table for table in made if table is not None and table.rows]
        whole = self.everything
        if whole is not None and hosted_models(whole) != hosted_models(self.results) and by in (None, By.CONDITION):
            table, who = grouped.pooled_table(whole), ", ".join(self.results.excluded)
            found.insert(0, replace(table, name="pooled_all", title=f"{table.title}, with {who}"))
        if by is None and self.results.rows["program"].any():
            found.append(overview.floors_table(self.results, self.published))
        return [with_paper_columns(table) if self.paper else table for table in found]

    def _of_sides(self, by: By | None) -> list[Table]:
        cutoffs = self.results.rows.select("model", pl.col("cutoff").cast(pl.String)).unique()
        days = dict(cutoffs.sort("model").iter_rows())
        apart = (f"{_UNLIKE_CUTOFFS} Cut-offs: {', '.join(f'{model} {day}' for model, day in days.items())}.",)
        warnings = apart if len(set(days.values())) > 1 else ()
        found: list[Table] = []
        for which, each in self.sides.items():
            for table in each.tables(by):
                name, title = f"{table.name}_{which}", f"{table.title}, {which} the cut-off"
                found.append(replace(table, name=name, title=title, notes=(*warnings, *table.notes)))
        return found

    def __getitem__(self, name: str) -> Table:
        """Return a table by name.

        Raises
        ------
        InputError : unknown name; the message lists the tables.
        """
        made = {table.name: table for table in [self.overview, *self.tables()]}
        if name not in made:
            raise InputError(f"table {name!r} is not in this report; choose from: {', '.join(made)}")
        return made[name]

    def to_polars(self) -> pl.DataFrame:
        """Return `finskillbench.reports.tables.scores.grouped.tidy` of the results."""
        return grouped.tidy(self.results)


def report(
    rows: pl.DataFrame,
    profile: Profile | str | None = None,
    exclude: Collection[str] = (),
    *,
    paper: bool = False,
    cutoffs: Cutoffs | None = None,
) -> Report:
    """Make a report from the rows of one or several runs.

    Parameters
    ----------
    rows : as in `rows.parquet`; join several runs by `pl.concat`.
    profile : default `certified`, or `paper` with `paper`. A subtask without it is shown in the next available one of
        certified, strict, paper, with a note.
    exclude : models to leave out.
    paper : True to show the paper's printed values next to ours.
    cutoffs : last days of models' training data, which split all tables; models without one are left out.

    Raises
    ------
    InputError : an unknown profile; a missing column; no rows, or none left; an unknown model in `exclude` or
        `cutoffs`.
    """
    if cutoffs is None:
        return _whole(rows, profile, exclude, paper=paper)
    rows_with_cutoff = dated(rows, cutoffs)
    parts = {which: part for which in CutoffSide if (part := side(rows_with_cutoff, which)).height}
    sides = {which: _whole(part, profile, exclude, paper=paper) for which, part in parts.items()}
    return replace(_whole(rows_with_cutoff, profile, exclude, paper=paper), sides=sides)


def _whole(rows: pl.DataFrame, profile: Profile | str | None, exclude: Collection[str], *, paper: bool) -> Report:
    wanted = _profile(profile or (Profile.PAPER if paper else Profile.CERTIFIED))
    results = collect(rows, wanted, exclude)
    programs = results.rows["program"].any()
    published = collect(rows, Profile.PAPER, exclude) if programs else None
    return Report(results, published, paper, collect(rows, wanted) if exclude else None)


def _profile(name: str) -> Profile:
    try:
        return Profile(name)
    except ValueError:
        raise InputError(f"profile {name!r} is unknown; choose from: {', '.join(Profile)}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRequest:
    """A report to write into the folder `out`, with its runs, check results and acceptance criteria.

    `checks`, `audit` and `criteria` are those of `finskillbench.reports.evidence`, absent if no file was named.
    """

    report: Report
    runs: Sequence[RunRows]
    out: Path
    today: date
    checks: CheckReport | None = None
    audit: CheckReport | None = None
    criteria: Sequence[Threshold] = ()


@dataclass(frozen=True, slots=True)
class ReportFormat:
    """A report format; `write` writes the report and returns the files to open."""

    write: Callable[[ReportRequest], Sequence[Path]]
