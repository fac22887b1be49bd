"""`finskillbench report`: what runs come to, in tables."""

from __future__ import annotations

import os
import sys
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from finskillbench.cli.data.arguments import PartOfEdition
from finskillbench.cli.display import console
from finskillbench.cli.display.console import PAGE
from finskillbench.cli.postprocess.compare import print_gates

if TYPE_CHECKING:
    import polars as pl

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
"""More trajectories than any cell of a page has."""


# As long as its options are many, each of which is named and explained once, here.
def report(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN...", help="Run folders, rows.parquet, or rows of the published release."),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            parser=console.out_path,
            metavar="DIR",
            help="Folder for a file of each table, or for the page. Default: print them; RUN/report for the page.",
        ),
    ] = None,
    form: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="table, md, csv, latex, json, html (a page), validation (a pack for a model-risk officer), or one "
            "that another package registers.",
        ),
    ] = "table",
    suite: PartOfEdition = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Only the tables by domain, subtask, difficulty, model, condition, status or harness.",
        ),
    ] = None,
    profile: Annotated[
        str | None, typer.Option(help="certified, strict or paper. Default: certified; paper with --paper.")
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(metavar="MODEL", help="Model to leave out of all tables but the first; repeatable."),
    ] = None,
    paper: Annotated[
        bool, typer.Option("--paper", help="The values that the paper prints beside ours, by the published scorers.")
    ] = False,
    cutoff: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[MODEL=]DATE",
            help="Last day of training data: everything before and after it apart; repeatable (docs/reports.md).",
        ),
    ] = None,
    failures: Annotated[
        bool, typer.Option("--failures", help="Why episodes failed as well, for which every trajectory is read.")
    ] = False,
    trajectories: Annotated[
        str | None,
        typer.Option(metavar="all|none|N", help="Episodes of each cell that the page tells. Default: a telling few."),
    ] = None,
    truth: Annotated[
        bool, typer.Option("--truth/--no-truth", help="What was expected beside what was given, in the page.")
    ] = True,
    checks: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="What data validate EDITION --json printed, for the page and the pack."),
    ] = None,
    audit: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="What audit EDITION --json FILE wrote, for the page and the pack."),
    ] = None,
    criteria: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Acceptance criteria, in TOML (docs/validation-pack.md)."),
    ] = None,
    fail_under: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PART[@CONDITION]=SCORE",
            help="Exit with 1 if a model is below: headline, a domain or a subtask; repeatable (docs/compare.md).",
        ),
    ] = None,
) -> None:
    """Make tables of runs: conditions, domains, subtasks, models, resources, harnesses, how episodes ended.

    A run need not be finished. docs/reports.md says how to read each table, docs/validation-pack.md what the pack
    holds. Exit code 1 if a floor of --fail-under or an acceptance criterion does not hold.
    """
    from finskillbench.analysis.cutoffs import parse_cutoffs
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

    others = registered_extensions(REPORTS, (*Format, PAGE_FORMAT))
    if form not in {PAGE_FORMAT, *Format, *others}:
        raise InputError(f"--format {form!r} is unknown; choose from: {', '.join([*Format, PAGE_FORMAT, *others])}")
    document = None if form in {PAGE_FORMAT, *Format} else others[form].load(ReportFormat)
    if by is not None and by not in {*By}:
        raise InputError(f"--by {by!r} is unknown; choose from: {', '.join(By)}")
    if form == PAGE_FORMAT and (by is not None or paper):
        raise InputError(f"--format {PAGE_FORMAT} is one page of everything; leave --by and --paper out")
    asked, known = _trajectories(trajectories), _evidence(checks, audit, criteria)
    floors = [parse_floor(text) for text in fail_under or ()]
    if document and (out is None or by is not None or paper or cutoff):
        raise InputError(
            f"--format {form} writes one document of everything into --out DIR; leave --by, --paper and --cutoff out"
        )
    cutoffs = parse_cutoffs(cutoff) if cutoff else None
    if profile is not None and profile not in {*Profile}:
        raise InputError(f"--profile {profile!r} is unknown; choose from: {', '.join(Profile)}")
    with console.Progress() as progress:
        progress("Reading the rows")
        read = [filter_run(run, suite=suite) for run in read_runs(runs)] if suite else read_runs(runs)
        rows, causes = join_runs(read), None
        if failures and document is None:
            rows, causes = _explained(rows, read, progress)
        progress("Making the tables")
        found = make_report(rows, profile, exclude or (), paper=paper, cutoffs=cutoffs)
        written = list[Path]()
        judged = check_thresholds(found.results, floors)
        judged += check_thresholds(found.results, known.criteria, hosted_models(found.results))
        if document and out is not None:
            progress("Writing the report")
            request = ReportRequest(report=found, runs=read, out=out, today=date.today(), **known._asdict())
            written = list(document.write(request))
        elif form == PAGE_FORMAT:
            folder = _page_folder(read, out)
            pages = {folder / which: each for which, each in found.sides.items()} or {folder: found}
            written = [_write_page(each, read, at, asked, known, causes, truth=truth) for at, each in pages.items()]
    for line in [*_unfinished(read), *_unsealed(read), *warnings(found.results)]:
        typer.echo(f"note: {line}", err=True)
    for index in written:
        typer.echo(index)
    if not written:
        why = None if causes is None else failures_table(found.results, causes)
        _tell([*found.tables(None if by is None else By(by)), *([why] if why else [])], Format(form), out)
    print_gates([*(each.outcome for each in judged), *check_finished(read)] if judged else [])


def _explained(
    rows: pl.DataFrame, runs: list[RunRows], progress: console.Progress
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The rows with what became of the output of scripts, and why episodes failed."""
    import polars as pl

    from finskillbench.analysis.skills import OUTPUT
    from finskillbench.errors import InputError
    from finskillbench.runs.postprocess.failures import failures_of, use_of

    for run in runs:
        if not run.has_trajectories:
            raise InputError(f"{run.path}: has no trajectories to look for failures in; leave --failures out")
    progress("Looking for causes of failure")
    item = ["model", "arguments", "condition", "task_id", "run_idx"]
    used = pl.concat([use_of(run.path) for run in runs]).select(*item, pl.col("output_use").alias(OUTPUT))
    told = rows.join(used.unique(item, keep="first"), on=item, how="left", maintain_order="left")
    return told, pl.concat([failures_of(run.path) for run in runs])


def _trajectories(asked: str | None) -> int | None:
    """How many trajectories of each cell a page is to tell; None leaves it to the page."""
    from finskillbench.errors import InputError

    if asked is None:
        return None
    if asked in ("all", "none"):
        return _ALL if asked == "all" else 0
    if asked.isdecimal():
        return int(asked)
    raise InputError(f"--trajectories {asked!r} is unknown; give all, none or how many of each cell")


class _Known(NamedTuple):
    """Reports on the edition and acceptance criteria, as far as they were supplied."""

    checks: CheckReport | None
    audit: CheckReport | None
    criteria: list[Threshold]


def _evidence(checks: Path | None, audit: Path | None, criteria: Path | None) -> _Known:
    from finskillbench.reports.evidence import read_audit, read_checks, read_criteria

    return _Known(
        None if checks is None else read_checks(checks),
        None if audit is None else read_audit(audit),
        [] if criteria is None else read_criteria(criteria),
    )


def _page_folder(runs: list[RunRows], out: Path | None) -> Path:
    from finskillbench.errors import InputError

    if out is None and (len(runs) > 1 or runs[0].record is None):
        raise InputError(
            f"--format {PAGE_FORMAT} needs --out DIR, a folder for the page; only a run folder has its own"
        )
    return out or runs[0].path / PAGE


def _write_page(
    found: Report,
    runs: list[RunRows],
    folder: Path,
    trajectories: int | None,
    known: _Known,
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
        validation=known.checks,
        audit=known.audit,
    ).index


def _tell(tables: list[Table], form: Format, out: Path | None) -> None:
    """Print the tables, or write a file of each."""
    from finskillbench.reports.formats import render, write_tables

    if out is not None:
        for path in write_tables(tables, form, out):
            typer.echo(path)
        return
    try:
        typer.echo(render(tables, form, console.width()), nl=False)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _unsealed(runs: list[RunRows]) -> list[str]:
    """Which rows may have been altered, for all that can be told."""
    return [
        f"{run.path}: its rows have no digests; whether they were altered after they were written cannot be told"
        for run in runs
        if run.rows.height and not run.sealed
    ]


def _unfinished(runs: list[RunRows]) -> list[str]:
    """What runs still lack."""
    return [
        f"{run.path}: not finished, {run.missing} of {run.missing + run.rows.height} episodes have no row yet"
        for run in runs
        if run.missing
    ]
