"""Tables beside the ranking: subtasks, entries that are not whole, and what programs score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from finskillbench.analysis.results import Results
from finskillbench.domains import by_name
from finskillbench.publish.leaderboard.entrants import Listed
from finskillbench.reports.tables.base import Cell, Column, Kind, Table
from finskillbench.reports.tables.common import gaps_of, headline_only, means, slug
from finskillbench.reports.tables.programs import BY_HAND, MARKS, NOTHING, marks_run


def programs_table(results: Results) -> Table | None:
    """What the programs score that stand for a floor, a ceiling and a yardstick; None where none was run."""
    columns = (
        Column("stands_for", "Stands for"),
        Column("program", "Program"),
        Column("condition", "Condition"),
        Column("score", "Score", Kind.SCORE, interval=True),
        Column("episodes", "Episodes", Kind.COUNT),
    )
    rows: list[tuple[Cell, ...]] = []
    for mark in marks_run(results, (MARKS[2], BY_HAND, MARKS[1], MARKS[0], NOTHING)):
        own = results.episodes.filter(pl.col("model") == mark.model, pl.col("condition") == mark.condition)
        if told := gaps_of(headline_only(own), value="score").get(()):
            rows.append((mark.title, mark.model, mark.condition, told.estimate, told.pairs))
    if not rows:
        return None
    note = "Programs, not language models: run by whoever made this page. Not ranked."
    return Table("programs", "Programs beside", columns, tuple(rows), (note,))


def by_subtask(results: Results, condition: str, table: str, ranked: Sequence[str]) -> Table:
    """The mean of each entry on each subtask under a condition; `table` is what its tables are named after."""
    scored = results.episodes.filter("headline", pl.col("condition") == condition)
    found = means(scored, ("model", "sub_task"))
    names = [name for name in results.sub_tasks if by_name(name).headline]
    columns = (Column("model", "Model"), *(Column(slug(name), name.replace("_", " "), Kind.SCORE) for name in names))
    rows: list[tuple[Cell, ...]] = []
    for model in ranked:
        each = [found.get((model, name)) for name in names]
        rows.append((model, *(None if mean is None else mean.value for mean in each)))
    return Table(f"subtasks_{table}", f"Mean score by subtask under {condition}", columns, tuple(rows))


def partial_table(results: Results, entries: Mapping[str, Listed]) -> Table:
    """The entries of which episodes are missing, by model and condition."""
    scored = results.episodes.filter("headline", pl.col("model").is_in(list(entries)))
    found = means(scored, ("model", "condition"))
    columns = (
        Column("model", "Model"),
        Column("submitter", "Submitted by"),
        Column("condition", "Condition"),
        Column("score", "Score", Kind.SCORE),
        Column("episodes", "Episodes", Kind.COUNT),
        Column("reason", "Why not all"),
    )
    rows: list[tuple[Cell, ...]] = []
    for (model, condition), mean in found.items():
        listed = entries[model]
        reason = listed.under(condition).bundle.manifest.partial
        rows.append((model, listed.submitter, condition, mean.value, mean.episodes, reason))
    note = "Not ranked: means are over the episodes that were submitted, which the entrant has chosen."
    return Table("partial", "Entries with episodes missing", columns, tuple(rows), (note,))
