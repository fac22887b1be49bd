"""Figures of filings, by value and accession number: first in the raw file with plain JSON, then in the facts panel.

Every figure in the two tables beside this file was read off realdata/companyfacts by hand, unscaled (USD, USD/shares or
shares). The accession is that of the filing which gave the figure first; a restated figure stands once per version.
"""

import csv
import gzip
import json
from collections import defaultdict
from datetime import date, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from finskillbench.panels.filings.facts import build_facts
from finskillbench.sources.edgar.companyfacts import PERIODIC_FORMS, parse_companyfacts

Figure = dict[str, str]
"""A row of a table; `start` is empty for an instant."""


def _table(name: str) -> list[Figure]:
    with Path(__file__).with_name(name).open(newline="") as file:
        return list(csv.DictReader(file))


FIGURES, QUARTERS = _table("known_figures.csv"), _table("known_quarters.csv")
FILES = {figure["symbol"]: figure["file"] for figure in FIGURES}
PERIODS: dict[str, list[Figure]] = defaultdict(list)
for _figure in FIGURES:
    PERIODS["{symbol} {metric} {start}..{end}".format(**_figure)].append(_figure)


@cache
def _facts(path: Path) -> Any:
    return json.loads(gzip.decompress(path.read_bytes()))["facts"]["us-gaap"]


def _served(realdata: Path, figure: Figure) -> list[tuple[str | None, str, float, str, str]]:
    """Start, end, value, accession and day of a tag's rows in periodic reports, by day of filing."""
    units = _facts(realdata / "companyfacts" / figure["file"])[figure["tag"]]["units"].values()
    rows = [row for unit in units for row in unit if row["form"] in PERIODIC_FORMS]
    rows.sort(key=lambda row: row["filed"])
    return [(row.get("start"), row["end"], row["val"], row["accn"], row["filed"]) for row in rows]


@pytest.fixture(scope="module")
def panel(realdata: Path) -> pl.DataFrame:
    """The facts panel of all companies of the tables."""
    files = {symbol: realdata / "companyfacts" / name for symbol, name in FILES.items()}
    return build_facts({symbol: parse_companyfacts(path) for symbol, path in files.items()}).frame


def _versions(panel: pl.DataFrame, figure: Figure, start: date | None, end: date) -> list[dict[str, Any]]:
    """Every version of one figure, by day of filing."""
    same = (pl.col("symbol") == figure["symbol"]) & (pl.col("metric") == figure["metric"]) & (pl.col("end") == end)
    return panel.filter(same & pl.col("start").eq_missing(start)).sort("filed").to_dicts()


def test_enough_figures_of_enough_companies() -> None:
    assert len(FIGURES) + len(QUARTERS) >= 40
    assert len(FILES) >= 10


@pytest.mark.parametrize("period", PERIODS)
def test_a_figure_of_a_filing(realdata: Path, panel: pl.DataFrame, period: str) -> None:
    """The raw file has each version under its accession, and no earlier; the panel has them as its first rows."""
    figures = PERIODS[period]
    for figure in figures:
        key = (figure["start"] or None, figure["end"], float(figure["value"]))
        first = next(row for row in _served(realdata, figure) if row[:3] == key)
        assert first[3:] == (figure["accession"], figure["filed"])
    start = date.fromisoformat(figures[0]["start"]) if figures[0]["start"] else None
    rows = _versions(panel, figures[0], start, date.fromisoformat(figures[0]["end"]))
    assert not rows[0]["derived"]
    assert [(row["value"], row["tag"], row["accession"], str(row["filed"])) for row in rows[: len(figures)]] == [
        (float(figure["value"]), figure["tag"], figure["accession"], figure["filed"]) for figure in figures
    ]


@pytest.mark.parametrize("quarter", QUARTERS, ids="{symbol} {metric} {longer_end}".format_map)
def test_a_quarter_by_difference(realdata: Path, panel: pl.DataFrame, quarter: Figure) -> None:
    """The identity on the raw rows first, then the row of the panel with its parents."""
    served = [row[:4] for row in _served(realdata, quarter)]
    for side in ("shorter", "longer"):
        end, value, accession = (quarter[f"{side}_{field}"] for field in ("end", "value", "accession"))
        assert (quarter["start"], end, float(value), accession) in served
    assert float(quarter["longer_value"]) - float(quarter["shorter_value"]) == float(quarter["value"])
    start = date.fromisoformat(quarter["shorter_end"]) + timedelta(days=1)
    row = _versions(panel, quarter, start, date.fromisoformat(quarter["longer_end"]))[0]
    assert (row["value"], str(row["filed"])) == (float(quarter["value"]), quarter["filed"])
    assert (row["duration"], row["derived"]) == ("quarterly", True)
    assert quarter["shorter_accession"] in row["parents"]
    assert quarter["longer_accession"] in row["parents"]


@pytest.mark.parametrize(
    ("symbol", "metric", "start", "end", "value"),
    [
        ("HD", "net_income", date(2022, 1, 31), date(2023, 1, 29), 17_105e6),  # 17,110 M stands in a DEF 14A
        ("SUNEQ", "revenue", date(2014, 1, 1), date(2014, 12, 31), 2_484.4e6),  # 1,646.7 M stands in an 8-K
    ],
)
def test_what_other_forms_say_is_not_taken(
    panel: pl.DataFrame, symbol: str, metric: str, start: date, end: date, value: float
) -> None:
    rows = _versions(panel, {"symbol": symbol, "metric": metric}, start, end)
    assert [row["value"] for row in rows] == [value]
