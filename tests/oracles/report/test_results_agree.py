"""What rows become: scored episodes and pairs, against the loops of the oracle."""

from __future__ import annotations

from collections import Counter

import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.sampling import examples

from finskillbench.analysis.results import Comparison, Results, collect, pairs
from finskillbench.episode import Profile
from finskillbench.runs.store.rows import SCHEMA

from . import cells as oracle
from .rows import Shape, shapes, table

pytestmark = pytest.mark.slow

PROFILES = st.sampled_from(tuple(Profile))


def collected(rows: list[oracle.Row], profile: str = "certified", exclude: tuple[str, ...] = ()) -> Results:
    return collect(pl.DataFrame(rows, schema=dict(SCHEMA)), Profile(profile), exclude)


def rounded(values: list[float]) -> Counter[float]:
    return Counter(round(value, 9) + 0.0 for value in values)


@settings(max_examples=examples(60), deadline=None)
@given(shape=shapes(), profile=PROFILES, exclude=st.sampled_from(((), ("lab/model-1",))))
def test_episodes_and_pairs_are_those_of_the_rows(shape: Shape, profile: str, exclude: tuple[str, ...]) -> None:
    rows = table(shape)
    left = {row["model"] for row in rows} - set(exclude)
    assume(left and set(exclude) <= {row["model"] for row in rows})
    results = collected(rows, profile, exclude)
    wanted = oracle.cells(rows, profile, exclude)
    seen = results.episodes.filter("headline")
    keys = ("harness", "condition", "sub_task", "domain", "cluster")
    said = Counter((*(line[key] for key in keys), round(line["score"], 9) + 0.0) for line in seen.to_dicts())
    known = Counter((c.harness, c.condition, c.sub_task, c.domain, c.cluster, round(c.score, 9) + 0.0) for c in wanted)
    assert said == known
    for arm in ("curated", "self_generated"):
        found = pairs(results, Comparison(arm, "no_skill")).filter("headline")
        assert rounded(found["difference"].to_list()) == rounded(
            [pair.difference for pair in oracle.pairs(wanted, arm)]
        )
        assert found.height == pytest.approx(len(oracle.pairs(wanted, arm)))
