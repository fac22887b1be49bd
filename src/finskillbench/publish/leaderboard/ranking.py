"""Tables of a leaderboard, by the same means and intervals as those of `finskillbench report`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

import polars as pl

from finskillbench.analysis.ranking import differences, places
from finskillbench.analysis.results import REFERENCE, Comparison, Results, collect
from finskillbench.domains import by_name
from finskillbench.episode import Profile
from finskillbench.harness.models import ModelKey
from finskillbench.publish.leaderboard.gather import Gathered, Listed, entrants_of
from finskillbench.reports.tables.base import Cell, Column, Estimate, Kind, Table
from finskillbench.reports.tables.common import (
    BY_HAND,
    MARKS,
    NOTHING,
    PAIRED,
    gaps,
    gaps_of,
    headline_only,
    marks_run,
    means,
    slug,
)
from finskillbench.reports.tables.scores.models import endings
from finskillbench.runs.store.rows import to_frame


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


_PLACES = (
    "Place: between how many that are better and how many that are worse, as far as paired differences tell after "
    "Holm's correction over all pairs of the table (any false difference: 5 %), in which every two submitters weigh "
    "the same, however many entries they have. Entries whose places overlap are not told apart; their order by mean is "
    "no finding."
)
_TESTED = (
    "p: two-sided clustered t test; where too little varies for it, the sign test over the clusters that differ. Holm: "
    "adjusted for the number of pairs, and where a submitter has several entries for theirs."
)
_CLAIMED = "Scores are computed here from what was submitted. Cost, tokens and cut-off are the entrant's word."


@dataclass(frozen=True, slots=True)
class Suite:
    """The tables of one headline."""

    name: str
    tables: tuple[Table, ...]


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """All that a leaderboard says: the entries, and the tables of each headline."""

    entries: tuple[Listed, ...]
    suites: tuple[Suite, ...]


def make_leaderboard(
    gathered: Gathered, wanted: Mapping[str, Sequence[str]], profile: Profile = Profile.CERTIFIED
) -> Leaderboard:
    """Make the tables of some bundles; `wanted` are the episodes of each headline (`coverage.required`)."""
    entries = entrants_of(gathered.taken)
    frames = [each.frame() for each in entries]
    if gathered.programs is not None:
        frames.append(to_frame(gathered.programs.rows))
    rows = pl.concat(frames)
    suites: list[Suite] = []
    for name, tasks in wanted.items():
        of_suite = rows.filter(pl.col("task_id").is_in(list(tasks)))
        labels_here = set(of_suite["model"])
        here = [each for each in entries if each.label in labels_here]
        if here:
            suites.append(Suite(name, tuple(_tables(collect(of_suite, profile), here))))
    return Leaderboard(entries, tuple(suites))


def _tables(results: Results, entries: Sequence[Listed]) -> Iterator[Table]:
    whole = {each.label: each for each in entries if not each.partial}
    part = {each.label: each for each in entries if each.partial}
    for condition, name in _names(results.conditions).items():
        if ranked := _ranked(results, condition, whole):
            told = differences(results, condition, ranked, {name: whole[name].owner for name in ranked})
            yield _ranking(results, condition, name, whole, ranked, told)
            if told.height:
                yield _pairs(condition, name, told)
            yield by_subtask(results, condition, name, ranked)
    if part:
        yield partial_table(results, part)
    if programs := programs_table(results):
        yield programs


def _names(conditions: Sequence[str]) -> dict[str, str]:
    """What the tables of each condition are named after, which is the name of a file: no two are the same."""
    names: dict[str, str] = {}
    for condition in conditions:
        name = slug(condition)
        while name in names.values():
            name += "_"
        names[condition] = name
    return names


def _ranked(results: Results, condition: str, entries: Mapping[str, Listed]) -> list[str]:
    """The entries with a score under a condition, the highest mean first."""
    scored = results.episodes.filter("headline", pl.col("condition") == condition)
    found = means(scored.filter(pl.col("model").is_in(list(entries))), ("model",))
    return [model for (model,), _ in sorted(found.items(), key=lambda each: (-each[1].value, each[0]))]


def _ranking(
    results: Results,
    condition: str,
    name: str,
    entries: Mapping[str, Listed],
    ranked: Sequence[str],
    told: pl.DataFrame,
) -> Table:
    scored = results.episodes.filter("headline", pl.col("condition") == condition)
    score = gaps_of(scored.filter(pl.col("model").is_in(list(ranked))), ("model",), value="score")
    compared = Comparison(condition, REFERENCE) in results.comparisons
    gain = gaps(results, Comparison(condition, REFERENCE), ("model",)) if compared else {}
    planned = results.rows.filter("headline", pl.col("condition") == condition)
    answered, _ = endings(planned.filter(pl.col("model").is_in(list(ranked))))
    columns = (
        Column("place", "Place"),
        Column("model", "Model"),
        Column("submitter", "Submitted by"),
        Column("score", "Score", Kind.SCORE, interval=True),
        *([Column("gain", f"Gain over {REFERENCE}", Kind.DIFFERENCE, interval=True)] if compared else []),
        *([Column("gain_pairs", "Episodes of the gain", Kind.COUNT)] if compared else []),
        Column("episodes", "Episodes", Kind.COUNT),
        Column("answered", "Answered", Kind.SHARE),
        Column("cost_usd", "Cost, USD", Kind.NUMBER, unit="US dollars"),
        Column("tokens", "Tokens an episode", Kind.NUMBER, digits=0),
        Column("after_cutoff", "After its cut-off"),
        Column("signed", "Signed"),
    )
    rows: list[tuple[Cell, ...]] = []
    for place in places(ranked, told):
        listed, each = entries[place.model], score[place.model,]
        own = planned.filter(pl.col("model") == place.model)
        signer, against = listed.under(condition).bundle.signer, gain.get((place.model,))
        rows.append(
            (
                str(place),
                place.model,
                listed.submitter,
                each.estimate,
                *([against and against.estimate, against and against.pairs] if compared else []),
                each.pairs,
                answered.get(place.model),
                _sum(own["cost_usd"]),
                _tokens(own),
                _after(listed, condition, own),
                "no" if signer is None else signer.owner or "yes",
            )
        )
    columns, rows = _told(columns, rows)
    notes = (_PLACES, *([PAIRED] if compared or told.height else []), _CLAIMED, *_repeats(results))
    title = f"Under {condition}, profile {results.profile}"
    return Table(f"ranking_{name}", title, columns, tuple(rows), notes)


def _told(
    columns: Sequence[Column], rows: Sequence[tuple[Cell, ...]]
) -> tuple[tuple[Column, ...], list[tuple[Cell, ...]]]:
    """Columns of which anything can be said."""
    kept = [place for place in range(len(columns)) if any(row[place] is not None for row in rows)]
    return tuple(columns[place] for place in kept), [tuple(row[place] for place in kept) for row in rows]


def _sum(values: pl.Series) -> float | None:
    return None if values.has_nulls() else float(values.sum())


def _tokens(rows: pl.DataFrame) -> float | None:
    tokens = (rows["total_input_tokens"] + rows["total_output_tokens"]).mean()
    return float(tokens) if isinstance(tokens, int | float) and tokens > 0 else None


def _after(listed: Listed, condition: str, rows: pl.DataFrame) -> str | None:
    """How many of the episodes are asked as of a day after the cut-off that the entrant states."""
    manifest = listed.under(condition).bundle.manifest
    stated = {ModelKey(each.model, each.arguments): each.cutoff for each in manifest.entrants}
    cutoff: date | None = stated[listed.entry]
    if cutoff is None:
        return None
    days = rows.unique("task_id")["as_of_date"]
    return f"{int((days > cutoff).sum())} of {len(days)} ({cutoff})"


def _repeats(results: Results) -> list[str]:
    most = results.episodes["repeats"].max()
    return ["Repeats of an episode are averaged first."] if isinstance(most, int) and most > 1 else []


def _pairs(condition: str, name: str, told: pl.DataFrame) -> Table:
    columns = (
        Column("a", "A"),
        Column("b", "B"),
        Column("difference", "A - B", Kind.DIFFERENCE, interval=True),
        Column("pairs", "Episodes", Kind.COUNT),
        Column("clusters", "Clusters", Kind.COUNT),
        Column("p", "p", Kind.NUMBER, digits=4),
        Column("p_holm", "p, Holm", Kind.NUMBER, digits=4),
    )
    rows = tuple(
        (
            line["a"],
            line["b"],
            Estimate(line["mean"], line["low"], line["high"]),
            *(line[name] for name in ("pairs", "clusters", "p", "p_holm")),
        )
        for line in told.iter_rows(named=True)
        if line["mean"] is not None
    )
    return Table(f"pairs_{name}", f"Every two entries under {condition}", columns, rows, (PAIRED, _TESTED))
