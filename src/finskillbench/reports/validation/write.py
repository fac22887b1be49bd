"""Writing the pack: one HTML file that asks the network for nothing and is made to be printed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path

import polars as pl
from markupsafe import Markup, escape

from finskillbench.analysis.results import Results, collect
from finskillbench.audit.report import AuditReport
from finskillbench.edition.store import refuse_inside_edition
from finskillbench.edition.validation.report import ValidationReport
from finskillbench.episode import Profile
from finskillbench.errors import InputError
from finskillbench.reports.formats.cells import cell_text, titled
from finskillbench.reports.read import RunRows, joined
from finskillbench.reports.tables.base import Kind
from finskillbench.reports.tables.common import contenders
from finskillbench.reports.templates import environment, source_digest
from finskillbench.reports.validation.chapters import Chapter
from finskillbench.reports.validation.failed import failures_chapter
from finskillbench.reports.validation.outcomes import (
    floors_chapter,
    results_chapter,
    sensitivity_chapter,
    stability_chapter,
)
from finskillbench.reports.validation.subject import lineage_chapters, reference_of, scope_chapter
from finskillbench.reports.validation.words import EXPECTATIONS, QUESTIONS, SIGNATURES, limits_chapter
from finskillbench.runs.afterwards.show import printable
from finskillbench.runs.store.files import make_folder, write_beside

FILE = "validation-pack.html"
_TEMPLATES = Path(__file__).with_name("templates")


def write_pack(
    runs: Sequence[RunRows],
    out: Path,
    *,
    today: date,
    profile: Profile = Profile.CERTIFIED,
    exclude: Sequence[str] = (),
    checks: ValidationReport | None = None,
    audit: AuditReport | None = None,
) -> Path:
    """Write the pack of some runs into a folder, in place of one that is there.

    Parameters
    ----------
    runs : as of `read_runs`. out : the folder; made if absent. today : the date on the cover.
    profile, exclude : as of `collect`.
    checks, audit : what was found of the edition; None says "not run".

    Returns
    -------
    The file.

    Raises
    ------
    InputError : nothing was run, the evidence is of another edition, or the file cannot be written.
    """
    refuse_inside_edition(out)
    rows = joined(runs)
    results = collect(rows, profile, exclude)
    _refuse_other_editions(results.rows, checks, audit)
    page = _render(results, rows, runs, today, checks, audit)
    make_folder(out)
    write_beside(out / FILE, page.encode())
    return out / FILE


def _refuse_other_editions(rows: pl.DataFrame, checks: ValidationReport | None, audit: AuditReport | None) -> None:
    for option, report in (("--checks", checks), ("--audit", audit)):
        there = set(rows["edition"].to_list())
        if report is not None and report.digest not in there:
            told = ", ".join(sorted(each[:12] for each in there))
            raise InputError(f"{option}: is of edition {report.digest[:12]}, and the rows are of {told}")


def _render(
    results: Results,
    rows: pl.DataFrame,
    runs: Sequence[RunRows],
    today: date,
    checks: ValidationReport | None,
    audit: AuditReport | None,
) -> str:
    published = collect(rows, Profile.PAPER, results.excluded) if results.rows["program"].any() else None
    lineage, proofs, digests = lineage_chapters(results, runs, checks, audit)
    chapters: tuple[Chapter, ...] = (
        scope_chapter(results),
        lineage,
        proofs,
        results_chapter(results),
        stability_chapter(results),
        failures_chapter(results, runs, rows),
        floors_chapter(results, published),
        sensitivity_chapter(rows, results),
        limits_chapter(results, runs, checks, audit),
    )
    style = (_TEMPLATES / "pack.css").read_text(encoding="utf-8")
    reference = reference_of(rows)
    style = f'{style}\n@page {{ @bottom-left {{ content: "FinSkillBench validation pack {reference}"; }} }}\n'
    policy = f"default-src 'none'; style-src '{source_digest(style)}'; base-uri 'none'; form-action 'none'"
    return (
        environment(_TEMPLATES)
        .get_template("pack.html")
        .render(
            style=Markup(style),
            policy=policy,
            models=contenders(results),
            reference=reference,
            today=today.isoformat(),
            expectations=EXPECTATIONS,
            chapters=chapters,
            digests=digests,
            signatures=SIGNATURES,
            questions=QUESTIONS,
            cell_text=cell_text,
            breakable=_breakable,
            titled=titled,
            TEXT=Kind.TEXT,
        )
    )


def _breakable(text: str) -> Markup:
    """A cell that is broken after the parts of a name, and never within an interval."""
    escaped = str(escape(printable(text)))
    if escaped.endswith("]"):
        return Markup(escaped.replace(", ", ",&nbsp;"))
    return Markup(escaped.replace("_", "_<wbr>").replace("/", "/<wbr>"))
