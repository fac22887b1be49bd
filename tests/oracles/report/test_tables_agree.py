"""Tables 2 to 7 against the loops of the oracle, over random rows."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given, settings
from tests.sampling import examples

from finskillbench.reports.tables.base import Estimate, Table
from finskillbench.reports.tables.episodes.conduct import resources_table
from finskillbench.reports.tables.scores.grouped import domains_table, harnesses_table, pooled_table, subtasks_table
from finskillbench.reports.tables.scores.models import models_table

from . import clustered, tables
from .cells import HEADLINE_EXCLUDES, Cell, Row, cells, pairs
from .rows import Shape, shapes, table
from .test_results_agree import collected

pytestmark = pytest.mark.slow

QUICK = settings(max_examples=examples(30), deadline=None)
CURATED, OWN = "curated_minus_no_skill", "self_generated_minus_no_skill"


def lines(found: Table) -> list[dict[str, Any]]:
    names = [column.name for column in found.columns]
    return [dict(zip(names, row, strict=True)) for row in found.rows]


def of_models(rows: list[Row]) -> list[Row]:
    """Programs are floors and ceilings, and no models."""
    return [row for row in rows if not row["model"].startswith("baseline/")]


def same(seen: object, wanted: object) -> bool:
    value = seen.value if isinstance(seen, Estimate) else seen
    if value is None or wanted is None:
        return value is None and wanted is None
    return value == pytest.approx(wanted, abs=1e-9)


def drawn(shape: Shape) -> tuple[list[Row], list[Row]]:
    rows = table(shape)
    left = of_models(rows)
    # Something must be compared: without it the tables say so by other means.
    assume({cell.condition for cell in cells(left, "certified")} == set(shape.arms))
    return rows, left


@QUICK
@given(shape=shapes())
def test_pooled(shape: Shape) -> None:
    rows, left = drawn(shape)
    found = {line["condition"]: line for line in lines(pooled_table(collected(rows)))}
    wanted = tables.table_2(left, "certified")
    assert set(found) == set(wanted)
    for condition, line in wanted.items():
        seen = found[condition]
        assert same(seen["mean"], line["mean"]), condition
        assert same(seen["macro_mean"], line["macro"]), condition
        assert same(seen["episodes"], line["n"]), condition
        assert same(seen["difference"], line.get("delta")), condition
        assert same(seen["macro_difference"], line.get("macro_delta")), condition
        assert (seen["pairs"] or 0) == line.get("pairs", 0), condition
        if line.get("pairs"):
            differences = _differences(cells(left, "certified"), condition)
            for name, weighting in (("difference", "micro"), ("macro_difference", "macro")):
                _interval(seen[name], clustered.cr2(differences, weighting))


def _differences(found: list[Cell], treatment: str = "curated") -> list[clustered.Observation]:
    return [(pair.cluster, pair.sub_task, pair.difference) for pair in pairs(found, treatment)]


def _interval(seen: Estimate | None, known: clustered.Robust, least: float = -1.0) -> None:
    if seen is None or seen.low is None:
        return
    assert known.low is not None, "an interval where nothing can be said"
    assert known.high is not None
    assert (seen.low, seen.high) == pytest.approx((max(least, known.low), min(1.0, known.high)), abs=1e-7)


@QUICK
@given(shape=shapes())
def test_domains_and_subtasks(shape: Shape) -> None:
    rows, left = drawn(shape)
    results = collected(rows)
    domains = {line["domain"]: line for line in lines(domains_table(results))}
    by_domain = tables.table_3(left, "certified")
    ordered = [line for line in lines(subtasks_table(results)) if line["sub_task"] != HEADLINE_EXCLUDES]
    by_subtask = {line["sub_task"]: line for line in tables.table_4(left, "certified")}
    subtasks = {line["sub_task"]: line for line in ordered}
    for seen, wanted in ((domains, by_domain), (subtasks, by_subtask)):
        assert {name for name, line in seen.items() if line["episodes"]} == set(wanted)
        for name, line in wanted.items():
            for condition in tables.CONDITIONS:
                assert same(seen[name][f"mean_{condition}"], line[condition]), (name, condition)
            assert same(seen[name][CURATED], line["delta_curated"]), name
            assert same(seen[name][OWN], line["delta_self_generated"]), name
            if line["delta_curated"] is not None:
                here = [cell for cell in cells(left, "certified") if name in (cell.domain, cell.sub_task)]
                _interval(seen[name][CURATED], clustered.cr2(_differences(here)))
    gains = [line[CURATED].value if line[CURATED] else None for line in ordered]
    assert gains == sorted(gains, key=lambda gain: (gain is None, -(gain or 0.0)))


@QUICK
@given(shape=shapes())
def test_models(shape: Shape) -> None:
    rows, left = drawn(shape)
    assume(shape.arguments == 1)
    seen = {line["model"]: line for line in lines(models_table(collected(rows))) if "baseline" not in line["model"]}
    for line in tables.table_5(left, "certified"):
        found = seen[str(line["model"])]
        for condition in tables.CONDITIONS:
            assert same(found[f"mean_{condition}"], line[condition]), condition
        assert same(found[CURATED], line["delta_curated"])
        assert same(found["overall"], line["overall"])
        if line["delta_curated"] is not None:
            here = [cell for cell in cells(left, "certified") if cell.model == line["model"]]
            _interval(found[CURATED], clustered.cr2(_differences(here), "macro"))
    gains = [line[CURATED].value if line[CURATED] else None for line in seen.values()]
    assert gains == sorted(gains, key=lambda gain: (gain is None, -(gain or 0.0)))


@QUICK
@given(shape=shapes())
def test_resources(shape: Shape) -> None:
    rows, left = drawn(shape)
    seen = {line["condition"]: line for line in lines(resources_table(collected(rows)))}
    for condition, line in tables.table_6(left).items():
        for name, value in line.items():
            assert same(seen[condition][name], value), (condition, name)


@QUICK
@given(shape=shapes())
def test_harnesses(shape: Shape) -> None:
    rows, left = drawn(shape)
    assume(shape.arguments == 1)
    found = lines(harnesses_table(collected(rows)))
    for harness in {row["harness"] for row in left}:
        seen = {(line["group"], line["name"]): line for line in found if line["harness"] == harness}
        for name, line in tables.table_7(left, harness, "certified").items():
            here = seen[name]
            assert (here["episodes_reference"], here["episodes_treated"]) == (line["n_no_skill"], line["n_curated"])
            assert same(here["mean_reference"], line["no_skill"]), name
            assert same(here["mean_treated"], line["curated"]), name
            assert same(here["difference"], line["delta"]), name
            _apart(here)
            sides: list[clustered.Observation] = []
            for side, condition in (("reference", "no_skill"), ("treated", "curated")):
                scores = [
                    (cell.cluster, cell.sub_task, cell.score)
                    for cell in cells(left, "certified")
                    if cell.harness == harness and cell.condition == condition
                    if name[0] == "overall" or name[1] in (cell.domain, cell.model)
                ]
                sides += [(cluster, side, (2 if side == "treated" else -2) * score) for cluster, _, score in scores]
                if scores:
                    _interval(here[f"mean_{side}"], clustered.cr2(scores), 0.0)
            if here["difference"] is not None:
                # A regression on the two conditions; half the sum of the doubled coefficients is the difference.
                _interval(here["difference"], clustered.cr2(sides, "macro"))


def _apart(line: dict[str, Any]) -> None:
    """The dagger stands where both intervals are said and do not overlap."""
    one, other = line["mean_reference"], line["mean_treated"]
    known = [side for side in (one, other) if side is not None and side.low is not None]
    apart = len(known) == 2 and (one.high < other.low or other.high < one.low)
    assert line["apart"] == ("†" if apart else "")
