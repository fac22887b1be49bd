"""Outcomes analysis: scores with intervals, challengers, resources, stability over repeats, sensitivity to choices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import polars as pl

from finskillbench.analysis.intervals import Method, Weighting, estimate_means
from finskillbench.analysis.results import CURATED, Results, collect, pairs, verdict_coverage
from finskillbench.episode import Profile
from finskillbench.publish.pack.chapters import Chapter, captioned
from finskillbench.reports.tables import common
from finskillbench.reports.tables.base import Cell, Column, Estimate, Kind, Table, columns_of
from finskillbench.reports.tables.episodes.conduct import repeats_table
from finskillbench.reports.tables.scores.models import significance_table
from finskillbench.reports.tables.scores.overview import floors_table

GROUP = ("model", "harness", "condition")
HEADLINE_SCORES = "scored episodes of the headline subtasks, repeats averaged; unit: score, 0 to 1"
_POOLED = f"{HEADLINE_SCORES}; models and episodes weigh alike"
FEWEST_CLUSTERS = 20
"""Clusters below which an interval is marked.

Cameron and Miller (2015, J. Human Resources 50:317) call fewer than 20 to 50 balanced clusters few, and more if they
are unequal. Carter, Schnepel and Steigerwald (2017, Rev. Econ. Stat. 99:698) use the effective number of unequal ones.
The lower end applies, since CR2 with Satterthwaite's degrees of freedom corrects for few clusters:
`benchmarks/intervals.py` measures a coverage of 0.94 or more from 5 clusters on for normal noise, 0.89 for skewed
noise.
"""
_BOUNDS = (
    "Worst and best: the mean score, had every row without a verdict scored 0, or 1. Effective clusters: the number of "
    "equal clusters that would carry the same information."
)
_TAKEN = {
    "total_input_tokens": ("Tokens per row", 0),
    "latency_seconds": ("Latency per row, s", 2),
    "cost_usd": ("Cost per row, USD", 4),
}
"""Quantities by column with title and decimals; output tokens are added to those of the input."""
_P = (
    "p: two-sided cluster-robust t test. Holm and FDR (Benjamini-Hochberg): adjusted for the number of subtasks with a "
    "p. Detectable: smallest true difference found with a power of 80 %; above 1, none is. n/a: the difference varies "
    "too little over clusters for a test."
)


def mean_scores(results: Results) -> pl.DataFrame:
    """Return `verdict_coverage` and mean score by model, harness and condition; groups without a score have nulls."""
    chosen = common.without_baselines(results)
    means = estimate_means(chosen.episodes, "score", GROUP)
    groups = verdict_coverage(chosen, GROUP).drop("mean").join(means, on=GROUP, how="left", maintain_order="left")
    return groups.with_columns(pl.col("pairs", "clusters").fill_null(0))


def results_chapter(results: Results) -> Chapter:
    """Return every result with its interval."""
    paragraphs = (
        "Scores lie between 0 and 1. Rows of status error have no score and enter no mean. Intervals are 95 % "
        "cluster-robust t intervals: CR2 variance with Satterthwaite degrees of freedom (Bell and McCaffrey 2002; "
        "Imbens and Kolesar 2016). Differences are paired: the same episodes under both conditions. Intervals "
        "end at the limits of the scale. No interval is stated (n/a) for fewer than three clusters, or where scores "
        "vary too little.",
    )
    by_subtask = _by(results, "sub_task", common.every_subtask)
    few = sum(isinstance(each, int) and each < FEWEST_CLUSTERS for each in by_subtask.column("clusters"))
    marked = f"{few} of {len(by_subtask.rows)} subtasks have fewer than {FEWEST_CLUSTERS} clusters: read with caution."
    tables = (
        *captioned(_summary(results), "Headline score by model and condition", HEADLINE_SCORES, _BOUNDS),
        *captioned(_by(results, "domain", common.headline_only), "Mean score by domain", _POOLED),
        *captioned(
            by_subtask, "Mean score by subtask", _POOLED.replace("the headline subtasks", "each subtask"), marked
        ),
        *captioned(
            _resources(results),
            "Resources by model and condition",
            "rows of the headline subtasks that did not end in an error; unit: mean over the rows that report it",
        ),
    )
    population = "paired scored episodes of each subtask, all models under validation; unit: difference of scores"
    appendix = captioned(significance_table(results), "Significance of differences by subtask", population, _P)
    return Chapter("results", "Outcomes analysis", paragraphs, tables=tables, appendix=appendix)


def _summary(results: Results) -> Table:
    columns = (
        *(common.MODEL, common.HARNESS, common.CONDITION),
        Column("mean", "Mean score, 95 % interval", Kind.SCORE, interval=True),
        *columns_of(Kind.SCORE, worst="Worst", best="Best"),
        *columns_of(Kind.COUNT, pairs="Episodes", clusters="Clusters"),
        Column("effective_clusters", "Effective clusters", Kind.NUMBER, digits=1),
        Column("rows", "Rows", Kind.COUNT),
        Column("share", "Rows with a verdict", Kind.SHARE),
    )
    return common.table_from_frame("summary", "", mean_scores(results), columns, ())


def _by(results: Results, by: str, scope: common.Scope) -> Table:
    """Return mean scores of the models under validation by domain or subtask, with a column per condition."""
    episodes = common.compared(results, results.episodes, scope)
    means: dict[tuple[str, str], Estimate] = {}
    for line in estimate_means(episodes, "score", [by, "condition"]).iter_rows(named=True):
        means[line[by], line["condition"]] = Estimate(line["mean"], line["low"], line["high"])
    sizes = {name: (part["episode"].n_unique(), part["cluster"].n_unique()) for (name,), part in episodes.group_by(by)}
    columns = (
        Column(by, {"domain": "Domain", "sub_task": "Subtask"}[by]),
        *columns_of(Kind.COUNT, episodes="Episodes", clusters="Clusters"),
        *(
            Column(f"mean_{common.slug(name)}", f"{name}, 95 % interval", Kind.SCORE, interval=True)
            for name in results.conditions
        ),
    )
    rows = tuple(
        (name, *sizes[name], *(means.get((name, condition)) for condition in results.conditions))
        for name in common.order_of(results, by)
        if name in sizes
    )
    return Table(f"by_{by}", "", columns, rows)


def _resources(results: Results) -> Table:
    """Return means over the rows that report a quantity, with their share."""
    rows = common.compared(results, results.rows).filter(~pl.col("failed"))
    absent = {*_TAKEN, "total_output_tokens"} - {*rows.columns}
    rows = rows.with_columns(**{name: pl.lit(None, pl.Float64) for name in absent}).with_columns(
        total_input_tokens=pl.col("total_input_tokens") + pl.col("total_output_tokens")
    )
    lines: list[tuple[Cell, ...]] = [
        (
            str(model),
            str(condition),
            part.height,
            *(_reported(part[name], digits) for name, (_, digits) in _TAKEN.items()),
        )
        for (model, condition), part in rows.group_by("model", "condition", maintain_order=True)
    ]
    columns = (
        *(common.MODEL, common.CONDITION),
        Column("rows", "Rows", Kind.COUNT),
        *(Column(name, f"{title} (rows reporting it)") for name, (title, _) in _TAKEN.items()),
    )
    return Table("resources", "", columns, tuple(lines))


def _reported(values: pl.Series, digits: int) -> str:
    mean, share = values.cast(pl.Float64).mean(), 1.0 - values.null_count() / values.len()
    return f"{mean:,.{digits}f} ({100 * share:.0f} %)" if isinstance(mean, float) else "not reported (0 %)"


def stability_chapter(results: Results) -> Chapter:
    """Return the variation of results over repeats of the same episode."""
    tables = captioned(
        repeats_table(results),
        "Variation over repeats",
        "scored rows of the headline subtasks; unit: variance of scores, share of episodes",
        "Within and between: variance within and between episodes. Alike: intra-class correlation. pass@k: at least "
        "one of k repeats earns full marks. pass^k: all do.",
    )
    if tables:
        paragraph = "Episodes were repeated. Variation within an episode is not attributable to its difficulty."
    else:
        paragraph = "Not assessed: no episode was run more than once. Runs with --epochs 3 or more assess it."
    return Chapter("stability", "Stability", (paragraph,), tables=tables)


def sensitivity_chapter(rows: pl.DataFrame, results: Results) -> Chapter:
    """Return the headline under other profiles, weights and interval methods, and without each model."""
    paragraphs = (
        "The headline is restated under alternative choices: scoring profile, weights of subtasks, interval method, "
        "and the set of models.",
    )
    tables = (
        *captioned(
            _profiles(rows, results),
            "Headline score under each scoring profile",
            _POOLED,
            "A subtask without a profile is scored under the first of certified, strict and paper that it has.",
        ),
        *captioned(
            _differences(rows, results),
            "Headline difference under alternative choices",
            "paired scored episodes of the headline subtasks; unit: difference of scores",
        ),
    )
    return Chapter("sensitivity", "Sensitivity", paragraphs, tables=tables)


def _profiles(rows: pl.DataFrame, results: Results) -> Table:
    lines: list[tuple[Cell, ...]] = []
    for profile in Profile:
        of = results if profile is results.profile else collect(rows, profile, results.excluded)
        means = estimate_means(common.compared(of, of.episodes), "score", ["condition"], bounds=(0.0, 1.0))
        for line in means.iter_rows(named=True):
            score = Estimate(line["mean"], line["low"], line["high"])
            lines.append((profile.value, line["condition"], line["pairs"], score))
    columns = (
        Column("profile", "Profile"),
        common.CONDITION,
        Column("episodes", "Episodes", Kind.COUNT),
        Column("mean", "Mean score, 95 % interval", Kind.SCORE, interval=True),
    )
    return Table("profiles", "", columns, tuple(lines))


def _differences(rows: pl.DataFrame, results: Results) -> Table:
    columns = (
        *columns_of(Kind.TEXT, choice="Choice", comparison="Comparison"),
        Column("difference", "Difference, 95 % interval", Kind.DIFFERENCE, interval=True),
        Column("pairs", "Pairs", Kind.COUNT),
    )
    lines = (
        (choice, f"{comparison.treated} - {comparison.reference}", *figures)
        for choice, of, method, weighting in _choices(rows, results)
        for comparison in of.comparisons
        for figures in _figures(common.compared(of, pairs(of, comparison)), method, weighting)
    )
    return Table("choices", "", columns, tuple(lines))


def _choices(rows: pl.DataFrame, results: Results) -> Iterator[tuple[str, Results, Method, Weighting]]:
    yield "as reported", results, Method.T, Weighting.MICRO
    yield "equal weight of subtasks", results, Method.T, Weighting.MACRO
    yield "percentile bootstrap of clusters", results, Method.PERCENTILE, Weighting.MICRO
    yield "BCa bootstrap of clusters", results, Method.BCA, Weighting.MICRO
    models = common.hosted_models(results)
    for model in models if len(models) > 1 else ():
        without = collect(rows, results.profile, (*results.excluded, model))
        yield f"without {model}", without, Method.T, Weighting.MICRO


def _figures(frame: pl.DataFrame, method: Method, weighting: Weighting) -> Iterator[tuple[Estimate, int]]:
    if not frame.is_empty():
        line = estimate_means(frame, method=method, weighting=weighting).row(0, named=True)
        yield Estimate(line["mean"], line["low"], line["high"]), line["pairs"]


_PAIRED = "headline episodes scored for both; unit: difference of scores, model less challenger"


class Challenge(NamedTuple):
    """A challenger against a model on the episodes that both have a score for."""

    model: str
    condition: str
    kind: str
    challenger: str
    difference: Estimate
    pairs: int
    clusters: int

    @property
    def finding(self) -> str:
        """Return the side that scored higher beyond the 95 % interval, if any."""
        low, high = self.difference.low, self.difference.high
        if low is None or high is None:
            return "no interval"
        return "model higher" if low > 0 else "challenger higher" if high < 0 else "not distinguished"


def challengers_chapter(results: Results, published: Results | None) -> Chapter:
    """Return the strongest challenger of each kind, with all of them in the appendix."""
    found = list(_challenges(results))
    strongest: dict[tuple[str, str, str], Challenge] = {}
    for each in sorted(found, key=lambda one: one.difference.value):
        strongest.setdefault((each.model, each.condition, each.kind), each)
    best = [each for each in found if each in strongest.values()]
    programs = bool(results.rows["program"].any())
    paragraphs = (
        "Each model is compared, under its main condition (curated, where run), with every other model and baseline "
        "program, and with itself under every other condition. A negative difference favours the challenger. "
        "Intervals are not adjusted for the number of challengers.",
        *([] if found else ["Not assessed: the runs hold no other model, condition or baseline."]),
        *([] if programs else ["No baseline program was run; scores have no reference level (--model baseline/...)."]),
    )
    floors = ()
    if programs:
        table = floors_table(results, published)
        population = "scored episodes of each subtask; unit: score, 0 to 1"
        floors = captioned(table, "Baseline programs by subtask", population, table.notes[0])
    tables = (*captioned(_challenges_table(best), "Strongest challenger of each kind", _PAIRED), *floors)
    return Chapter(
        "challengers",
        "Challenger analysis",
        paragraphs,
        tables=tables,
        appendix=captioned(_challenges_table(found), "All challengers", _PAIRED) if len(found) > len(best) else (),
    )


def _challenges_table(found: list[Challenge]) -> Table:
    columns = (
        *columns_of(Kind.TEXT, model="Model", condition="Condition"),
        Column("kind", "Kind"),
        Column("challenger", "Challenger"),
        Column("difference", "Difference, 95 % interval", Kind.DIFFERENCE, interval=True),
        *columns_of(Kind.COUNT, pairs="Pairs", clusters="Clusters"),
        Column("finding", "Finding"),
    )
    return Table("challengers", "", columns, tuple((*each, each.finding) for each in found))


def _challenges(results: Results) -> Iterator[Challenge]:
    models = common.hosted_models(results)
    sides: dict[tuple[str, str], dict[str, pl.DataFrame]] = {}
    for group, part in results.episodes.filter("headline").group_by(GROUP, maintain_order=True):
        model, harness, condition = map(str, group)
        sides.setdefault((model, harness), {})[condition] = part
    for entry, by_condition in sides.items():
        if entry[0] not in models:
            continue
        main = CURATED if CURATED in by_condition else list(by_condition)[-1]
        name = _named(results, *entry)
        for other, parts in sides.items():
            if other == entry:
                for condition in (each for each in parts if each != main):
                    yield from _challenge(by_condition[main], parts[condition], (name, main, "condition", condition))
                continue
            condition = main if main in parts else next(iter(parts))
            under = "" if condition == main else f" under {condition}"
            kind = "model" if other[0] in models else "baseline"
            who = f"{_named(results, *other)}{under}"
            yield from _challenge(by_condition[main], parts[condition], (name, main, kind, who))


def _named(results: Results, model: str, harness: str) -> str:
    return model if results.rows["harness"].n_unique() == 1 else f"{model} in {harness}"


def _challenge(scored: pl.DataFrame, other: pl.DataFrame, who: tuple[str, str, str, str]) -> Iterator[Challenge]:
    both = scored.join(other.select("episode", challenger="score"), on="episode", how="inner", maintain_order="left")
    if both.height:
        line = estimate_means(both.with_columns(difference=pl.col("score") - pl.col("challenger"))).row(0, named=True)
        difference = Estimate(line["mean"], line["low"], line["high"])
        yield Challenge(*who, difference, line["pairs"], line["clusters"])
