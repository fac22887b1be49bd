"""Tables of a leaderboard, with the means and intervals of `finskillbench report`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

import polars as pl

from finskillbench.analysis.ranking import paired_differences, rank_ranges
from finskillbench.analysis.results import REFERENCE, Comparison, Results, collect
from finskillbench.domains import subtask_named
from finskillbench.episode import Profile
from finskillbench.harness.models import ModelKey
from finskillbench.publish.leaderboard.gather import JudgedSubmissions, LeaderboardEntry, list_entries
from finskillbench.reports.tables import common
from finskillbench.reports.tables.base import Cell, Column, Estimate, Kind, Table, columns_of
from finskillbench.reports.tables.episodes.faults import faults_table
from finskillbench.reports.tables.scores.models import endings
from finskillbench.runs.store.rows import to_frame


def programs_table(results: Results) -> Table | None:
    """Return the scores of the programs that serve as floor, ceiling and reference; None if none was run."""
    columns = (
        *columns_of(Kind.TEXT, stands_for="Role", program="Program", condition="Condition"),
        Column("score", "Score", Kind.SCORE, interval=True),
        Column("episodes", "Episodes", Kind.COUNT),
    )
    rows: list[tuple[Cell, ...]] = []
    for mark in common.available_marks(
        results, (common.MARKS[2], common.NO_SKILL_MARK, common.MARKS[1], common.MARKS[0], common.NOTHING)
    ):
        episodes = results.episodes.filter(pl.col("model") == mark.model, pl.col("condition") == mark.condition)
        if score := common.gaps_of(common.headline_only(episodes), value="score").get(()):
            rows.append((mark.title, mark.model, mark.condition, score.estimate, score.pairs))
    if not rows:
        return None
    footnote = "Programs, not language models, run by the leaderboard's maintainer. Not ranked."
    return Table("programs", "Baseline programs", columns, tuple(rows), (footnote,))


def by_subtask(results: Results, condition: str, table: str, ranked: Sequence[str]) -> Table:
    """Return the mean of each entry by subtask under a condition; `table` is the suffix of the table's name."""
    scored = results.episodes.filter("headline", pl.col("condition") == condition)
    found = common.means(scored, ("model", "sub_task"))
    names = [name for name in results.sub_tasks if subtask_named(name).headline]
    columns = (
        Column("model", "Model"),
        *(Column(common.slug(name), name.replace("_", " "), Kind.SCORE) for name in names),
    )
    rows: list[tuple[Cell, ...]] = []
    for model in ranked:
        each = [found.get((model, name)) for name in names]
        rows.append((model, *(None if mean is None else mean.value for mean in each)))
    return Table(f"subtasks_{table}", f"Mean score by subtask under {condition}", columns, tuple(rows))


def partial_table(results: Results, entries: Mapping[str, LeaderboardEntry]) -> Table:
    """Return the scores of entries with missing episodes, by model and condition."""
    scored = results.episodes.filter("headline", pl.col("model").is_in(list(entries)))
    found = common.means(scored, ("model", "condition"))
    columns = (
        *columns_of(Kind.TEXT, model="Model", submitter="Submitted by", condition="Condition"),
        Column("score", "Score", Kind.SCORE),
        Column("episodes", "Episodes", Kind.COUNT),
        Column("reason", "Reason"),
    )
    rows: list[tuple[Cell, ...]] = []
    for (model, condition), mean in found.items():
        listed = entries[model]
        reason = listed.under(condition).bundle.manifest.partial
        rows.append((model, listed.submitter, condition, mean.value, mean.episodes, reason))
    footnote = "Not ranked: means are over the submitted episodes, which the submitter has chosen."
    return Table("partial", "Entries with missing episodes", columns, tuple(rows), (footnote,))


_PLACES = (
    "Place: range of ranks from the numbers of significantly better and worse entries. Differences are paired, with "
    "Holm's correction over all pairs of the table (familywise error 5 %). Every two submitters have equal weight, "
    "regardless of their number of entries. Entries with overlapping places are not distinguished; their order by mean "
    "is not a finding."
)
_TESTED = (
    "p: two-sided clustered t test; where scores vary too little for it, the sign test over the clusters that differ. "
    "Holm: adjusted for the number of pairs, and for a submitter's number of entries."
)
_CLAIMED = "Scores are recomputed from the submitted answers. Cost, tokens and cut-off are stated by the submitter."


@dataclass(frozen=True, slots=True)
class Suite:
    """Tables of one headline."""

    name: str
    tables: tuple[Table, ...]


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """Entries of a leaderboard, and the tables of each headline."""

    entries: tuple[LeaderboardEntry, ...]
    suites: tuple[Suite, ...]


def make_leaderboard(
    gathered: JudgedSubmissions, wanted: Mapping[str, Sequence[str]], profile: Profile = Profile.CERTIFIED
) -> Leaderboard:
    """Make the tables of judged submissions; `wanted` are the task ids by headline (`headline_tasks`)."""
    entries = list_entries(gathered.taken)
    frames = [each.frame() for each in entries]
    if gathered.programs is not None:
        frames.append(to_frame(gathered.programs.rows))
    rows = pl.concat(frames)
    suites: list[Suite] = []
    for name, tasks in wanted.items():
        of_suite = rows.filter(pl.col("task_id").is_in(list(tasks)))
        scored_labels = set(of_suite["model"])
        scored = [each for each in entries if each.label in scored_labels]
        if scored:
            suites.append(Suite(name, tuple(_tables(collect(of_suite, profile), scored))))
    return Leaderboard(entries, tuple(suites))


def _tables(results: Results, entries: Sequence[LeaderboardEntry]) -> Iterator[Table]:
    whole = {each.label: each for each in entries if not each.partial}
    part = {each.label: each for each in entries if each.partial}
    for condition, name in _names(results.conditions).items():
        if ranked := _ranked(results, condition, whole):
            pair_tests = paired_differences(results, condition, ranked, {name: whole[name].owner for name in ranked})
            yield _ranking(results, condition, name, whole, ranked, pair_tests)
            if pair_tests.height:
                yield _pairs(condition, name, pair_tests)
            yield by_subtask(results, condition, name, ranked)
    if faults := faults_table(results):
        yield faults
    if part:
        yield partial_table(results, part)
    if programs := programs_table(results):
        yield programs


def _names(conditions: Sequence[str]) -> dict[str, str]:
    """Return unique file names of conditions for their tables."""
    names: dict[str, str] = {}
    for condition in conditions:
        name = common.slug(condition)
        while name in names.values():
            name += "_"
        names[condition] = name
    return names


def _ranked(results: Results, condition: str, entries: Mapping[str, LeaderboardEntry]) -> list[str]:
    """Return the entries with a score under a condition, highest mean first."""
    scored = results.episodes.filter("headline", pl.col("condition") == condition)
    found = common.means(scored.filter(pl.col("model").is_in(list(entries))), ("model",))
    return [model for (model,), _ in sorted(found.items(), key=lambda each: (-each[1].value, each[0]))]


def _ranking(
    results: Results,
    condition: str,
    name: str,
    entries: Mapping[str, LeaderboardEntry],
    ranked: Sequence[str],
    pair_tests: pl.DataFrame,
) -> Table:
    scored = results.episodes.filter("headline", pl.col("condition") == condition)
    score = common.gaps_of(scored.filter(pl.col("model").is_in(list(ranked))), ("model",), value="score")
    compared = Comparison(condition, REFERENCE) in results.comparisons
    gain = common.gaps(results, Comparison(condition, REFERENCE), ("model",)) if compared else {}
    planned = results.rows.filter("headline", pl.col("condition") == condition)
    answered, _ = endings(planned.filter(pl.col("model").is_in(list(ranked))))
    columns = (
        *columns_of(Kind.TEXT, place="Place", model="Model", submitter="Submitted by"),
        Column("score", "Score", Kind.SCORE, interval=True),
        *([Column("gain", f"Gain over {REFERENCE}", Kind.DIFFERENCE, interval=True)] if compared else []),
        *([Column("gain_pairs", "Episodes of the gain", Kind.COUNT)] if compared else []),
        Column("episodes", "Episodes", Kind.COUNT),
        Column("answered", "Answered", Kind.SHARE),
        Column("cost_usd", "Cost, USD", Kind.NUMBER, unit="US dollars"),
        Column("tokens", "Tokens an episode", Kind.NUMBER, digits=0),
        *columns_of(Kind.TEXT, after_cutoff="After its cut-off", signed="Signed"),
    )
    rows: list[tuple[Cell, ...]] = []
    for place in rank_ranges(ranked, pair_tests):
        listed, each = entries[place.model], score[place.model,]
        entry_rows = planned.filter(pl.col("model") == place.model)
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
                _sum(entry_rows["cost_usd"]),
                _tokens(entry_rows),
                _after(listed, condition, entry_rows),
                "no" if signer is None else signer.owner or "yes",
            )
        )
    columns, rows = _drop_empty_columns(columns, rows)
    notes = (_PLACES, *([common.PAIRED] if compared or pair_tests.height else []), _CLAIMED, *_repeats(results))
    title = f"Under {condition}, profile {results.profile}"
    return Table(f"ranking_{name}", title, columns, tuple(rows), notes)


def _drop_empty_columns(
    columns: Sequence[Column], rows: Sequence[tuple[Cell, ...]]
) -> tuple[tuple[Column, ...], list[tuple[Cell, ...]]]:
    kept = [place for place in range(len(columns)) if any(row[place] is not None for row in rows)]
    return tuple(columns[place] for place in kept), [tuple(row[place] for place in kept) for row in rows]


def _sum(values: pl.Series) -> float | None:
    return None if values.has_nulls() else float(values.sum())


def _tokens(rows: pl.DataFrame) -> float | None:
    tokens = (rows["total_input_tokens"] + rows["total_output_tokens"]).mean()
    return float(tokens) if isinstance(tokens, int | float) and tokens > 0 else None


def _after(listed: LeaderboardEntry, condition: str, rows: pl.DataFrame) -> str | None:
    """Return the number of episodes dated after the training cut-off that the submitter states."""
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


def _pairs(condition: str, name: str, pair_tests: pl.DataFrame) -> Table:
    columns = (
        *columns_of(Kind.TEXT, a="A", b="B"),
        Column("difference", "A - B", Kind.DIFFERENCE, interval=True),
        *columns_of(Kind.COUNT, pairs="Episodes", clusters="Clusters"),
        *columns_of(Kind.NUMBER, digits=4, p="p", p_holm="p, Holm"),
    )
    rows = tuple(
        (
            line["a"],
            line["b"],
            Estimate(line["mean"], line["low"], line["high"]),
            *(line[name] for name in ("pairs", "clusters", "p", "p_holm")),
        )
        for line in pair_tests.iter_rows(named=True)
        if line["mean"] is not None
    )
    return Table(f"pairs_{name}", f"Pairs of entries under {condition}", columns, rows, (common.PAIRED, _TESTED))
