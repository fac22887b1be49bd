"""Coverage and its bounds, by hand."""

import pytest
from tests.analysis.scenes import results, row

from finskillbench.analysis.results import Comparison, difference_bounds, verdict_coverage

CURATED = Comparison("curated", "no_skill")


def test_means_and_what_the_missing_could_make_of_them() -> None:
    found = verdict_coverage(results(row("curated", "a", 0.5), row("curated", "b", 1.0), row("curated", "c", None)))
    assert found.rows() == [
        ("m", "finskillbench", "curated", 3, 2, pytest.approx(2 / 3), 0.75, 0.5, pytest.approx(2.5 / 3), False)
    ]
    assert verdict_coverage(results(row("curated", "a", 0.5)), least=1.0)["enough"].to_list() == [True]


def test_repeats_count_once() -> None:
    rows = [row("curated", "a", 0.0, run_idx=run) for run in range(3)] + [row("curated", "a", None, run_idx=3)]
    line = verdict_coverage(results(*rows, row("curated", "b", 1.0))).row(0, named=True)
    assert (line["rows"], line["verdicts"], line["share"]) == (5, 4, 0.8)
    assert (line["mean"], line["worst"], line["best"]) == (0.5, 0.5, (0.25 + 1.0) / 2)


def test_of_errors_alone_there_is_no_mean() -> None:
    line = verdict_coverage(results(row("curated", "a", None))).row(0, named=True)
    assert (line["mean"], line["worst"], line["best"], line["share"]) == (None, 0.0, 1.0, 0.0)


def test_a_difference_lies_between_its_bounds() -> None:
    rows = [row("curated", "a", 1.0), row("no_skill", "a", 0.25), row("curated", "b", None), row("no_skill", "b", 0.5)]
    alone = row("curated", "c", 1.0)  # nobody ran it without skills
    found = difference_bounds(results(*rows, alone), CURATED)
    assert found.rows() == [("m", "finskillbench", 2, 1, (0.75 - 0.5) / 2, (0.75 + 0.5) / 2)]
    lost = [row("curated", "d", 0.5), row("no_skill", "d", None)]
    both = difference_bounds(results(*rows, *lost), CURATED).row(0, named=True)
    assert (both["missing"], both["worst"]) == (2, pytest.approx((0.75 - 0.5 + 0.5 - 1.0) / 3))
    assert both["best"] == pytest.approx((0.75 + 0.5 + 0.5 - 0.0) / 3)
    whole = difference_bounds(results(*rows[:2]), CURATED).row(0, named=True)
    assert (whole["missing"], whole["worst"], whole["best"]) == (0, 0.75, 0.75)
