"""Figures out of scale: a warning where the filer tagged them so and no label rests on them, else a failure."""

from __future__ import annotations

from datetime import date
from types import SimpleNamespace
from typing import Any, cast

import polars as pl
import pytest

from finskillbench.domains.fundamental.checks.tables import check_scale
from finskillbench.episode import Episode, Prompt
from finskillbench.findings import CheckState, Findings
from finskillbench.panels import Panels
from finskillbench.panels.filings.facts import PANEL_SCHEMA
from finskillbench.panels.filings.statements import FILED_SCHEMA

QUARTER = (date(2024, 4, 1), date(2024, 6, 30))
WRONG, MENDED = date(2024, 8, 1), date(2024, 9, 15)
Filed = tuple[str, str, date, float]
"""Metric, unit, day of filing and value of the quarter; the accession is that of the day."""

TAGS = {
    "revenue": "Revenues",
    "net_income": "NetIncomeLoss",
    "eps_diluted": "EarningsPerShareDiluted",
    "diluted_shares": "WeightedAverageNumberOfDilutedSharesOutstanding",
}
IN_MILLIONS: list[Filed] = [("revenue", "USD", WRONG, 500.0), ("revenue", "USD", MENDED, 500e6)]
NEVER_MENDED: list[Filed] = [("revenue", "USD", WRONG, 500e6), ("revenue", "USD", MENDED, 500e3)]
EARNED: list[Filed] = [
    ("net_income", "USD", WRONG, 100e6),
    ("eps_diluted", "USD/shares", WRONG, 2000.0),
    ("diluted_shares", "shares", WRONG, 50e6),
]
FEWER: list[Filed] = [("diluted_shares", "shares", date(2024, 5, 1), 50e6), ("diluted_shares", "shares", WRONG, 52e3)]


def facts(filed: list[Filed], end: date = QUARTER[1]) -> pl.DataFrame:
    rows = [
        {
            "symbol": "ONE",
            "metric": metric,
            "start": QUARTER[0],
            # A count known before is of a period before.
            "end": end if day >= WRONG else date(2024, 3, 31),
            "filed": day,
            "value": value,
            "unit": unit,
            "tag": TAGS[metric],
            "taxonomy": "us-gaap",
            "form": "10-Q",
            "accession": f"0000000001-24-{day:%m%d}00",
            "fiscal_year": 2024,
            "fiscal_period": "Q2",
            "duration": "quarterly",
            "derived": False,
            "parents": "",
        }
        for metric, unit, day, value in filed
    ]
    return pl.DataFrame(rows, schema=PANEL_SCHEMA)


def episode(sub_task: str, day: date, end: date, **fields: str) -> Episode:
    about = "current_period_end" if sub_task == "driver_decomposition" else "period_end"
    task_input = {"symbol": "ONE", about: str(end), **fields}
    return Episode(f"{sub_task}_{day}", "", sub_task, day, "easy", task_input, Prompt("", ""))


def found(filed: list[Filed], *episodes: Episode, panel: pl.DataFrame | None = None) -> Findings:
    """What the check finds of a panel, by default one that holds what was filed."""
    source = facts(filed)
    said = source.select(list(FILED_SCHEMA))
    findings = Findings()
    panels = cast("Panels", SimpleNamespace(facts=source if panel is None else panel, filed=said))
    check_scale(panels, episodes, findings)
    return findings


def states(findings: Findings) -> set[CheckState]:
    return {one.state for one in findings.found}


@pytest.mark.parametrize("filed", [IN_MILLIONS, EARNED, FEWER], ids=["a figure", "a product", "shares"])
def test_what_a_filer_tagged_so_is_a_warning_and_counted(filed: list[Filed]) -> None:
    findings = found(filed)
    (one,) = findings.found
    assert one.state is CheckState.WARN
    assert one.where.startswith("ONE ")
    assert "2024-08-01" in one.where
    assert one.message.endswith("as its filer tagged it; no episode is about the period")
    assert findings.figures["set_aside"] == 1


@pytest.mark.parametrize("filed", [IN_MILLIONS, EARNED, FEWER], ids=["a figure", "a product", "shares"])
def test_what_no_filing_says_is_a_failure(filed: list[Filed]) -> None:
    """The same defect planted in the panel, where the filer tagged another figure."""
    right = [(metric, unit, day, value * 1.5 if day == WRONG else value) for metric, unit, day, value in filed]
    findings = found(right, panel=facts(filed))
    assert states(findings) == {CheckState.FAIL}
    assert findings.figures["set_aside"] == 0
    late = [(metric, unit, date(2025, 1, 1), value) for metric, unit, _, value in filed]
    assert states(found(late, panel=facts(filed))) == {CheckState.FAIL}


def test_a_figure_that_shrinks_is_a_failure() -> None:
    """A build leaves it out, since the filing before says what it is."""
    assert states(found(NEVER_MENDED)) == {CheckState.FAIL}


@pytest.mark.parametrize(
    ("one", "state"),
    [
        (episode("normalization", WRONG, QUARTER[1]), CheckState.FAIL),
        (episode("normalization", MENDED, QUARTER[1]), CheckState.WARN),
        (episode("normalization", date(2024, 5, 1), QUARTER[1]), CheckState.WARN),
        (episode("normalization", WRONG, date(2024, 9, 30)), CheckState.WARN),
        (episode("driver_decomposition", WRONG, date(2024, 9, 30), prior_period_end=str(QUARTER[1])), CheckState.FAIL),
        (episode("earnings_quality", WRONG, date(2025, 6, 30)), CheckState.FAIL),
        (episode("earnings_quality", WRONG, date(2025, 9, 30)), CheckState.WARN),
    ],
    ids=lambda value: value.task_id if isinstance(value, Episode) else str(value),
)
def test_a_figure_that_a_label_rests_on_is_a_failure(one: Episode, state: CheckState) -> None:
    """On the days on which it is current: from its filing until it is mended."""
    assert states(found(IN_MILLIONS, one)) == {state}


def test_a_row_without_a_date_is_no_excuse() -> None:
    panel = facts(IN_MILLIONS).with_columns(
        derived=pl.lit(value=True),
        filed=pl.when(pl.col("value") < 1e3).then(pl.lit(None, dtype=pl.Date)).otherwise("filed"),
    )
    assert states(found(IN_MILLIONS, panel=panel)) == {CheckState.FAIL}


def test_a_malformed_episode_is_named() -> None:
    broken: Any = episode("normalization", WRONG, QUARTER[1])
    del broken.input["period_end"]
    assert [one.where for one in found([], broken).found] == [broken.task_id]
