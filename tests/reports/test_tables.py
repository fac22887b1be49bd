"""Each table on small runs whose figures are worked out by hand."""

from __future__ import annotations

import pytest
from scipy import stats
from tests.analysis.test_summary import table

from finskillbench.analysis.results import collect
from finskillbench.reports.tables.base import Estimate
from finskillbench.reports.tables.pooled import pooled_table

GAINS = (0.1, 0.3, 0.2, 0.4)


def two_models() -> list[tuple]:
    """Four episodes of rebalancing and one of stress testing, each for two models; the second gains nothing."""
    rows = [("baseline/trivial", "no_skill", "rebalancing", "r0", 1.0, 1.0)]
    for place, gain in enumerate(GAINS):
        for model, own in (("a", gain), ("b", 0.0)):
            rows.append((model, "no_skill", "rebalancing", f"r{place}", 0.5, 0.5))
            rows.append((model, "curated", "rebalancing", f"r{place}", 0.5 + own, 0.5))
    rows += [(model, arm, "stress_testing", "s0", 1.0, 1.0) for model in "ab" for arm in ("no_skill", "curated")]
    return rows


def test_pooled_means_and_their_difference() -> None:
    found = pooled_table(collect(table(*two_models())))
    assert found.column("condition") == ("no_skill", "curated")
    assert found.column("episodes") == (10, 10)
    assert found.column("mean") == pytest.approx(((8 * 0.5 + 2) / 10, (8 * 0.5 + 1.0 + 2) / 10))
    assert found.column("macro_mean") == pytest.approx(((0.5 + 1) / 2, (0.5 + 1.0 / 8 + 1) / 2))
    assert found.column("pairs") == (None, 10)
    assert found.column("clusters") == (None, 5)
    none, change = found.column("difference")
    assert none is None
    assert isinstance(change, Estimate)
    # Every cluster has one episode for each of the two models: the interval is that of the five cluster means.
    usual = stats.ttest_1samp([gain / 2 for gain in GAINS] + [0.0], 0.0).confidence_interval(0.95)
    assert change == pytest.approx((0.1, usual.low, usual.high))


def test_programs_alone_are_no_contenders() -> None:
    found = pooled_table(collect(table(("baseline/trivial", "no_skill", "rebalancing", "r0", 1.0, 1.0))))
    assert found.rows == (("no_skill", 0, None, None, None, None, None),)
    assert "floors and ceilings" in str(found)


def test_who_is_left_out_is_named() -> None:
    found = pooled_table(collect(table(*two_models()), exclude=["b"]))
    assert found.notes[0] == "Without b."
    assert found.column("mean") == pytest.approx((0.6, 0.8))
