"""Writing the pack: one HTML file without network requests, made to be printed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import NamedTuple

import polars as pl
from markupsafe import Markup, escape

from finskillbench.analysis.results import Results, collect
from finskillbench.audit.report import AuditReport
from finskillbench.edition.store import refuse_inside_edition
from finskillbench.edition.validation.report import ValidationReport
from finskillbench.episode import Profile
from finskillbench.errors import InputError
from finskillbench.publish.pack.challengers import challengers_chapter
from finskillbench.publish.pack.checks import reports_on, soundness_chapter
from finskillbench.publish.pack.criteria import criteria_chapter, criteria_met
from finskillbench.publish.pack.failed import failures_chapter
from finskillbench.publish.pack.limits import CONCLUSIONS, QUESTIONS, SIGNATURES, limits_chapter, warnings_of
from finskillbench.publish.pack.outcomes import results_chapter, sensitivity_chapter, stability_chapter
from finskillbench.publish.pack.references import REVIEWED
from finskillbench.publish.pack.subject import extent_of, lineage_chapter, reference_of, scope_chapter
from finskillbench.reports.compare.gates import Threshold, ThresholdResult, check_thresholds
from finskillbench.reports.formats.cells import cell_text, titled
from finskillbench.reports.page.lineage import editions_of, lineage_of
from finskillbench.reports.page.view import view_of
from finskillbench.reports.read import RunRows, joined
from finskillbench.reports.tables.base import Cell, Column, Kind
from finskillbench.reports.tables.common import contenders
from finskillbench.reports.templates import environment, source_digest
from finskillbench.runs.afterwards.show import printable
from finskillbench.runs.store.files import make_folder, write_beside

FILE = "validation-pack.html"
_TEMPLATES = Path(__file__).with_name("templates")


class Pack(NamedTuple):
    """A pack that was written: its file, and the acceptance criteria as they were judged."""

    path: Path
    judged: list[ThresholdResult]


class _Evidence(NamedTuple):
    """Reports on the edition and judged criteria; None where not supplied."""

    checks: ValidationReport | None
    audit: AuditReport | None
    judged: list[ThresholdResult] | None


def write_pack(
    runs: Sequence[RunRows],
    out: Path,
    *,
    today: date,
    profile: Profile = Profile.CERTIFIED,
    exclude: Sequence[str] = (),
    checks: ValidationReport | None = None,
    audit: AuditReport | None = None,
    criteria: Sequence[Threshold] = (),
) -> Pack:
    """Write the pack of some runs into a folder, in place of one that is there.

    Parameters
    ----------
    runs : as of `read_runs`. out : the folder; made if absent. today : the date on the cover.
    profile, exclude : as of `collect`.
    checks, audit : reports on the edition; None is stated as "not run".
    criteria : as of `read_criteria`; none are stated as "not supplied".

    Raises
    ------
    InputError : nothing was run, the evidence is of another edition, a criterion is on what was not run, or the file
        cannot be written.
    """
    refuse_inside_edition(out)
    rows = joined(runs)
    results = collect(rows, profile, exclude)
    _refuse_other_editions(results.rows, checks, audit)
    judged = check_thresholds(results, criteria, contenders(results))
    page = _render(results, rows, runs, today, _Evidence(checks, audit, judged if criteria else None))
    make_folder(out)
    write_beside(out / FILE, page.encode())
    return Pack(out / FILE, judged)


def _refuse_other_editions(rows: pl.DataFrame, checks: ValidationReport | None, audit: AuditReport | None) -> None:
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
        limits_chapter(),
    )
    style = (_TEMPLATES / "pack.css").read_text(encoding="utf-8")
    reference = reference_of(rows)
    style = f'{style}\n@page {{ @bottom-left {{ content: "FinSkillBench validation pack {reference}"; }} }}\n'
    policy = f"default-src 'none'; style-src '{source_digest(style)}'; base-uri 'none'; form-action 'none'"
    models = contenders(results)
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
    """A cell that is broken after the parts of a name, and never within an interval."""
    escaped = str(escape(printable(cell_text(column, cell, absent="n/a"))))
    if escaped.endswith("]"):
        return Markup(escaped.replace(", ", ",&nbsp;"))
    return Markup(escaped.replace("_", "_<wbr>").replace("/", "/<wbr>"))
