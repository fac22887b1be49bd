"""Write a report page: a folder with `index.html`, figure files, and pages of single episodes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from pathlib import Path

import polars as pl

from finskillbench.analysis.results import Results, distinct_values
from finskillbench.edition.checks.catalog import CheckReport
from finskillbench.errors import InputError
from finskillbench.reports.page.headline import CALIBRATION, Headline, headline_of
from finskillbench.reports.page.lineage import FOLDER as EPISODES
from finskillbench.reports.page.lineage import editions_of, lineage_of, write_episodes
from finskillbench.reports.page.render import index_page, pack_episodes
from finskillbench.reports.page.sections import Section, sections_of
from finskillbench.reports.page.view import ITEM, Located, View, choose, locate, many, view_of, views_of
from finskillbench.reports.read import RunRows
from finskillbench.runs.plan.items import Item
from finskillbench.runs.store.version import make_folder, write_atomic

INDEX = "index.html"
FIGURES = "figures"
_FILTERS = {
    "m": ("Model", "entry"),
    "c": ("Condition", "condition"),
    "s": ("Subtask", "sub_task"),
    "d": ("Difficulty", "difficulty"),
    "st": ("Status", "status"),
}


@dataclass(frozen=True, slots=True)
class WrittenPage:
    """File to open, number of episode pages, and folder size in bytes."""

    index: Path
    episodes: int
    size: int


def write_page(
    results: Results,
    out: Path,
    runs: Sequence[RunRows] = (),
    *,
    trajectories: int | None = None,
    truth: bool = True,
    causes: pl.DataFrame | None = None,
    validation: CheckReport | None = None,
    audit: CheckReport | None = None,
) -> WrittenPage:
    """Write the page of some results into a folder, replacing an earlier page.

    Parameters
    ----------
    results : results of any runs.
    out : folder of the page; new, empty, or with an earlier page.
    runs : sources of trajectories and editions; without them the page has neither.
    trajectories : episode pages per cell (model, condition, subtask), from worst to best; None applies the rule of
        `page.view`, 0 writes none.
    truth : show expected answers next to submitted ones.
    causes : causes of failure: columns model, arguments, condition, task_id and run_idx as in rows, and cause.
    validation, audit : check reports of the edition.

    Raises
    ------
    InputError : the folder holds other files, or cannot be written.
    """
    view = view_of(results)
    _prepare(out)
    located = locate(view, runs)
    failures = _causes(located, causes)
    chosen = choose(view, failures, located, trajectories)
    editions = editions_of(runs)
    pages = write_episodes(out, view, located, chosen, editions, truth=truth)
    suites = _suites(results, view, failures)
    files = dict(_files([section for suite in suites for section in suite.sections]))
    content: Mapping[str, object] = {
        "title": _title(view),
        "subtitle": _subtitle(view),
        "truth": truth and bool(pages),
        "calibration": CALIBRATION if view.only_programs else "",
        "suites": suites,
        "lineage": lineage_of(view, runs, editions, validation, audit),
        "trajectories": _trajectories_sentence(view, len(pages), trajectories, with_causes=causes is not None),
        "filters": _filters(with_causes=any(failures)),
        "places": _places(view, "entry"),
        "conditions": _places(view, "condition"),
        "subtasks": _places(view, "sub_task"),
        "footer": f"Written by FinSkillBench. Figures are in the folder {FIGURES}/, as SVG and PNG.",
    }
    index = index_page(content, pack_episodes(view, failures, located, pages))
    make_folder(out / FIGURES)
    for name, data in files.items():
        write_atomic(out / FIGURES / name, data)
    write_atomic(out / INDEX, index.encode())
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    return WrittenPage(out / INDEX, len(pages), size)


def _filters(*, with_causes: bool) -> list[tuple[str, str]]:
    filters = [(short, label) for short, (label, _) in _FILTERS.items()]
    return [*filters, ("ca", "Cause of failure")] if with_causes else filters


def _prepare(out: Path) -> None:
    """Create the folder, or remove the earlier page in it."""
    make_folder(out)
    strangers = sorted(path.name for path in out.iterdir() if path.name not in (INDEX, FIGURES, EPISODES))
    if strangers:
        raise InputError(f"{out}: neither empty nor a report page (it has {strangers[0]}); choose another --out")
    (out / INDEX).unlink(missing_ok=True)
    for name in (FIGURES, EPISODES):
        shutil.rmtree(out / name, ignore_errors=True)


def _causes(located: Sequence[Located | None], causes: pl.DataFrame | None) -> list[str | None]:
    """Return the cause of each row's failure."""
    if causes is None:
        return [None] * len(located)
    known = {Item(*key): cause for *key, cause in causes.select(*ITEM, "cause").iter_rows()}
    return [None if found is None else known.get(found.item) for found in located]


def _files(sections: Sequence[Section]) -> Iterator[tuple[str, bytes]]:
    for section in sections:
        for each in section.drawn:
            yield f"{each.name}.svg", each.svg().encode()
            yield f"{each.name}.png", each.png()


def _places(view: View, column: str) -> dict[str, int]:
    """Index names as in the page's data."""
    return {name: place for place, name in enumerate(distinct_values(view.rows, column))}


@dataclass(frozen=True, slots=True)
class _Suite:
    """Part of a page on one suite; `title` is empty if there is only one."""

    name: str
    title: str
    headline: Headline
    sections: Sequence[Section]


def _suites(results: Results, whole: View, failures: Sequence[str | None]) -> list[_Suite]:
    views = views_of(results)
    made: list[_Suite] = []
    for view in views:
        name = view.suite.partition(" ")[0]
        of_suite = whole.rows["suite"] == view.rows["suite"][0]
        causes = list(compress(failures, of_suite))
        sections = sections_of(view, causes, f"{name}_" if made else "")
        made.append(_Suite(name, view.suite.capitalize() if len(views) > 1 else "", headline_of(view), sections))
    return made


def _title(view: View) -> str:
    if view.only_programs:
        return f"FinSkillBench: {CALIBRATION[0].lower()}{CALIBRATION[1:]}"
    if view.main is None:
        return f"FinSkillBench: scores under {view.conditions[0]}"
    return f"FinSkillBench: {view.main.treated} against {view.main.reference}"


def _subtitle(view: View) -> str:
    """Describe the rows of the models, or of the programs if there are no models."""
    rows = view.rows.filter(pl.col("entry").is_in(view.entries))
    days = rows["ended"].drop_nulls() if "ended" in rows.columns else pl.Series([], dtype=pl.Date)
    ends = dict.fromkeys(f"{day:%Y-%m-%d}" for day in (days.min(), days.max()) if day is not None)
    when = f", run on {' to '.join(ends)}" if ends else ""
    who = f"{', '.join(view.entries[:9])}{' and others' if len(view.entries) > 9 else ''}"
    size = f"{many(rows['episode'].n_unique(), 'episode')}, {many(rows.height, 'row')}"
    return f"{who}; {size} under {', '.join(view.conditions)}{when}; profile {view.results.profile.value}"


def _trajectories_sentence(view: View, pages: int, trajectories: int | None, *, with_causes: bool) -> str:
    if not pages:
        return "This page has no trajectories; if a run has them, each row has a command that shows one."
    if pages == view.rows.height:
        return "This page has every trajectory. Cells of the heat map link to their episodes here."
    examples = "an example of each cause of failure, " if with_causes else ""
    rule = (
        f"for each cell (model, condition, subtask) the worst, {examples}the best and the median one, up to a size "
        "limit"
        if trajectories is None
        else f"{trajectories} for each cell (model, condition, subtask), from the worst to the best"
    )
    if not with_causes:
        rule += "; causes of failure were not classified"
    return (
        f"This page has {pages:,} of {view.rows.height:,} trajectories: {rule}. Every other row has a command that "
        "shows its trajectory. Cells of the heat map link to their episodes here."
    )
