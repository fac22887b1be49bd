"""What skills changed: by subtask, domain and model, and against what was there without them."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from finskillbench.analysis.results import distinct
from finskillbench.reports.figures.base import Figure
from finskillbench.reports.figures.forest import ForestLine, draw_forest
from finskillbench.reports.figures.scatter import Dot, Plane, draw_scatter
from finskillbench.reports.page.estimates import Said, estimates
from finskillbench.reports.page.view import View, whose_of
from finskillbench.reports.tables.base import Cell, Column, Estimate, Kind, Table

_COLUMNS = (
    Column("of", "Of"),
    Column("name", "Name"),
    Column("comparison", "Comparison"),
    Column("difference", "Difference", Kind.DIFFERENCE, interval=True),
    Column("pairs", "Pairs", Kind.COUNT),
    Column("clusters", "Clusters", Kind.COUNT),
)
_INTERVALS = (
    "Differences are paired by episode; 95 % intervals count what episodes share (market date, mandate, company) once. "
    "Where none can be said there is no line, and - stands for it."
)


def gain_figures(view: View) -> Iterator[Figure]:
    """The figures of the section; none where only one condition was run."""
    if view.main is None or view.paired(view.main).is_empty():
        return
    yield by_group(view)
    yield by_model(view)
    yield baseline_and_gain(view)


def by_group(view: View) -> Figure:
    """Differences over all that are compared: pooled, by domain and by subtask, the largest first."""
    said = {each: _by_groups(view, each) for each in view.compared}
    names = {"pooled": ["headline"], "domain": distinct(view.contending, "domain")}
    main = said[view.compared[0] if view.main is None else view.main]["sub_task"]
    names["subtask"] = sorted(main, key=lambda name: -main[name].mean.value)
    sections, rows = list[tuple[str, list[ForestLine]]](), list[tuple[Cell, ...]]()
    titles = {"pooled": "Headline, all episodes", "domain": "By domain", "subtask": "By subtask"}
    keys = {"pooled": "pooled", "domain": "domain", "subtask": "sub_task"}
    for of, members in names.items():
        lines: list[ForestLine] = []
        for name in members:
            found = [said[each][keys[of]].get(name) for each in view.compared]
            lines.append(ForestLine(name, [one.mean if one else None for one in found], of == "pooled"))
            rows += [
                (of, name, _named(each), *(one if one else (None, None, None)))
                for each, one in zip(view.compared, found, strict=True)
            ]
        sections.append((titles[of], lines))
    table = Table("gains_by_group", f"What skills changed, over {whose_of(view)}", _COLUMNS, tuple(rows), (_INTERVALS,))
    return Figure(table, _words(table), draw_forest(sections, [_named(each) for each in view.compared], _axis(view)))


def by_model(view: View) -> Figure:
    """Differences of the headline by model, the largest first."""
    said = {each: estimates(_headline(view.paired(each, view.entries)), ["entry"]) for each in view.compared}
    main = said[view.main or view.compared[0]]
    order = sorted(view.entries, key=lambda name: -main[name].mean.value if name in main else 9.0)
    lines = [
        ForestLine(name, [said[each][name].mean if name in said[each] else None for each in view.compared])
        for name in order
        if name in view.drawn
    ]
    rows = [
        ("model", name, _named(each), *(said[each].get(name) or (None, None, None)))
        for name in order
        for each in view.compared
    ]
    title = f"What skills changed, by {'program' if view.only_programs else 'model'} (headline)"
    table = Table("gains_by_model", title, _COLUMNS, tuple(rows), (_INTERVALS, *view.drawn_note))
    drawing = draw_forest(
        [("All episodes of the headline", lines)], [_named(each) for each in view.compared], _axis(view)
    )
    return Figure(table, _words(table), drawing)


def baseline_and_gain(view: View) -> Figure:
    """The gain of every model on every subtask against its mean without skills."""
    assert view.main is not None  # the caller looked
    paired = view.paired(view.main, view.entries)
    cells = (
        paired.group_by("domain", "sub_task", "entry", maintain_order=True)
        .agg(pl.col("reference").mean(), pl.col("difference").mean(), pairs=pl.len())
        .sort("domain", "sub_task", "entry", maintain_order=True)
    )
    domains = distinct(paired, "domain")
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
        ("The dashed line is the most that can be gained: a mean of 1.",),
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
    words = (
        f"A point for each of {len(dots)} pairs of model and subtask: across, its mean under {reference}; up, what "
        f"{view.main.treated} added. {up} of them gained, {sum(dot.y < 0 for dot in dots)} lost."
    )
    return Figure(table, words, draw_scatter(dots, plane))


def _by_groups(view: View, comparison: tuple[str, str]) -> dict[str, dict[str, Said]]:
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


def _axis(view: View) -> str:
    return f"difference in mean score from {view.compared[0].reference}, with 95 % interval"


def _words(table: Table) -> str:
    """The estimates of the first line and how the others spread."""
    known = [(str(row[1]), row[3]) for row in table.rows if isinstance(row[3], Estimate)]
    if not known:
        return "No difference can be said: no episode has a score under both conditions."
    name, first = known[0]
    most, least = max(known, key=lambda one: one[1].value), min(known, key=lambda one: one[1].value)
    return (
        f"A forest plot of {len(known)} differences with their intervals. {name}: {first.value:+.3f}. The largest is "
        f"{most[1].value:+.3f} ({most[0]}), the smallest {least[1].value:+.3f} ({least[0]})."
    )
