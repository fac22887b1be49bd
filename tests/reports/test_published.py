"""What the paper prints comes out, digit by digit, of rows that are made to have those means and intervals.

A table's row is made of episodes whose scores lie by turns as far above and below their mean as its interval asks for.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable
from pathlib import Path

import polars as pl
import pytest
from scipy import stats

from finskillbench.analysis.results import Results, collect
from finskillbench.domains import domain_of
from finskillbench.episode import Profile
from finskillbench.reports.published import PublishedRow, paper_values, to_cell, with_paper_columns
from finskillbench.reports.tables.base import Estimate, Table, cell_text
from finskillbench.reports.tables.episodes.conduct import resources_table
from finskillbench.reports.tables.scores.grouped import domains_table, harnesses_table, pooled_table, subtasks_table
from finskillbench.reports.tables.scores.models import models_table

ARMS = ("no_skill", "curated", "self_generated")
HOMES = {
    "portfolio_construction": "rebalancing",
    "risk_management": "stress_testing",
    "fundamental_analysis": "normalization",
}
STEPS = [step * 1e-4 for step in (0, 1, -1, 2, -2, 3, -3, 4, -4, 4.9, -4.9, 4.99, -4.99)]
"""How far a value may lie from what is printed of it."""


def arm(name: str, scores: list[float], *, model="m", sub_task="rebalancing", harness="finskillbench") -> pl.DataFrame:
    """Rows of one condition, an episode and a cluster of its own for each score."""
    ids = [f"{model}-{sub_task}-{place}" for place in range(len(scores))]
    return pl.DataFrame({"task_id": ids, "cluster": ids, "score": scores}).select(
        "task_id",
        "cluster",
        model=pl.lit(model),
        harness=pl.lit(harness),
        condition=pl.lit(name),
        sub_task=pl.lit(sub_task),
        status=pl.lit("scored"),
        scores=pl.struct(
            pl.col("score").alias("paper"),
            *(pl.lit(None, pl.Float64).alias(other) for other in ("strict", "certified")),
        ),
    )


def around(mean: float, half: float, count: int) -> list[float]:
    """Scores by turns above and below a mean, whose interval is so wide."""
    away = half * (count - 1) ** 0.5 / stats.t.ppf(0.975, count - 1)
    return [mean + away, mean - away] * (count // 2)


def printed(*values: tuple[float, float]) -> bool:
    """Whether each first is printed as the second is."""
    return all(f"{mine:+.3f}" == f"{theirs + 0.0:+.3f}" for mine, theirs in values)


def fitting(mean: float, low: float, high: float) -> tuple[float, float]:
    """A mean and half a width that are printed so; of an interval that is not symmetric, the mean alone."""
    for center, half in itertools.product([mean + step for step in STEPS], [(high - low) / 2 + s for s in STEPS]):
        if printed((center, mean), (center - half, low), (center + half, high)):
            return center, half
    return mean, (high - low) / 2


def symmetric(mean: float, low: float, high: float) -> bool:
    """Whether an interval may lie evenly about its mean, as a t interval does: the bootstrap's need not."""
    center, half = fitting(mean, low, high)
    return printed((center - half, low), (center + half, high))


def three(row: PublishedRow) -> list[tuple[float, float]]:
    """For each condition its mean, and half the width of the interval of its difference, that are printed so."""
    cells = row.cells
    changes = [cells.get(f"{name}_minus_no_skill") for name in ARMS[1:]]
    fitted = [
        (None, 0.0)
        if not isinstance(each, tuple)
        else (each[0], 0.0)
        if each[1] is None or not symmetric(*each)
        else fitting(each[0], each[1], each[2])
        for each in changes
    ]
    wanted = [cells[f"mean_{name}"] for name in ARMS]
    for base, up, own in itertools.product(STEPS, STEPS, STEPS):
        values = [mean + step for mean, step in zip(wanted, (base, up, own), strict=True)]
        for place, (change, half) in enumerate(fitted, 1):
            if half and change is not None:
                values[place] = values[0] + change
        pairs = list(zip(values, wanted, strict=True))
        pairs += [
            (values[place] - values[0], change) for place, (change, _) in enumerate(fitted, 1) if change is not None
        ]
        pairs += [(sum(values) / 3, cells["overall"])] if "overall" in cells else []
        if printed(*pairs):
            return list(zip(values, [0.0, *(half for _, half in fitted)], strict=True))
    raise AssertionError(f"no three means are printed as {row}")


def episodes(row: PublishedRow, count: int = 40, **where: str) -> Iterable[pl.DataFrame]:
    for name, (mean, half) in zip(ARMS, three(row), strict=True):
        yield arm(name, around(mean, half, count), **where)


def pooled() -> Iterable[pl.DataFrame]:
    cells = {row.key[0]: row.cells for row in paper_values().tables["pooled"].rows}
    values = {f"mean_{name}": cells[name]["mean"] for name in ARMS}
    changes = {f"{name}_minus_no_skill": cells[name]["difference"] for name in ARMS[1:]}
    return episodes(PublishedRow(("m",), {**values, **changes}), 5280)


def domains() -> Iterable[pl.DataFrame]:
    for row in paper_values().tables["domains"].rows:
        yield from episodes(row, sub_task=HOMES[row.key[0] or ""])


def subtasks() -> Iterable[pl.DataFrame]:
    for row in paper_values().tables["subtasks"].rows:
        yield from episodes(row, sub_task=row.key[0] or "")


def models() -> Iterable[pl.DataFrame]:
    for row in paper_values().tables["models"].rows:
        for sub_task, count in (("rebalancing", 4), ("normalization", 10)):
            yield from episodes(row, count, model=f"provider/{row.key[0]}", sub_task=sub_task)


def resources() -> Iterable[pl.DataFrame]:
    """A hundred rows each: 49 below the median, two at it, 49 above."""
    for row in paper_values().tables["resources"].rows:
        cells = row.cells
        middle, mean, turns = (
            cells["median_tokens"],
            round(100 * cells["mean_tokens"]),
            round(100 * cells["mean_turns"]),
        )
        below = [middle // 2] * 49 + [middle] * 2
        rest = mean - sum(below)
        tokens = [*below, *[rest // 49] * 48, rest - rest // 49 * 48]
        yield arm(row.key[0] or "", [0.5] * 100).with_columns(
            total_input_tokens=pl.Series(map(int, tokens)) - 100,
            total_output_tokens=pl.lit(100),
            latency_seconds=pl.Series([1.0] * 49 + [cells["median_latency"]] * 2 + [999.0] * 49),
            turns=pl.Series([int(turns // 100 + (place < turns % 100)) for place in range(100)]),
        )


def harness(row: PublishedRow) -> Iterable[pl.DataFrame]:
    _, group, name = row.key
    where = {"harness": "hermes", "sub_task": "rebalancing", "model": "m"}
    where |= {"sub_task": HOMES[name or ""]} if group == "domain" else {"model": name} if group == "model" else {}
    cells = row.cells
    sides = [fitting(*cells[f"mean_{side}"]) for side in ("reference", "treated")]
    for one, other in itertools.product(STEPS, STEPS):
        values = [sides[0][0] + one, sides[1][0] + other]
        told = [cells["mean_reference"], cells["mean_treated"]]
        ends = [
            (mean + sign * half, end)
            for mean, (_, half), (value, low, high) in zip(values, sides, told, strict=True)
            for sign, end in (((0, value), (-1, low), (1, high)) if symmetric(value, low, high) else ((0, value),))
        ]
        if printed((values[1] - values[0], cells["difference"][0]), *ends):
            counts = (cells["episodes_reference"], cells["episodes_treated"])
            for condition, mean, (_, half), count in zip(ARMS, values, sides, counts, strict=False):
                yield arm(condition, around(mean, half, count), **where)
            return
    raise AssertionError(f"no two means are printed as {row}")


def results(rows: Iterable[pl.DataFrame]) -> Results:
    return collect(pl.concat(rows), Profile.PAPER)


def check(table: Table, keys: set[tuple]) -> None:
    """Every value that the paper prints of some rows is printed of ours."""
    known = paper_values().tables[table.name]
    columns = {column.name: column for column in table.columns}
    ours = {
        tuple(str(cell).rsplit("/", 1)[-1] if cell is not None else None for cell in key): place
        for place, key in enumerate(zip(*(table.column(name) for name in known.keys), strict=True))
    }
    seen = 0
    for row in known.rows:
        if row.key not in keys:
            continue
        for name, value in row.cells.items():
            mine, theirs = table.column(name)[ours[row.key]], to_cell(value)
            if isinstance(theirs, Estimate) and (theirs.low is None or not symmetric(*theirs)):
                mine, theirs = Estimate(mine.value), Estimate(theirs.value)
            assert cell_text(columns[name], mine) == cell_text(columns[name], theirs), (row.key, name)
            seen += 1
    assert seen


MADE: list[tuple[Callable[[Results], Table], Callable[[], Iterable[pl.DataFrame]]]] = [
    (pooled_table, pooled),
    (domains_table, domains),
    (subtasks_table, subtasks),
    (models_table, models),
    (resources_table, resources),
]


@pytest.mark.parametrize(("make", "rows"), MADE)
def test_every_printed_value_comes_out(make, rows) -> None:
    table = make(results(rows()))
    check(table, {row.key for row in paper_values().tables[table.name].rows})


@pytest.mark.parametrize("row", paper_values().tables["harnesses"].rows, ids=lambda row: row.key[2])
def test_every_printed_value_of_a_harness_comes_out(row) -> None:
    check(harnesses_table(results(harness(row))), {row.key})


def test_printed_values_stand_beside_ours() -> None:
    table = models_table(results(models()))
    both = with_paper_columns(table)
    assert [column.name for column in both.columns][:4] == ["model", "overall", "overall_paper", "mean_no_skill"]
    assert len(both.rows) == len(table.rows) == 9
    assert both.column("overall_paper")[0] == 0.488
    own = with_paper_columns(models_table(results([arm("no_skill", [0.5, 0.6], model="mine")])))
    assert own.column("model")[:2] == ("mine", "gpt-4.1")
    assert own.column("overall_paper")[:2] == (None, 0.488)
    assert own.column("overall")[1] is None
    notes = " ".join(own.notes)
    assert "gpt-5.4" not in notes  # there is no column of differences to be printed otherwise
    assert "gpt-5.4, curated - no_skill: +0.090 [n/a]" in " ".join(both.notes)


def test_a_table_that_the_paper_has_not_stays() -> None:
    table = Table("own", "Own", (), ())
    assert with_paper_columns(table) is table


def test_the_printed_values_are_those_of_the_tables_of_ours() -> None:
    for table in paper_values().tables.values():
        assert len({row.key for row in table.rows}) == len(table.rows)
    assert {domain_of(str(row.key[0])).name for row in paper_values().tables["subtasks"].rows} == set(HOMES)


def test_what_the_release_displays_otherwise_is_all_that_it_does() -> None:
    """Against the release's own file, where it is there."""
    file = Path(__file__).resolve().parents[3] / "shared" / "release_sample" / "analysis" / "expected_results.json"
    if not file.is_file():
        pytest.skip("the sample of the release is absent")
    tables = {each["table"]: each["data"] for each in json.loads(file.read_text())["tables"]}
    otherwise = {(each.table, each.key, each.column): each.value for each in paper_values().release}
    cells = {
        (name, row.key, column): value
        for name, table in paper_values().tables.items()
        for row in table.rows
        for column, value in row.cells.items()
    }
    shown = {**cells, **otherwise}
    assert set(otherwise) <= set(cells)
    assert not [key for key in otherwise if otherwise[key] == cells[key]]
    release = {
        **{
            ("pooled", (name, None if name == "no_skill" else "no_skill"), "mean"): data["mean"]
            for name, data in tables[2].items()
        },
        **{("subtasks", (name,), f"mean_{arm}"): data[arm] for name, data in tables[4].items() for arm in ARMS},
        **{
            ("subtasks", (name,), "curated_minus_no_skill"): (data["delta"], None, None)
            for name, data in tables[4].items()
        },
        **{("models", (name,), "overall"): data["overall"] for name, data in tables[5].items()},
        **{
            ("models", (name,), "curated_minus_no_skill"): (data["curated_delta"], None, None)
            for name, data in tables[5].items()
        },
        **{
            ("resources", (name,), column): data[theirs]
            for name, data in tables[6].items()
            for column, theirs in (
                *((each, each) for each in ("median_tokens", "mean_tokens", "median_latency")),
                ("mean_turns", "mean_episodes"),
            )
        },
    }
    assert {key: shown[key] for key in release} == release
