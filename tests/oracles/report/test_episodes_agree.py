"""Repeats, budgets, documents and scripts, and coverage against the loops of the oracle, over random rows."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.sampling import examples

from finskillbench.analysis.intervals import DOCUMENTS_AND_SCRIPTS, effects
from finskillbench.analysis.repeats import SpendingMeasure, area_within, passes, score_within
from finskillbench.analysis.results import Comparison, difference_bounds, verdict_coverage

from . import clustered, episodes, textbook
from .cells import HEADLINE_EXCLUDES, Row, cells, mean
from .rows import ARMS, Shape, shapes, table
from .test_results_agree import collected

pytestmark = pytest.mark.slow
QUICK = settings(max_examples=examples(40), deadline=None)


def drawn(shape: Shape) -> list[Row]:
    assume(shape.arguments == 1)
    rows = [row for row in table(shape) if row["sub_task"] != HEADLINE_EXCLUDES]
    assume(any(row["status"] != "error" for row in rows))
    return rows


def grouped(rows: list[Row], *names: str) -> dict[tuple[Any, ...], list[Row]]:
    def key(row: Row) -> tuple[Any, ...]:
        return tuple(row[name] for name in names)

    return {group: list(members) for group, members in groupby(sorted(rows, key=key), key)}


@QUICK
@given(shape=shapes(), k=st.integers(1, 3), least=st.sampled_from((0.5, 1.0 - 1e-9)))
def test_passes(shape: Shape, k: int, least: float) -> None:
    rows = [row for row in drawn(shape) if row["status"] != "error"]
    known = grouped(rows, "model", "harness", "condition", "task_id")
    most = dict.fromkeys(grouped(rows, "model", "harness", "condition"), 0)
    for name, members in known.items():
        most[name[:3]] = max(most[name[:3]], len(members))
    assume(min(most.values()) >= k)
    found = passes(collected(rows), k, least).to_dicts()
    assert len(found) == len(known)
    for line in found:
        members = known[line["model"], line["harness"], line["condition"], line["episode"]]
        passed = [row["score"] >= least for row in members]
        if len(passed) < k:
            assert (line["pass_at"], line["pass_hat"]) == (None, None)
        else:
            assert line["pass_at"] == pytest.approx(textbook.pass_at(passed, k))
            assert line["pass_hat"] == pytest.approx(textbook.pass_hat(passed, k))


@QUICK
@given(
    shape=shapes(), measure=st.sampled_from((SpendingMeasure.TOKENS, SpendingMeasure.TURNS)), share=st.floats(0.2, 1.5)
)
def test_scores_within_budgets(shape: Shape, measure: SpendingMeasure, share: float) -> None:
    rows = drawn(shape)
    results = collected(rows)
    spent = [row[measure.value] for row in rows if row["status"] != "error"]
    budgets = sorted({0.5, float(min(spent)), float(sorted(spent)[len(spent) // 2]), share * max(spent)})
    of = ("model", "harness", "condition")
    scored = {group: members for group, members in grouped(rows, *of).items() if cells(members)}
    curve = score_within(results, measure, budgets).to_dicts()
    assert len(curve) == len(scored) * len(budgets)
    for line in curve:
        members = scored[tuple(line[name] for name in of)]
        assert line["mean"] == pytest.approx(episodes.within(members, measure.value, line["budget"]), abs=1e-9)
    most = share * max(spent)
    for line in area_within(results, measure, most).to_dicts():
        members = scored[tuple(line[name] for name in of)]
        assert line["mean"] == pytest.approx(episodes.area_within(members, measure.value, most), abs=1e-9)


@QUICK
@given(shape=shapes(arms=ARMS))
def test_documents_and_scripts(shape: Shape) -> None:
    rows = drawn(shape)
    found = effects(collected(rows), DOCUMENTS_AND_SCRIPTS).to_dicts()
    seen = {(line["model"], line["harness"], line["effect"]): line for line in found}
    names = {"documents": "first", "scripts": "second", "interaction": "interaction"}
    for (model, harness), members in grouped(rows, "model", "harness").items():
        wanted = episodes.factorial(cells(members))
        for effect, name in names.items():
            line = seen.get((model, harness, effect))
            assert (line is None) == (not wanted[name])
            if line is not None:
                assert line["mean"] == pytest.approx(clustered.pooled(wanted[name]), abs=1e-9)
                known = clustered.cr2(wanted[name])
                if line["error"] is not None:
                    assert line["error"] == pytest.approx(known.error, rel=1e-6)


@QUICK
@given(shape=shapes())
def test_coverage_and_bounds(shape: Shape) -> None:
    rows = drawn(shape)
    results = collected(rows)
    of = ("model", "harness", "condition")
    found = {tuple(line[name] for name in of): line for line in verdict_coverage(results).to_dicts()}
    for group, members in grouped(rows, *of).items():
        line = found[group]
        worst, best = episodes.bounds(members)
        assert (line["rows"], line["share"]) == (len(members), pytest.approx(episodes.coverage(members)))
        assert (line["worst"], line["best"]) == (pytest.approx(worst), pytest.approx(best))
        scored = mean([cell.score for cell in cells(members)])
        assert line["mean"] is None if scored is None else line["mean"] == pytest.approx(scored)
    changes = difference_bounds(results, Comparison("curated", "no_skill"))
    seen = {(line["model"], line["harness"]): line for line in changes.to_dicts()}
    for group, members in grouped(rows, "model", "harness").items():
        wanted = episodes.difference_bounds(members, "curated", "no_skill")
        assert (group in seen) == (wanted is not None)
        if wanted is not None:
            assert (seen[group]["worst"], seen[group]["best"]) == pytest.approx(wanted)
