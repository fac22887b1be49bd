"""Sentences below a table: what a reader must know before believing it."""

from __future__ import annotations

import polars as pl

from finskillbench.analysis.results import REFERENCE, Results, distinct
from finskillbench.reports.release import EDITION, NOTE
from finskillbench.reports.tables.common import compared, contenders

PAIRED = (
    "Differences are paired by episode, with 95 % intervals that count what episodes share (market date, mandate, "
    "scenario, company) once; no interval where fewer than three such clusters were run or too little varies."
)


def notes(results: Results, *, differences: bool = True) -> tuple[str, ...]:
    """Who was left out, what was mixed, what failed, and what an interval is."""
    told = [*warnings(results), *_place(results), *_profiles(results)]
    if differences and results.comparisons:
        told.append(PAIRED)
    elif differences:
        told.append(f"No differences: they are against {REFERENCE}, and the rows have no two conditions to compare.")
    return tuple(told)


def warnings(results: Results) -> list[str]:
    """What makes figures of a report other than they seem: models left out, what was mixed, what is in no mean."""
    return [*_left_out(results), *_mixed(results), *_errors(results), *_uneven(results), *_reused(results)]


def _left_out(results: Results) -> list[str]:
    return [f"Without {', '.join(results.excluded)}."] if results.excluded else []


def _place(results: Results) -> list[str]:
    """Programs in the place of models."""
    if not results.rows["program"].all():
        return []
    return [f"No language model was run: {contenders(results)[0]}, a program, stands in its place."]


def _profiles(results: Results) -> list[str]:
    told: list[str] = []
    other = [
        f"{name} ({profile.value})" for name, profile in results.profiles.items() if profile is not results.profile
    ]
    if other:
        told.append(f"No {results.profile} scores for: {', '.join(other)}.")
    if above := distinct(results.rows.filter(pl.col("score") > 1.0), "sub_task"):
        told.append(f"{', '.join(sorted(above))}: scores may exceed 1, as the paper's formula for ranked lists has it.")
    beside = distinct(results.rows.filter(~pl.col("headline")), "sub_task")
    if beside:
        told.append(f"Not in the headline: {', '.join(sorted(beside))}.")
    return told


def _mixed(results: Results) -> list[str]:
    """Rows that do not belong together without a word."""
    told: list[str] = []
    for column, what in (("edition", "editions"), ("scorer_version", "scorers")):
        found = [value[:8] or "not told" for value in distinct(results.rows, column)]
        if len(found) > 1:
            told.append(f"The rows are of several {what}: {', '.join(found)}.")
    compared = results.rows.filter(pl.col("model").is_in(contenders(results)))
    harnesses = distinct(compared, "harness")
    if len(harnesses) > 1:
        told.append(
            f"The rows are of several harnesses: {', '.join(harnesses)}; only tables that name them keep them apart."
        )
    if EDITION in distinct(results.rows, "edition"):
        told.append(NOTE)
    if {"code_version", "commit"} <= set(results.rows.columns):
        made = results.rows.group_by("code_version", "commit").len().sort("code_version", "commit")
        if made.height > 1:
            each = [
                f"{count} by {version or 'not told'} ({commit or 'no commit'})"
                for version, commit, count in made.iter_rows()
            ]
            told.append(f"The rows were made by several versions of this program: {', '.join(each)}.")
    return told


def _errors(results: Results) -> list[str]:
    failed = int(results.rows["failed"].sum())
    if not failed:
        return []
    everything = results.rows.height
    if failed == everything:
        return [f"All {everything} rows ended in an error: there is no score. Run again to repeat them."]
    return [f"{failed} of {everything} rows ended in an error and are in no mean; run again to repeat them."]


def _reused(results: Results) -> list[str]:
    """Answers that are no draws of their own."""
    if not {"reused_calls", "saved_usd", "turns"} <= set(results.rows.columns):
        return []
    reused, saved = int(results.rows["reused_calls"].sum()), float(results.rows["saved_usd"].sum())
    if not reused:
        return []
    return [
        f"{reused:,} of {int(results.rows['turns'].sum()):,} model calls were answered from a response cache: rows "
        f"that share answers are no draws of their own, their seconds are not the model's, and {saved:,.2f} US dollars "
        "of the costs were not paid."
    ]


def _uneven(results: Results) -> list[str]:
    """Conditions whose means are over other episodes."""
    scored = compared(results, results.episodes).select("model", "harness", "episode", "condition").unique()
    counts = dict(scored.group_by("condition").len().iter_rows())
    every = scored.select("model", "harness", "episode").n_unique()
    if all(counts.get(name, 0) == every for name in results.conditions):
        return []
    each = ", ".join(f"{name} {counts.get(name, 0):,}" for name in results.conditions)
    return [f"Means of conditions are not over the same episodes ({each}); differences are."]
