"""Validation pack: the evidence of runs as one printable HTML file for model-risk officers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import NamedTuple

import polars as pl
from markupsafe import Markup, escape

from finskillbench.analysis.results import LEAST, Results, collect
from finskillbench.edition import Edition
from finskillbench.edition.checks.catalog import CheckReport
from finskillbench.edition.store import refuse_inside_edition
from finskillbench.episode import Profile
from finskillbench.errors import InputError
from finskillbench.findings import CheckState
from finskillbench.publish.pack.chapters import (
    Chapter,
    EditionReport,
    criteria_chapter,
    criteria_met,
    failures_chapter,
    reports_on,
    soundness_chapter,
)
from finskillbench.publish.pack.outcomes import (
    FEWEST_CLUSTERS,
    challengers_chapter,
    mean_scores,
    results_chapter,
    sensitivity_chapter,
    stability_chapter,
)
from finskillbench.publish.pack.subject import REVIEWED, extent_of, lineage_chapter, reference_of, scope_chapter
from finskillbench.publish.pack.validity import validity_tables
from finskillbench.reports.compare.gates import Threshold, ThresholdResult, check_thresholds
from finskillbench.reports.page.lineage import editions_of, lineage_of
from finskillbench.reports.page.view import view_of
from finskillbench.reports.read import RunRows, join_runs
from finskillbench.reports.report import ReportFormat, ReportRequest, environment, source_digest
from finskillbench.reports.tables.base import Cell, Column, Kind, cell_text, titled
from finskillbench.reports.tables.common import hosted_models, warnings
from finskillbench.runs.postprocess.show import printable
from finskillbench.runs.store.version import make_folder, write_atomic

__all__ = ["VALIDATION", "Pack", "write_pack"]

_STANDING = (
    "A benchmark measures its own tasks. It gives no evidence on other tasks, markets or horizons, or on work without "
    "one provable answer.",
    "Scores measure analytical correctness on point-in-time data, not investment performance.",
    "Intervals reflect the sampling of episodes. They exclude variation over editions, wordings of prompts and "
    "releases of a model.",
    "A provider may change a hosted model under an unchanged name. Rows record the name that the provider returned.",
    "A model may have been trained on published filings. Synthetic editions of a new seed cannot have been seen.",
    "Differences among episodes in which an agent chose to use a skill are not effects of its use.",
    "The published scorers (profile paper) give credit to some answers that require no work.",
)


def limits_chapter(results: Results) -> Chapter:
    """Return the limitations of every run of this benchmark, with the tables on validity for the appendix."""
    paragraphs = (
        "The cover states the warnings on this evidence. The following apply to every run of this benchmark. The "
        "appendix lists the work behind subtasks, what is not covered, saturation, and demands of the "
        "literature with the evidence for each.",
    )
    return Chapter("limits", "Limitations", paragraphs, _STANDING, appendix=validity_tables(results))


def warnings_of(
    results: Results, runs: Sequence[RunRows], editions: Mapping[str, Edition | str], reports: Sequence[EditionReport]
) -> Iterator[str]:
    """Yield warnings on this evidence, for the cover."""
    if results.rows["program"].all():
        yield f"No language model was run. The program {hosted_models(results)[0]} takes the place of a model."
    yield from _few(results)
    for each in reports:
        if each.left_out:
            yield f"{each.name}: {len(each.left_out)} of {len(each.expected)} checks of the edition were not run."
        if failed := each.count(CheckState.FAIL):
            of = f"{failed} of {len(each.expected)} checks"
            yield f"{each.name}: {of} failed. Results are not supported until they pass."
    for digest, edition in editions.items():
        if isinstance(edition, str):
            yield f"Edition {digest[:12]} was not read: {edition}."
    yield from _of_runs(runs)
    of_models = results.rows.filter(pl.col("model").is_in(hosted_models(results)))
    share = of_models.filter(~pl.col("failed")).height / of_models.height
    if share < LEAST:
        yield f"{share:.1%} of the rows of the models have a verdict, fewer than {LEAST:.0%}."
    if of_models.group_by("model", "condition", "episode").len()["len"].max() == 1:
        yield "Every episode was run once. Variation over repeats is not assessed."
    if "commit" in results.rows.columns and results.rows["commit"].str.ends_with("-dirty").any():
        yield "Some rows were produced by code that differs from its commit."
    yield from warnings(results)


def _few(results: Results) -> Iterator[str]:
    """Warn of the smallest sample among models and conditions, if it has too few clusters."""
    means = mean_scores(results).with_columns(pl.col("effective_clusters").fill_null(0.0))
    if means.is_empty():
        yield "No headline subtask was run. The headline score does not exist."
        return
    fewest = means.sort("effective_clusters", "pairs", maintain_order=True).row(0, named=True)
    if round(fewest["effective_clusters"], 6) < FEWEST_CLUSTERS:
        yield (
            f"Small sample: {fewest['pairs']} scored headline episodes in {fewest['clusters']} clusters "
            f"({fewest['effective_clusters']:.1f} effective; {fewest['model']}, {fewest['condition']}). Below "
            f"{FEWEST_CLUSTERS} effective clusters a 95 % interval may be too narrow (Cameron and Miller 2015)."
        )


def _of_runs(runs: Sequence[RunRows]) -> Iterator[str]:
    for run in runs:
        if run.missing:
            yield f"The run {run.path.name} is not finished: {run.missing} episodes have no row."
        if run.record is None:
            yield f"{run.path.name} is a table without its run folder: prompts, skills and libraries are not known."
        if run.rows.height and not run.sealed:
            yield f"The rows of {run.path.name} carry no digests. Later alteration cannot be excluded."


SIGNATURES = (
    "Prepared by (model owner or developer)",
    "Validated by (independent of development)",
    "Approved by (model risk management)",
)
CONCLUSIONS = ("Approved", "Approved with conditions", "Not approved")
QUESTIONS = (
    "Intended use of the model, and uses that are not approved",
    "Risk tier and materiality",
    "Conditions of approval, compensating controls and limits of use",
    "Ongoing monitoring: measures, thresholds, owner, and date of the next review",
    "Findings of the validator, with severity and remediation",
)


FILE = "validation-pack.html"
_TEMPLATES = Path(__file__).with_name("templates")


class Pack(NamedTuple):
    """A written pack: its file, and the judged acceptance criteria."""

    path: Path
    judged: list[ThresholdResult]


class _Evidence(NamedTuple):
    """Reports on the edition and judged criteria; None where not supplied."""

    checks: CheckReport | None
    audit: CheckReport | None
    judged: list[ThresholdResult] | None


def write_pack(
    runs: Sequence[RunRows],
    out: Path,
    *,
    today: date,
    profile: Profile = Profile.CERTIFIED,
    exclude: Sequence[str] = (),
    checks: CheckReport | None = None,
    audit: CheckReport | None = None,
    criteria: Sequence[Threshold] = (),
) -> Pack:
    """Write the pack of some runs into a folder, replacing an existing one.

    Parameters
    ----------
    runs : as of `read_runs`. out : the folder; made if absent. today : the date on the cover.
    profile, exclude : as of `collect`. checks, audit : reports on the edition; None is stated as "not run".
    criteria : as of `read_criteria`; none are stated as "not supplied".

    Raises
    ------
    InputError : no rows, evidence of another edition, a criterion on what was not run, or an unwritable file.
    """
    refuse_inside_edition(out)
    rows = join_runs(runs)
    results = collect(rows, profile, exclude)
    _refuse_other_editions(results.rows, checks, audit)
    judged = check_thresholds(results, criteria, hosted_models(results))
    page = _render(results, rows, runs, today, _Evidence(checks, audit, judged if criteria else None))
    make_folder(out)
    write_atomic(out / FILE, page.encode())
    return Pack(out / FILE, judged)


def _refuse_other_editions(rows: pl.DataFrame, checks: CheckReport | None, audit: CheckReport | None) -> None:
    for option, report in (("--checks", checks), ("--audit", audit)):
        there = set(rows["edition"].to_list())
        if report is not None and report.digest not in there:
            editions = ", ".join(sorted(each[:12] for each in there))
            raise InputError(f"{option}: is of edition {report.digest[:12]}, and the rows are of {editions}")


def _render(results: Results, rows: pl.DataFrame, runs: Sequence[RunRows], today: date, known: _Evidence) -> str:
    programs = results.rows["program"].any()
    published = collect(rows, Profile.PAPER, results.excluded) if programs else None
    editions = editions_of(runs)
    lineage = lineage_of(view_of(results), runs, editions)
    reports = reports_on(results, editions, known.checks, known.audit)
    chapters = (
        scope_chapter(results),
        results_chapter(results),
        criteria_chapter(known.judged),
        challengers_chapter(results, published),
        lineage_chapter(lineage, runs, editions),
        soundness_chapter(reports, lineage.tables),
        stability_chapter(results),
        failures_chapter(results, runs, rows),
        sensitivity_chapter(rows, results),
        limits_chapter(results),
    )
    style = (_TEMPLATES / "pack.css").read_text(encoding="utf-8")
    reference = reference_of(rows)
    style = f'{style}\n@page {{ @bottom-left {{ content: "FinSkillBench validation pack {reference}"; }} }}\n'
    policy = f"default-src 'none'; style-src '{source_digest(style)}'; base-uri 'none'; form-action 'none'"
    models = hosted_models(results)
    return (
        environment(_TEMPLATES)
        .get_template("pack.html")
        .render(
            style=Markup(style),
            policy=policy,
            models=models,
            challengers=[name for name in results.models if name not in models or len(models) > 1],
            reference=reference,
            evidence=extent_of(results),
            today=today.isoformat(),
            reviewed=REVIEWED.isoformat(),
            criteria=criteria_met(known.judged),
            warnings=list(dict.fromkeys(warnings_of(results, runs, editions, reports))),
            chapters=[chapter.shortened() for chapter in chapters],
            signatures=SIGNATURES,
            conclusions=CONCLUSIONS,
            questions=QUESTIONS,
            shown=_shown,
            titled=titled,
            TEXT=Kind.TEXT,
        )
    )


def _shown(column: Column, cell: Cell) -> Markup:
    """Escape a cell and allow line breaks in names, but not within an interval."""
    escaped = str(escape(printable(cell_text(column, cell, absent="n/a"))))
    if escaped.endswith("]"):
        return Markup(escaped.replace(", ", ",&nbsp;"))
    return Markup(escaped.replace("_", "_<wbr>").replace("/", "/<wbr>"))


def _write(request: ReportRequest) -> list[Path]:
    results = request.report.results
    pack = write_pack(
        request.runs,
        request.out,
        today=request.today,
        profile=results.profile,
        exclude=results.excluded,
        checks=request.checks,
        audit=request.audit,
        criteria=request.criteria,
    )
    return [pack.path]


VALIDATION = ReportFormat(_write)
"""The format `validation` of `finskillbench report`."""
