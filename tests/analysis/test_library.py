"""Libraries: precision, recall, where half of a gain is gone, discovery tokens, and the cost of descriptions."""

from math import log
from types import SimpleNamespace

import polars as pl
import pytest
from tests.rows import synthetic_rows

from finskillbench.analysis.library import half_gone, library_sizes, precision_and_recall
from finskillbench.analysis.results import collect
from finskillbench.reports import read
from finskillbench.reports.report import report
from finskillbench.reports.tables.episodes.library import _half

OWN = {"portfolio_construction": "portfolio-construction", "risk_management": "risk-management"}


def rows_of(*conditions: str, **columns: pl.Expr) -> pl.DataFrame:
    """Two models on four episodes of each subtask, with other columns."""
    return (
        synthetic_rows(3, conditions, episodes=4).filter(pl.col("model") == "provider/model-2").with_columns(**columns)
    )


@pytest.mark.parametrize(
    ("gains", "expected"),
    [
        ([(3, 0.8), (100, 0.4)], 100.0),
        ([(10, 0.8), (1000, 0.0)], 100.0),
        ([(3, 0.6), (20, 0.5), (400, 0.1), (800, 0.6)], 20 * 20**0.5),
        ([(3, 0.8), (400, 0.41)], None),
        ([(3, 0.0), (400, -0.1)], None),
        ([(5, 0.3)], None),
    ],
)
def test_half_of_the_gain_is_gone_at_a_point_of_the_logarithm(gains, expected) -> None:
    found = half_gone(gains)
    assert found == (expected if expected is None else pytest.approx(expected))
    assert found is None or log(gains[0][0]) <= log(found) <= log(gains[-1][0]) + 1e-12


def test_the_report_states_why_there_is_no_half() -> None:
    assert _half([(3, 0.0), (9, -0.1)]) == "no gain"
    assert _half([(3, 0.5), (9, 0.4)]) == "not reached up to 9"
    assert _half([]) is None


def test_precision_is_over_loads_and_recall_over_what_is_needed() -> None:
    own = pl.col("domain").replace_strict(OWN, default="fundamental-analysis")
    risk = pl.col("domain") == "risk_management"
    rows = rows_of(
        "library:20",
        skills_loaded=pl.when(risk)
        .then(pl.concat_list(own, pl.lit("cat"), pl.lit("dog")))
        .otherwise(pl.concat_list(own)),
        scripts_run=pl.when(risk)
        .then(pl.concat_list(own + "/scripts/a.py", own + "/scripts/b.py", pl.lit("cat/scripts/c.py")))
        .otherwise([]),
    )
    found = precision_and_recall(collect(rows)).row(0, named=True)
    share = collect(rows).rows.select((pl.col("domain") == "risk_management").mean()).item()
    assert found["loaded_precision"] == pytest.approx(1 / (1 + 2 * share))
    assert (found["loaded_recall"], found["ran_precision"]) == (1.0, 0.5)
    assert found["ran_recall"] == pytest.approx(share)
    assert found["loaded_precision_low"] < found["loaded_precision"] < found["loaded_precision_high"]


def test_sizes_ascend_from_the_curated_packages() -> None:
    results = collect(rows_of("library:400", "no_skill", "library:20+hinted", "curated"))
    assert library_sizes(results) == {"curated": 3, "library:20+hinted": 20, "library:400": 400}
    assert library_sizes(collect(rows_of("no_skill", "curated"))) == {}


def test_the_report_shows_gains_by_size_and_where_half_is_gone() -> None:
    rows = rows_of("no_skill", "curated", "library:30", "library:300")
    value = pl.col("condition").replace_strict({"curated": 0.8, "library:30": 0.8, "library:300": 0.0}, default=0.0)
    rows = rows.with_columns(scores=pl.struct(paper=value, strict=value, certified=value), status=pl.lit("scored"))
    table = report(rows)["library"]
    names = [column.name for column in table.columns]
    lines = [dict(zip(names, row, strict=True)) for row in table.rows]
    assert [line["packages"] for line in lines] == [3, 30, 300]
    assert [line["gain"].value for line in lines] == pytest.approx([0.8, 0.8, 0.0])
    assert {line["half"] for line in lines} == {f"{(30 * 300) ** 0.5:.0f}"}
    assert {line["discovery_tokens"] for line in lines} == {None}


def test_discovery_counts_the_listing_in_each_turn_and_irrelevant_documents() -> None:
    rows = rows_of("library:20", "no_skill", turns=pl.lit(3)).filter(pl.col("domain") == "risk_management")
    rows = rows.with_columns(skills_loaded=pl.lit(["risk-management", "cat", "dog"]))
    listed = {"public": 6, "generated": 11, "listing_tokens": 1000}
    mounts = {
        "library:20": {"library": {"risk_management": listed}, "tokens": {"risk-management": 7, "cat": 20, "dog": 300}},
        "no_skill": {},
    }
    found = read._with_discovery(rows, SimpleNamespace(mounts=mounts, library="pets"))
    by_condition = found.group_by("condition").agg(pl.col("discovery_tokens", "distractors").unique().first())
    assert dict(by_condition.select("condition", "discovery_tokens").rows()) == {"library:20": 3320, "no_skill": None}
    (note,) = [line for line in report(found)["library"].notes if line.startswith("Distractors")]
    assert note == "Distractors: library:20: 6 of pets, 11 generated."


def test_the_cost_of_a_description_is_the_forced_score_less_the_unaided_one() -> None:
    conditions = ("curated", "curated+hinted", "curated+forced")
    rows = rows_of("no_skill", *conditions)
    value = pl.col("condition").replace_strict(dict(zip(conditions, (0.2, 0.5, 0.9), strict=True)), default=0.0)
    noise = pl.col("task_id").rank("dense") % 2 / 100
    rows = rows.with_columns(
        scores=pl.struct(paper=value, strict=value, certified=value + noise * (value > 0.6)), status=pl.lit("scored")
    )
    table = report(rows)["activation"]
    names = [column.name for column in table.columns]
    lines = {line[names.index("condition")]: dict(zip(names, line, strict=True)) for line in table.rows}
    assert list(lines) == list(conditions)
    assert lines["curated"]["change"] is None
    assert lines["curated+hinted"]["change"].value == pytest.approx(0.3)
    forced = lines["curated+forced"]["change"]
    assert forced.value == pytest.approx(0.705)
    assert forced.low < forced.value < forced.high
