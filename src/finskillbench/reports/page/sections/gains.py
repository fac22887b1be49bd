"""Figures of differences between conditions: by subtask, domain and model, and against the mean without skills."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import polars as pl

from finskillbench.analysis.results import Comparison, distinct_values
from finskillbench.reports.figures.forest import Figure, ForestLine, draw_forest
from finskillbench.reports.figures.scatter import Dot, Plane, draw_scatter
from finskillbench.reports.figures.svg import Drawing
from finskillbench.reports.page.headline import MeanEstimate, estimates
from finskillbench.reports.page.view import View, many
from finskillbench.reports.tables.base import Cell, Column, Estimate, Kind, Table, columns_of

_COLUMNS = (
    *columns_of(Kind.TEXT, of="Of", name="Name", comparison="Comparison"),
    Column("difference", "Difference", Kind.DIFFERENCE, interval=True),
    *columns_of(Kind.COUNT, pairs="Pairs", clusters="Clusters"),
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
    yield by_group(view, view.main)
    if len(view.entries) > 1 and not view.only_programs:
        yield by_model(view, view.main)
    if not view.only_programs:
        yield baseline_and_gain(view, view.main)


def by_group(view: View, main: Comparison) -> Figure:
    """Draw differences pooled, by domain and by subtask, the largest first."""
    by_comparison = {each: _by_groups(view, each) for each in view.compared}
    names = {"pooled": ["headline"], "domain": distinct_values(_headline(view.contending), "domain")}
    found = by_comparison[main]["subtask"]
    names["subtask"] = sorted(found, key=lambda name: -found[name].mean.value)
    sections, rows = list[tuple[str, list[ForestLine]]](), list[tuple[Cell, ...]]()
    pooled = by_comparison[main]["pooled"].get("headline")
    titles = {
        "pooled": f"Headline, {many(pooled.pairs if pooled else 0, 'pair')}",
        "domain": "By domain, headline",
        "subtask": "By subtask",
    }
    for of, members in names.items():
        lines: list[ForestLine] = []
        for name in members:
            line = [by_comparison[each][of].get(name) for each in view.compared]
            lines.append(_line(name, line, bold=of == "pooled"))
            compared = zip(view.compared, line, strict=True)
            rows += [(of, name, _named(each), *(one or _ABSENT)) for each, one in compared]
        sections.append((titles[of], lines))
    title = f"Difference between conditions, {view.named(view.pooled)}"
    notes = (view.population(view.paired(main)), _INTERVALS)
    table = Table("gains_by_group", title, _COLUMNS, tuple(rows), notes)
    return Figure(table, _description(table), _forest(view, sections))


def by_model(view: View, main: Comparison) -> Figure:
    """Draw headline differences by model, the largest first."""
    by_comparison = {each: estimates(_headline(view.paired(each, view.entries)), ["entry"]) for each in view.compared}
    of_main = by_comparison[main]
    order = sorted(view.entries, key=lambda name: -of_main[name].mean.value if name in of_main else 9.0)
    drawn = [name for name in order if name in view.drawn]
    lines = [_line(name, [by_comparison[each].get(name) for each in view.compared]) for name in drawn]
    rows = [
        ("model", name, _named(each), *(by_comparison[each].get(name) or _ABSENT))
        for name in order
        for each in view.compared
    ]
    population = view.population(_headline(view.paired(main, view.entries)), view.entries)
    notes = (population, _INTERVALS, *view.drawn_footnotes)
    table = Table("gains_by_model", "Difference between conditions by model, headline", _COLUMNS, tuple(rows), notes)
    return Figure(table, _description(table), _forest(view, [("Headline", lines)]))


def baseline_and_gain(view: View, main: Comparison) -> Figure:
    """Draw the gain of every model and subtask against its mean without skills."""
    paired = view.paired(main, view.entries)
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
    reference = main.reference
    columns = (
        *columns_of(Kind.TEXT, domain="Domain", sub_task="Subtask", model="Model"),
        Column("baseline", f"Mean under {reference}", Kind.SCORE),
        Column("gain", f"Difference ({_named(main)})", Kind.DIFFERENCE),
        Column("pairs", "Pairs", Kind.COUNT),
    )
    notes = (view.population(paired, view.entries), "The dashed line is the maximum gain, to a mean of 1.")
    title = f"Gain against the mean under {reference}"
    table = Table("baseline_and_gain", title, columns, tuple(cells.iter_rows()), notes)
    low, high = min([0.0, *(dot.y for dot in dots)]), min(max([0.2, *(dot.y * 1.2 for dot in dots)]), 1.0)
    plane = Plane(
        f"mean score under {reference}",
        f"gain under {main.treated}",
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
        f"{reference}, the vertical axis the gain under {main.treated}. {up} of them gained, "
        f"{sum(dot.y < 0 for dot in dots)} lost."
    )
    return Figure(table, description, partial(draw_scatter, dots, plane))


def _line(name: str, found: Sequence[MeanEstimate | None], *, bold: bool = False) -> ForestLine:
    means, signs = [each and each.mean for each in found], [each and each.p for each in found]
    return ForestLine(name, means, bold, signs)


def _forest(view: View, sections: Sequence[tuple[str, Sequence[ForestLine]]]) -> Callable[[float], Drawing]:
    axis = f"difference in mean score from {view.compared[0].reference}, with 95 % interval"
    return partial(draw_forest, sections, [_named(each) for each in view.compared], axis)


def _by_groups(view: View, comparison: Comparison) -> dict[str, dict[str, MeanEstimate]]:
    paired = view.paired(comparison)
    return {
        "pooled": estimates(_headline(paired).with_columns(all=pl.lit("headline")), ["all"]),
        "domain": estimates(_headline(paired), ["domain"]),
        "subtask": estimates(paired, ["sub_task"]),
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
