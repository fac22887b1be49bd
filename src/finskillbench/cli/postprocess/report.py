"""`finskillbench report`: tables, page or documents from runs."""

from __future__ import annotations

import os
import sys
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer
from typer import Argument, Option

from finskillbench.cli.data.arguments import PartOfEdition
from finskillbench.cli.display import console
from finskillbench.cli.display.console import PAGE
from finskillbench.cli.postprocess.compare import print_gates

if TYPE_CHECKING:
    import polars as pl

    from finskillbench.analysis.short_form import ShortForm
    from finskillbench.edition.checks.catalog import CheckReport
    from finskillbench.reports.compare.gates import Threshold
    from finskillbench.reports.formats import Format
    from finskillbench.reports.read import RunRows
    from finskillbench.reports.report import Report
    from finskillbench.reports.tables.base import Table

EXAMPLE = """\b
Examples:
  finskillbench report runs/mine
  finskillbench report runs/a runs/b --by model --exclude openai/gpt-4o
  finskillbench report runs/mine --format latex --out tables
  finskillbench report runs/mine --format html
  finskillbench report runs/mine --by subtask --cutoff 2026-03-31
  finskillbench report runs/mine --format validation --audit audit.json --out pack
  finskillbench report results_all.jsonl --paper"""
PAGE_FORMAT = "html"
_ALL = 2**31
"""Exceeds the number of trajectories in any cell of a page."""


# Longer than a screen: each option is a parameter with its help text.
def report_command(
    runs: Annotated[
        list[Path], Argument(metavar="RUN...", help="Run folders, rows.parquet, or rows of the published release.")
    ],
    out: Annotated[
        Path | None,
        Option(
            parser=console.out_path,
            metavar="DIR",
            help="Folder for one file per table, or for the page. Default: print tables; RUN/report for the page.",
        ),
    ] = None,
    form: Annotated[
        str,
        Option(
            "--format",
            metavar="FORMAT",
            help="table, md, csv, latex, json, html (a page), validation (a pack for model validation), or one "
            "that another package registers.",
        ),
    ] = "table",
    suite: PartOfEdition = None,
    by: Annotated[
        str | None,
        Option(
            metavar="COLUMN",
            help="Only tables by this: domain, subtask, difficulty, model, condition, status or harness.",
        ),
    ] = None,
    profile: Annotated[
        str | None, Option(help="certified, strict or paper. Default: certified; paper with --paper.")
    ] = None,
    exclude: Annotated[
        list[str] | None, Option(metavar="MODEL", help="Model to leave out of all tables but the first; repeatable.")
    ] = None,
    paper: Annotated[
        bool, Option("--paper", help="Compare with the values in the paper, using the published scorers.")
    ] = False,
    cutoff: Annotated[
        list[str] | None,
        Option(
            metavar="[MODEL=]DATE",
            help="Last day of training data, to report earlier and later tasks apart; repeatable (docs/reports.md).",
        ),
    ] = None,
    failures: Annotated[
        bool, Option("--failures", help="Also report why episodes failed; reads every trajectory.")
    ] = False,
    items: Annotated[
        bool, Option("--items", help="Only item statistics: difficulty, discrimination and redundancy of each episode.")
    ] = False,
    trajectories: Annotated[
        str | None, Option(metavar="all|none|N", help="Episodes per cell on the page. Default: a small selection.")
    ] = None,
    truth: Annotated[
        bool, Option("--truth/--no-truth", help="Show expected next to submitted answers on the page.")
    ] = True,
    checks: Annotated[
        Path | None, Option(metavar="FILE", help="Output of data validate EDITION --json, for the page and the pack.")
    ] = None,
    audit: Annotated[
        Path | None, Option(metavar="FILE", help="Output of audit EDITION --json, for the page and the pack.")
    ] = None,
    criteria: Annotated[
        Path | None, Option(metavar="FILE", help="Acceptance criteria, in TOML (docs/validation-pack.md).")
    ] = None,
    fail_under: Annotated[
        list[str] | None,
        Option(
            metavar="PART[@CONDITION]=SCORE",
            help="Exit with 1 if a model scores less. PART: headline, a domain or a subtask; repeatable.",
        ),
    ] = None,
) -> None:
    """Make tables of runs: conditions, domains, subtasks, models, resources, harnesses and how episodes ended.

    Unfinished runs are allowed. docs/reports.md explains each table, docs/validation-pack.md the validation pack. Exit
    code 1 if a threshold of --fail-under or an acceptance criterion is missed.
    """
    from finskillbench.analysis.cutoffs import parse_cutoffs
    from finskillbench.analysis.short_form import read_short_form
    from finskillbench.episode import Profile
    from finskillbench.errors import InputError
    from finskillbench.extensions import REPORTS, registered_extensions
    from finskillbench.reports.compare.gates import check_finished, check_thresholds, parse_floor
    from finskillbench.reports.formats import Format
    from finskillbench.reports.read import filter_run, join_runs, read_runs
    from finskillbench.reports.report import By, ReportFormat, ReportRequest
    from finskillbench.reports.report import report as make_report
    from finskillbench.reports.tables.common import hosted_models, warnings
    from finskillbench.reports.tables.episodes.endings import failures_table
    from finskillbench.reports.tables.episodes.items import items_table
    from finskillbench.runs.store.rows import SHORT_FORM

    registered = registered_extensions(REPORTS, (*Format, PAGE_FORMAT))
    if form not in {PAGE_FORMAT, *Format, *registered}:
        raise InputError(f"--format {form!r} is unknown; choose from: {', '.join([*Format, PAGE_FORMAT, *registered])}")
    document = None if form in {PAGE_FORMAT, *Format} else registered[form].load(ReportFormat)
    if by is not None and by not in {*By}:
        raise InputError(f"--by {by!r} is unknown; choose from: {', '.join(By)}")
    if items and (form not in {*Format} or by is not None):
        raise InputError("--items prints one table; leave out --by, and choose table, md, csv, latex or json")
    if form == PAGE_FORMAT and (by is not None or paper):
        raise InputError(f"--format {PAGE_FORMAT} writes the whole page; leave out --by and --paper")
    trajectory_count, evidence = _trajectories(trajectories), _read_evidence(checks, audit, criteria)
    floors = [parse_floor(text) for text in fail_under or ()]
    if document and (out is None or by is not None or paper or cutoff):
        raise InputError(
            f"--format {form} writes a whole document into --out DIR; leave out --by, --paper and --cutoff"
        )
    cutoffs = parse_cutoffs(cutoff) if cutoff else None
    if profile is not None and profile not in {*Profile}:
        raise InputError(f"--profile {profile!r} is unknown; choose from: {', '.join(Profile)}")
    with console.Progress() as progress:
        progress("Reading the rows")
        read = [filter_run(run, suite=suite) for run in read_runs(runs)] if suite else read_runs(runs)
        rows, causes = join_runs(read), None
        if failures and document is None:
            rows, causes = _with_output_use(rows, read, progress)
        progress("Making the tables")
        found = make_report(rows, profile, exclude or (), paper=paper, cutoffs=cutoffs)
        written = list[Path]()
        judged = check_thresholds(found.results, floors)
        judged += check_thresholds(found.results, evidence.criteria, hosted_models(found.results))
        if document and out is not None:
            progress("Writing the report")
            request = ReportRequest(report=found, runs=read, out=out, today=date.today(), **evidence._asdict())
            written = list(document.write(request))
        elif form == PAGE_FORMAT:
            folder = _page_folder(read, out)
            pages = {folder / which: each for which, each in found.sides.items()} or {folder: found}
            written = [
                _write_page(each, read, at, trajectory_count, evidence, causes, truth=truth)
                for at, each in pages.items()
            ]
    forms = {run.path: read_short_form(file) for run in read if (file := run.path / SHORT_FORM).is_file()}
    shortened = [f"{path}: a run of a short form, {len(each.weights)} episodes" for path, each in forms.items()]
    for line in [*_unfinished_notes(read), *_unsealed_notes(read), *shortened, *warnings(found.results)]:
        typer.echo(f"note: {line}", err=True)
    for index in written:
        typer.echo(index)
    if not written:
        why = None if causes is None else failures_table(found.results, causes)
        made = found.tables(None if by is None else By(by)) if not items else [items_table(found.results)]
        of_forms = [] if by or items or not forms else [_short_form_table(read, forms)]
        _output_tables([*of_forms, *made, *([why] if why else [])], Format(form), out)
    print_gates([*(each.outcome for each in judged), *check_finished(read)] if judged else [])


def _with_output_use(
    rows: pl.DataFrame, runs: list[RunRows], progress: console.Progress
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the rows with the use of script output, and the causes of failure."""
    import polars as pl

    from finskillbench.analysis.skills import OUTPUT
    from finskillbench.errors import InputError
    from finskillbench.runs.postprocess.failures import failures_of, use_of

    for run in runs:
        if not run.has_trajectories:
            raise InputError(f"{run.path}: has no trajectories; leave out --failures")
    progress("Looking for causes of failure")
    item = ["model", "arguments", "condition", "task_id", "run_idx"]
    used = pl.concat([use_of(run.path) for run in runs]).select(*item, pl.col("output_use").alias(OUTPUT))
    joined = rows.join(used.unique(item, keep="first"), on=item, how="left", maintain_order="left")
    return joined, pl.concat([failures_of(run.path) for run in runs])


def _trajectories(text: str | None) -> int | None:
    """Parse --trajectories: trajectories per cell of a page; None: the page's default."""
    from finskillbench.errors import InputError

    if text is None:
        return None
    if text in ("all", "none"):
        return _ALL if text == "all" else 0
    if text.isdecimal():
        return int(text)
    raise InputError(f"--trajectories {text!r} is unknown; give all, none or a number")


class _Evidence(NamedTuple):
    """Reports on the edition and acceptance criteria, if given."""

    checks: CheckReport | None
    audit: CheckReport | None
    criteria: list[Threshold]


def _read_evidence(checks: Path | None, audit: Path | None, criteria: Path | None) -> _Evidence:
    from finskillbench.reports.evidence import read_audit, read_checks, read_criteria

    return _Evidence(
        None if checks is None else read_checks(checks),
        None if audit is None else read_audit(audit),
        [] if criteria is None else read_criteria(criteria),
    )


def _page_folder(runs: list[RunRows], out: Path | None) -> Path:
    from finskillbench.errors import InputError

    if out is None and (len(runs) > 1 or runs[0].record is None):
        raise InputError(
            f"--format {PAGE_FORMAT} needs --out DIR for several runs, or for rows outside of a run folder"
        )
    return out or runs[0].path / PAGE


def _write_page(
    found: Report,
    runs: list[RunRows],
    folder: Path,
    trajectories: int | None,
    evidence: _Evidence,
    causes: pl.DataFrame | None,
    *,
    truth: bool,
) -> Path:
    from finskillbench.reports.page import write_page

    return write_page(
        found.results,
        folder,
        runs,
        trajectories=trajectories,
        truth=truth,
        causes=causes,
        validation=evidence.checks,
        audit=evidence.audit,
    ).index


def _short_form_table(runs: list[RunRows], forms: dict[Path, ShortForm]) -> Table:
    """Return the estimates of the runs of a short form; refuse runs of several."""
    from finskillbench.errors import InputError
    from finskillbench.reports.read import join_runs
    from finskillbench.reports.tables.episodes.items import short_form_table

    (first, form), *others = forms.items()
    if other := next((path for path, each in others if each != form), None):
        raise InputError(f"{first} and {other}: runs of different short forms; report them one at a time")
    return short_form_table(join_runs([run for run in runs if run.path in forms]), form)


def _output_tables(tables: list[Table], form: Format, out: Path | None) -> None:
    from finskillbench.reports.formats import render, write_tables

    if out is not None:
        for path in write_tables(tables, form, out):
            typer.echo(path)
        return
    try:
        typer.echo(render(tables, form, console.width()), nl=False)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as `head`, closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _unsealed_notes(runs: list[RunRows]) -> list[str]:
    """Return a note for each run whose rows have no digests."""
    return [
        f"{run.path}: its rows have no digests, so later changes to them cannot be detected"
        for run in runs
        if run.rows.height and not run.sealed
    ]


def _unfinished_notes(runs: list[RunRows]) -> list[str]:
    """Return a note for each unfinished run."""
    return [
        f"{run.path}: not finished, {run.missing} of {run.missing + run.rows.height} episodes have no row yet"
        for run in runs
        if run.missing
    ]
