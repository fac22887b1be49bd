"""Figures of differences between conditions: by subtask, domain and model, and against the mean without skills."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import polars as pl

from finskillbench.analysis.results import distinct_values
from finskillbench.reports.figures.forest import Figure, ForestLine, draw_forest
from finskillbench.reports.figures.scatter import Dot, Plane, draw_scatter
from finskillbench.reports.figures.svg import Drawing
from finskillbench.reports.page.headline import MeanEstimate, estimates
from finskillbench.reports.page.view import View, many
from finskillbench.reports.tables.base import Cell, Column, Estimate, Kind, Table

_COLUMNS = (
    Column("of", "Of"),
    Column("name", "Name"),
    Column("comparison", "Comparison"),
    Column("difference", "Difference", Kind.DIFFERENCE, interval=True),
    Column("pairs", "Pairs", Kind.COUNT),
    Column("clusters", "Clusters", Kind.COUNT),
    Column("sign_p", "Sign test p", Kind.NUMBER, digits=4),
)
_INTERVALS = (
    "Differences are paired by episode; 95 % intervals are clustered by what episodes share (market date, mandate, "
    "company). [n/a] is an interval that cannot be computed; p is then from the exact sign test over clusters."
)
_ABSENT = (None,) * 4


def gain_figures(view: View) -> Iterator[Figure]:
    """Yield the figures of the section; none if only one condition was run."""
    if view.main is None or view.paired(view.main).is_empty():
        return
    yield by_group(view)
    if len(view.entries) > 1 and not view.only_programs:
        yield by_model(view)
    if not view.only_programs:
        yield baseline_and_gain(view)


def by_group(view: View) -> Figure:
    """Draw differences pooled, by domain and by subtask, the largest first."""
    by_comparison = {each: _by_groups(view, each) for each in view.compared}
    names = {"pooled": ["headline"], "domain": distinct_values(_headline(view.contending), "domain")}
    main = by_comparison[view.compared[0] if view.main is None else view.main]["sub_task"]
    names["subtask"] = sorted(main, key=lambda name: -main[name].mean.value)
    sections, rows = list[tuple[str, list[ForestLine]]](), list[tuple[Cell, ...]]()
    assert view.main is not None  # checked by the caller
    pooled = by_comparison[view.main]["pooled"].get("headline")
    titles = {
        "pooled": f"Headline, {many(pooled.pairs if pooled else 0, 'pair')}",
        "domain": "By domain, headline",
        "subtask": "By subtask",
    }
    keys = {"pooled": "pooled", "domain": "domain", "subtask": "sub_task"}
    for of, members in names.items():
        lines: list[ForestLine] = []
        for name in members:
            found = [by_comparison[each][keys[of]].get(name) for each in view.compared]
            lines.append(_line(name, found, bold=of == "pooled"))
            rows += [
                (of, name, _named(each), *(one or _ABSENT)) for each, one in zip(view.compared, found, strict=True)
            ]
        sections.append((titles[of], lines))
    title = f"Difference between conditions, {view.named(view.pooled)}"
    notes = (view.population(view.paired(view.main)), _INTERVALS)
    table = Table("gains_by_group", title, _COLUMNS, tuple(rows), notes)
    return Figure(table, _description(table), _forest(view, sections))


def by_model(view: View) -> Figure:
    """Draw headline differences by model, the largest first."""
    by_comparison = {each: estimates(_headline(view.paired(each, view.entries)), ["entry"]) for each in view.compared}
    main = by_comparison[view.main or view.compared[0]]
    order = sorted(view.entries, key=lambda name: -main[name].mean.value if name in main else 9.0)
    lines = [
        _line(name, [by_comparison[each].get(name) for each in view.compared]) for name in order if name in view.drawn
    ]
    rows = [
        ("model", name, _named(each), *(by_comparison[each].get(name) or _ABSENT))
        for name in order
        for each in view.compared
    ]
    assert view.main is not None  # checked by the caller
    population = view.population(_headline(view.paired(view.main, view.entries)), view.entries)
    notes = (population, _INTERVALS, *view.drawn_footnotes)
    table = Table("gains_by_model", "Difference between conditions by model, headline", _COLUMNS, tuple(rows), notes)
    return Figure(table, _description(table), _forest(view, [("Headline", lines)]))


def baseline_and_gain(view: View) -> Figure:
    """Draw the gain of every model and subtask against its mean without skills."""
    assert view.main is not None  # checked by the caller
    paired = view.paired(view.main, view.entries)
    cells = (
        paired.group_by("domain", "sub_task", "entry", maintain_order=True)
        .agg(pl.col("reference").mean(), pl.col("difference").mean(), pairs=pl.len())
        .sort("domain", "sub_task", "entry", maintain_order=True)
    )
    domains = distinct_values(paired, "domain")
    dots = [
        Dot(before, gain, domains.index(domain) + 1, "", f"{entry}, {name}: {before:.3f} before, {gain:+.3f}")
        for domain, name, entry, before, gain, _ in cells.iter_rows()
    ]
    reference = view.main.reference
    columns = (
        Column("domain", "Domain"),
        Column("sub_task", "Subtask"),
        Column("model", "Model"),
        Column("baseline", f"Mean under {reference}", Kind.SCORE),
        Column("gain", f"Difference ({_named(view.main)})", Kind.DIFFERENCE),
        Column("pairs", "Pairs", Kind.COUNT),
    )
    table = Table(
        "baseline_and_gain",
        f"Gain against the mean under {reference}",
        columns,
        tuple(cells.iter_rows()),
        (view.population(paired, view.entries), "The dashed line is the maximum gain, to a mean of 1."),
    )
    low, high = min([0.0, *(dot.y for dot in dots)]), min(max([0.2, *(dot.y * 1.2 for dot in dots)]), 1.0)
    plane = Plane(
        f"mean score under {reference}",
        f"gain under {view.main.treated}",
        (0.0, 1.0),
        (low - 0.03, high),
        bound=[(1.0 - high, high), (1.0, 0.0)],
        bound_kind="level",
        series=domains,
        first=1,
    )
    up = sum(dot.y > 0 for dot in dots)
    description = (
        f"A point for each of {len(dots)} pairs of model and subtask: the horizontal axis is the mean under "
        f"{reference}, the vertical axis the gain under {view.main.treated}. {up} of them gained, "
        f"{sum(dot.y < 0 for dot in dots)} lost."
    )
    return Figure(table, description, partial(draw_scatter, dots, plane))


def _line(name: str, found: Sequence[MeanEstimate | None], *, bold: bool = False) -> ForestLine:
    means, signs = [each and each.mean for each in found], [each and each.p for each in found]
    return ForestLine(name, means, bold, signs)


def _forest(view: View, sections: Sequence[tuple[str, Sequence[ForestLine]]]) -> Callable[[float], Drawing]:
    axis = f"difference in mean score from {view.compared[0].reference}, with 95 % interval"
    return partial(draw_forest, sections, [_named(each) for each in view.compared], axis)


def _by_groups(view: View, comparison: tuple[str, str]) -> dict[str, dict[str, MeanEstimate]]:
    paired = view.paired(next(each for each in view.compared if each == comparison))
    return {
        "pooled": estimates(_headline(paired).with_columns(all=pl.lit("headline")), ["all"]),
        "domain": estimates(_headline(paired), ["domain"]),
        "sub_task": estimates(paired, ["sub_task"]),
    }


def _headline(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.filter(pl.col("headline"))


def _named(comparison: tuple[str, str]) -> str:
    return f"{comparison[0]} − {comparison[1]}"


def _description(table: Table) -> str:
    """Describe the first estimate and the range of the others."""
    known = [(str(row[1]), row[3]) for row in table.rows if isinstance(row[3], Estimate)]
    if not known:
        return "No difference is available: no episode has a score under both conditions."
    name, first = known[0]
    most, least = max(known, key=lambda one: one[1].value), min(known, key=lambda one: one[1].value)
    return (
        f"A forest plot of {len(known)} differences with their intervals. {name}: {first.value:+.3f}. The largest is "
        f"{most[1].value:+.3f} ({most[0]}), the smallest {least[1].value:+.3f} ({least[0]})."
    )
