"""Cut-offs of training data: which side an episode is on, and the change between two sets of episodes."""

from __future__ import annotations

from datetime import date

import numpy as np
import polars as pl
import pytest
from scipy.linalg import fractional_matrix_power
from scipy.stats import t
from tests.analysis.scenes import LISTS, REAL, SCORES, WHOLE, row

from finskillbench.analysis.cutoffs import Cutoffs, CutoffSide, changes, dated, parse_cutoffs, side
from finskillbench.analysis.results import Results, collect
from finskillbench.errors import InputError

DAY = date(2025, 6, 30)
EARLY, LATE = date(2025, 6, 30), date(2025, 7, 1)


def scene(*rows: dict[str, object]) -> Results:
    kinds = {"scores": SCORES, **LISTS, **WHOLE, **REAL}
    return collect(dated(pl.DataFrame(list(rows), schema_overrides=kinds), Cutoffs(DAY)))


def lot(seed: int, sub_tasks: tuple[str, ...], clusters: int, shared: bool) -> list[dict[str, object]]:
    """Episodes of unlike numbers on both sides of the cut-off, in clusters that lie on both or on one."""
    rng = np.random.default_rng(seed)
    rows: list[dict[str, object]] = []
    for sub_task in sub_tasks:
        for which, day in enumerate((EARLY, LATE)):
            for number in range(clusters):
                cluster = f"{number}" if shared else f"{which}{number}"
                for again in range(int(rng.integers(1, 4))):
                    task = f"{sub_task}-{which}-{number}-{again}"
                    score = float(rng.uniform())
                    more = {"sub_task": sub_task, "as_of_date": day, "cluster": cluster}
                    rows.append(row("curated", task, score, **more))
    return rows


def by_matrices(rows: list[dict[str, object]]) -> tuple[float, float, float]:
    """Change, its CR2 error and Satterthwaite's degrees of freedom, from the regression on a constant for each part.

    Bell & McCaffrey (2002): residuals of cluster g times (I - H_gg)^(-1/2); the degrees of freedom from the matrix of
    the quadratic form that the variance is, under independent errors of one variance.
    """
    parts = sorted({(str(each["sub_task"]), each["as_of_date"] > DAY) for each in rows})
    design = np.array(
        [[float((each["sub_task"], each["as_of_date"] > DAY) == part) for part in parts] for each in rows]
    )
    score = np.array([next(iter(each["scores"].values())) for each in rows])
    group = np.array([each["cluster"] for each in rows])
    bread = np.linalg.inv(design.T @ design)
    hat = design @ bread @ design.T
    contrast = np.array([(1.0 if after else -1.0) / (len(parts) / 2) for _, after in parts])
    beta = bread @ design.T @ score
    rest = np.eye(len(rows)) - hat
    columns = []
    for name in sorted(set(group)):
        member = group == name
        adjusted = fractional_matrix_power(np.eye(member.sum()) - hat[np.ix_(member, member)], -0.5)
        weights = contrast @ bread @ design[member].T @ adjusted
        columns.append(rest[:, member] @ weights)
    form = np.array(columns)
    variance = float(((form @ score) ** 2).sum())
    gram = form @ form.T
    return float(contrast @ beta), variance**0.5, float(np.trace(gram) ** 2 / (gram**2).sum())


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("sub_tasks", [("stress_testing",), ("stress_testing", "risk_identification")])
def test_the_change_is_a_contrast_of_a_regression(sub_tasks: tuple[str, ...], shared: bool) -> None:
    rows = lot(3, sub_tasks, 7, shared)
    found = changes(scene(*rows)).row(0, named=True)
    change, error, freedom = by_matrices(rows)
    half = t.ppf(0.975, freedom) * error
    assert found["change"] == pytest.approx(change, abs=1e-12)
    assert (found["low"], found["high"]) == pytest.approx((max(-1, change - half), min(1, change + half)), abs=1e-12)
    assert found["change"] == pytest.approx(found["after"] - found["before"], abs=1e-12)
    assert found["episodes_before"] + found["episodes_after"] == len(rows)
    assert found["sub_tasks"] == len(sub_tasks)


def test_what_clusters_share_on_both_sides_is_no_change() -> None:
    """Companies that differ by far, and each alike before and after: no doubt is left of a change of 0.1."""
    rows = []
    for number in range(12):
        for day, more in ((EARLY, 0.0), (LATE, 0.1)):
            score = number / 12 * 0.8 + more + 0.001 * ((number * 7 + day.day) % 5)
            rows.append(row("curated", f"{day}-{number}", score, as_of_date=day, cluster=str(number)))
    found = changes(scene(*rows)).row(0, named=True)
    assert found["change"] == pytest.approx(0.1, abs=0.01)
    assert found["high"] - found["low"] < 0.02


def test_the_day_itself_is_before() -> None:
    rows = pl.DataFrame({"model": ["m"] * 3, "as_of_date": [date(2025, 6, 29), EARLY, LATE]})
    told = dated(rows, Cutoffs(DAY))
    assert side(told, CutoffSide.BEFORE)["as_of_date"].to_list() == [date(2025, 6, 29), EARLY]
    assert side(told, CutoffSide.AFTER)["as_of_date"].to_list() == [LATE]


def test_each_model_has_its_own() -> None:
    rows = pl.DataFrame({"model": ["a", "b", "c"], "as_of_date": [LATE] * 3})
    told = dated(rows, Cutoffs(None, {"a": DAY, "b": date(2025, 12, 31)}))
    assert told["model"].to_list() == ["a", "b"]
    assert side(told, CutoffSide.AFTER)["model"].to_list() == ["a"]


def test_a_subtask_of_one_side_counts_for_nothing() -> None:
    alone = [row("curated", f"x{n}", 1.0, sub_task="normalization", as_of_date=LATE, cluster=str(n)) for n in range(5)]
    found = changes(scene(*lot(1, ("stress_testing",), 6, False), *alone)).row(0, named=True)
    assert found["sub_tasks"] == 1
    only = changes(scene(*alone)).row(0, named=True)
    assert (only["change"], only["before"], only["sub_tasks"]) == (None, None, 0)


def test_dates_are_read() -> None:
    assert parse_cutoffs(["2025-06-30", "lab/m=2025-01-31"]) == Cutoffs(DAY, {"lab/m": date(2025, 1, 31)})
    assert parse_cutoffs(["2025-06-30", "2025-06-30"]).every == DAY
    assert parse_cutoffs(["odd=name=2025-06-30"]).models == {"odd=name": DAY}


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["June"], "'June': not DATE or MODEL=DATE; write a date as 2025-06-30"),
        (["m=2025-13-01"], "not DATE or MODEL=DATE"),
        (["m=2025-01-01", "m=2025-01-02"], "two dates for m; remove one"),
        (["2025-01-01", "2025-01-02"], "two dates for every model"),
    ],
)
def test_dates_that_are_none(texts: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_cutoffs(texts)


def test_rows_that_cannot_be_split() -> None:
    rows = pl.DataFrame({"model": ["m"], "as_of_date": [LATE]})
    with pytest.raises(InputError, match="other has no rows; models: m"):
        dated(rows, Cutoffs(None, {"other": DAY}))
    with pytest.raises(InputError, match="no date for m; add --cutoff DATE"):
        dated(rows, Cutoffs())
    with pytest.raises(InputError, match="needs the column 'as_of_date'"):
        dated(rows.drop("as_of_date"), Cutoffs(DAY))
