"""Limitations: warnings on this evidence, which the cover states, and those of every run of the benchmark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from finskillbench.analysis.results import LEAST, Results
from finskillbench.edition import Edition
from finskillbench.findings import State
from finskillbench.publish.pack.chapters import Chapter
from finskillbench.publish.pack.checks import EditionReport
from finskillbench.publish.pack.outcomes import FEWEST_CLUSTERS, mean_scores
from finskillbench.reports.read import RunRows
from finskillbench.reports.tables.common import contenders
from finskillbench.reports.tables.notes import warnings

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


def limits_chapter() -> Chapter:
    """The limitations of every run of this benchmark."""
    words = ("The cover states the warnings on this evidence. The following apply to every run of this benchmark.",)
    return Chapter("limits", "Limitations", words, _STANDING)


def warnings_of(
    results: Results,
    runs: Sequence[RunRows],
    editions: Mapping[str, Edition | str],
    reports: Sequence[EditionReport],
) -> Iterator[str]:
    """Warnings on this evidence, for the cover."""
    if results.rows["program"].all():
        yield f"No language model was run. The program {contenders(results)[0]} takes the place of a model."
    yield from _few(results)
    for each in reports:
        if each.left_out:
            yield f"{each.name}: {len(each.left_out)} of {len(each.expected)} checks of the edition were not run."
        if failed := each.count(State.FAIL):
            of = f"{failed} of {len(each.expected)} checks"
            yield f"{each.name}: {of} failed. Results are not supported until they pass."
    for digest, edition in editions.items():
        if isinstance(edition, str):
            yield f"Edition {digest[:12]} was not read: {edition}."
    yield from _of_runs(runs)
    of_models = results.rows.filter(pl.col("model").is_in(contenders(results)))
    share = of_models.filter(~pl.col("failed")).height / of_models.height
    if share < LEAST:
        yield f"{share:.1%} of the rows of the models have a verdict, fewer than {LEAST:.0%}."
    if of_models.group_by("model", "condition", "episode").len()["len"].max() == 1:
        yield "Every episode was run once. Variation over repeats is not assessed."
    if "commit" in results.rows.columns and results.rows["commit"].str.ends_with("-dirty").any():
        yield "Some rows were produced by code that differs from its commit."
    yield from warnings(results)


def _few(results: Results) -> Iterator[str]:
    """The smallest sample among models and conditions, where it is of too few clusters."""
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
