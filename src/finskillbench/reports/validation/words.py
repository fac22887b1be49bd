"""What a pack says in words: where expectations of supervisors are met, the known limits, and who signs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from finskillbench.analysis.coverage import LEAST
from finskillbench.analysis.results import Results, distinct
from finskillbench.audit.report import AuditReport
from finskillbench.edition.validation.report import ValidationReport
from finskillbench.reports.read import RunRows
from finskillbench.reports.tables.base import Column, Table
from finskillbench.reports.tables.common import contenders
from finskillbench.reports.validation.chapters import Chapter

EXPECTATIONS = Table(
    "expectations",
    "Where a supervisor's expectations are met",
    (Column("expectation", "Expectation"), Column("source", "Source"), Column("where", "In this pack")),
    (
        ("Purpose, scope and inventory of the model", "SR 11-7 III, VI; SS1/23 P1", "Purpose and scope"),
        ("Quality and provenance of data", "SR 11-7 IV; SS1/23 P3", "Data lineage and digests; appendix"),
        ("Conceptual soundness", "SR 11-7 V.1; SS1/23 P3", "Soundness of the labels: of the test, not of the model"),
        ("Outcomes analysis", "SR 11-7 V.3; SS1/23 P4", "Results; floors and ceilings"),
        ("Sensitivity and stability", "SR 11-7 IV, V; SS1/23 P3, P4", "Stability over repeats; sensitivity"),
        ("Error analysis", "SR 11-7 V; SS1/23 P4", "Failures by cause, with examples"),
        ("Limitations and assumptions", "SR 11-7 IV, VI; SS1/23 P3", "Known limits"),
        ("Effective challenge, independent review", "SR 11-7 III, V; SS1/23 P4", "Sign-off: by a person"),
        ("Ongoing monitoring", "SR 11-7 V.2; SS1/23 P4", "Not here: finskillbench compare with its gates"),
        ("Risk tier, use, controls, governance", "SR 11-7 VI; SS1/23 P1, P2, P5", "Not here: the firm's own"),
    ),
)
_STANDING = (
    "A benchmark measures what it asks. Nothing is said of tasks outside the subtasks that were run, of other markets, "
    "of longer horizons, or of work that cannot be judged against one proved answer.",
    "Scores are of analytical correctness on point-in-time data. They say nothing of investment performance.",
    "Intervals count episodes, clustered by market date, mandate and company. They do not count what another edition, "
    "another wording of the prompts or another release of a model would change.",
    "A hosted model may change behind its name; rows keep the name under which the provider says it answered.",
    "A model may have been trained on published filings. Synthetic editions of a new seed cannot have been seen; "
    "editions of real data can.",
    "Differences over the episodes in which an agent chose to use a skill are no effect of its use.",
    "What the build of an edition noted of its data stands in the appendix.",
    "The published scorers (profile paper) pay some answers that took no work; their floors stand beside them.",
)


def limits_chapter(
    results: Results,
    runs: Sequence[RunRows],
    checks: ValidationReport | None,
    audit: AuditReport | None,
) -> Chapter:
    """Known limits: those of this evidence, and those of every run."""
    words = ("Those of this evidence come first, then those of every run of this benchmark.",)
    points = (*_of_this(results, runs, checks, audit), *_STANDING)
    return Chapter("limits", "Known limits", words, points)


def _of_this(
    results: Results, runs: Sequence[RunRows], checks: ValidationReport | None, audit: AuditReport | None
) -> Iterator[str]:
    rows = results.rows
    if checks is None:
        yield "The labels were not validated for this pack."
    elif not checks.passed:
        yield "The validation of the labels failed: no result stands on them until it passes."
    if audit is None:
        yield "The edition was not audited for this pack."
    elif not audit.clean:
        yield f"The audit found {audit.count} defects of the edition."
    for run in runs:
        if run.missing:
            yield f"The run {run.path.name} is not finished: {run.missing} episodes have no row yet."
        if run.record is None:
            yield f"{run.path.name} is a table without its run folder: prompts, mounts and libraries are not known."
    yield from _of_rows(rows)
    models = contenders(results)
    if rows["program"].all():
        yield f"No language model was run. Where models stand, this pack shows the program {models[0]}."
    of_models = rows.filter(pl.col("model").is_in(models))
    if of_models.group_by("model", "condition", "episode").len()["len"].sort()[-1] < 2:
        yield "Every episode was run once: how much of a score is chance is not known."
    share = of_models.filter(~pl.col("failed")).height / of_models.height
    if share < LEAST:
        yield f"Only {share:.1%} of the rows have a verdict: means stand for too few (bounds: failures by cause)."
    if results.excluded:
        yield f"Left out of every result: {', '.join(results.excluded)}."


def _of_rows(rows: pl.DataFrame) -> Iterator[str]:
    for column, what in {
        "edition": "editions",
        "scorer_version": "scorers, so that scores are not comparable",
        "code_version": "versions of the program",
        "commit": "commits of the code",
    }.items():
        if column in rows.columns and len(distinct(rows, column)) > 1:
            yield f"The rows are of several {what}."
    if "commit" in rows.columns and rows["commit"].str.ends_with("-dirty").any():
        yield "Some rows were run by code that differs from its commit."


SIGNATURES = (
    "Prepared by (model owner or developer)",
    "Validated by (independent of development)",
    "Approved by (model risk management)",
)
QUESTIONS = (
    "Intended use of the model, and uses that are not approved",
    "Risk tier and materiality",
    "Conditions of approval, overlays, and limits of use",
    "Ongoing monitoring: measures, thresholds, owner, and date of the next review",
    "Opinion of the validator, with the findings and their severity",
)
