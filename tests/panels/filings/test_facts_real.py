"""The facts panel of every real company of the collection."""

from datetime import date, timedelta
from pathlib import Path

import polars as pl
import pytest
from tests.panels.filings.test_facts import versions
from tests.sampling import thorough

from finskillbench.engines.accounting.periods import Duration
from finskillbench.panels.filings.facts import PANEL_SCHEMA, FactsPanel, build_facts
from finskillbench.sources.edgar.companyfacts import PERIODIC_FORMS, parse_companyfacts
from finskillbench.sources.edgar.numerals import CANONICAL, METRICS


@pytest.fixture(scope="module")
def real(realdata: Path) -> FactsPanel:
    """Every company of the collection; whole files and filtered ones of one company under two names."""
    paths = sorted((realdata / "companyfacts").rglob("*.json.gz"))
    return build_facts({path.name.partition(".")[0]: parse_companyfacts(path) for path in paths})


APPLE = "CIK0000320193"


@thorough
@pytest.mark.parametrize(
    ("symbol", "accessions"),
    [
        ("COP", ["0000950123-09-029713", "0001193125-15-276084", "0001193125-16-574165", "0001562762-21-000193"]),
        ("KO", ["0000021344-18-000042", "0000021344-19-000028"]),
        ("T", ["0000732717-10-000074", "0000732717-10-000091"]),
        ("NVDA", ["0001045810-10-000006", "0001045810-11-000046"]),
        ("MRK", ["0001193125-13-084618"]),
        ("AXP", ["0000004962-19-000031"]),
    ],
)
def test_real_shares_in_thousands_or_millions(real: FactsPanel, symbol: str, accessions: list[str]) -> None:
    shares = real.frame.filter((pl.col("symbol") == symbol) & (pl.col("metric") == "diluted_shares"))
    assert shares.filter(pl.col("accession").is_in(accessions)).is_empty()
    for accession in accessions:
        assert any(note.startswith(f"{symbol}: ") and f"{accession} are in thousands" in note for note in real.notes)
    assert shares.height > 40
    assert shares.filter(pl.col("value") < 400e6).is_empty()


def test_real_shares_in_units_stay(real: FactsPanel) -> None:
    """A tag out of scale leaves the cover page of its filing, and the filings around it, alone."""
    apple = real.frame.filter((pl.col("symbol") == APPLE) & (pl.col("accession") == "0001193125-14-157311"))
    assert apple.filter(pl.col("metric") == "shares_outstanding")["value"].to_list() == [861_381_000.0]
    ko = real.frame.filter(pl.col("symbol") == "KO")
    assert versions(ko, "diluted_shares", ("2018-01-01", "2018-12-31")) == [(4_299e6, "2019-02-21", False)]


def test_real_empty_total_assets(real: FactsPanel) -> None:
    assert real.frame.filter((pl.col("metric") == "total_assets") & (pl.col("value") <= 0)).is_empty()
    assert "BAC: 1 figures of Assets in 0000950123-11-018743 are not positive: left out." in real.notes


def test_a_real_filing_has_one_depreciation(real: FactsPanel) -> None:
    """Celadon's two totals, at times 0.4 % apart: the lesser falls in every filing, for quarters and years to date."""
    own = (pl.col("symbol") == "CIK0000865941") & (pl.col("metric") == "depreciation_amortization")
    celadon = real.frame.filter(own)
    reported = celadon.filter(~pl.col("derived"))
    assert reported.height > 20
    assert set(reported["tag"]) == {"DepreciationAmortizationAndAccretionNet"}
    # Of 0001008886-15-000115 (nine months 53,955) less 0001008886-15-000017 (half 33,419), in thousands.
    third = versions(celadon, "depreciation_amortization", ("2015-01-01", "2015-03-31"))
    assert third == [(20_536e3, "2015-05-11", True)]


def test_the_real_panel_holds_together(real: FactsPanel) -> None:
    frame = real.frame
    assert dict(frame.schema) == PANEL_SCHEMA
    key = ["symbol", "metric", "start", "end", "filed"]
    assert not frame.select(key).is_duplicated().any()
    assert frame.sort("symbol", "metric", "end", "start", "filed").equals(frame)
    assert set(frame["form"]) <= set(PERIODIC_FORMS)
    assert set(frame["duration"]) == set(Duration)
    assert frame.filter(pl.col("derived") != (pl.col("parents") != "")).is_empty()
    units = dict(frame.select("metric", "unit").unique().rows())
    assert units == {metric: METRICS[metric].unit for metric in CANONICAL}
    assert frame.filter(pl.col("filed") < pl.col("end")).is_empty()
    # A derived quarter may be confirmed by a reported one of the same value.
    same = [*key[:4], "value", "tag", "derived"]
    assert frame.filter(pl.struct(same) == pl.struct(same).shift(1)).is_empty()
    assert any("ASML: 498 figures in EUR" in note for note in real.notes)
    assert any("in 0000063908-24-000072 are in thousands or millions" in note for note in real.notes)


def test_a_derived_row_is_filed_with_the_last_of_its_parents(real: FactsPanel) -> None:
    frame = real.frame
    filed = dict(
        pl.concat([frame.select("symbol", "accession", "filed")])
        .unique(["symbol", "accession"])
        .select(key=pl.concat_str("symbol", pl.lit(" "), "accession"), filed="filed")
        .rows()
    )
    said: dict[tuple[object, ...], list[tuple[date, float]]] = {}
    for *period, day, value in frame.select("symbol", "metric", "start", "end", "filed", "value").iter_rows():
        said.setdefault(tuple(period), []).append((day, value))
    checked = 0
    for row in frame.filter(pl.col("derived") & (pl.col("duration") == "quarterly")).iter_rows(named=True):
        terms = row["parents"].split(" - ")
        if len(terms) != 2 or any(row["metric"] != term.split()[1] for term in terms):
            continue  # an identity within one filing
        figures = []
        for term in terms:
            accession, metric, period = term.split()
            start, end = map(date.fromisoformat, period.split(".."))
            day = filed[f"{row['symbol']} {accession}"]
            first, current = [known for known in said[row["symbol"], metric, start, end] if known[0] <= day][-1]
            assert first == day
            figures.append((day, current, start, end))
        (long_day, long, start, end), (short_day, short, other, earlier) = figures
        assert start == other
        assert row["filed"] == max(long_day, short_day)
        assert (row["start"], row["end"]) == (earlier + timedelta(days=1), end)
        assert row["value"] == pytest.approx(long - short, abs=1e-6)
        checked += 1
    assert checked > 12_000
