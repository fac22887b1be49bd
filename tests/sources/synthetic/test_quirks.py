"""What fictional filers restate, recast, redefine and tag twice, as real ones do."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.sources.synthetic.truth import filed_facts, filers_of, true_segments, true_value

from finskillbench.sources.synthetic import SyntheticMarket
from finskillbench.sources.synthetic.filers.edgar_files import gaap_tag
from finskillbench.sources.synthetic.filers.figures import PRODUCT
from finskillbench.sources.synthetic.filers.filer import SyntheticFiler

TAG_SINCE_2018 = "RevenueFromContractWithCustomerExcludingAssessedTax"


@pytest.fixture(scope="module")
def filers(truth: SyntheticMarket) -> list[SyntheticFiler]:
    return list(filers_of(truth.seed).values())


def test_an_amended_annual_report_takes_revenue_back(filers: list[SyntheticFiler]) -> None:
    amended = [filer for filer in filers if filer.quirks.overstated is not None]
    for filer in amended:
        last = filer.fiscal.index(filer.quirks.overstated) + 3  # pyright: ignore[reportArgumentType]
        first, end = filer.starts[last - 3], filer.ends[last]
        original, correction = [f for f in filer.filings if f.quarter == last]
        assert (original.form, correction.form) == ("10-K", "10-K/A")
        before = true_value(filer, "revenue", first, end, correction.filed - timedelta(days=1))
        after = true_value(filer, "revenue", first, end, correction.filed)
        quarter = [true_value(filer, "revenue", filer.starts[last], end, f.filed) for f in (original, correction)]
        assert before is not None
        assert after is not None
        assert before > after
        assert quarter[0] - quarter[1] == before - after  # pyright: ignore[reportOperatorIssue]
        assert true_value(filer, "revenue", first, end, original.filed - timedelta(days=1)) is None
        equity = [true_value(filer, "stockholders_equity", None, end, f.filed) for f in (original, correction)]
        assert equity[0] > equity[1]  # pyright: ignore[reportOperatorIssue]
    assert amended


def test_a_quarterly_loss_is_taken_back(filers: list[SyntheticFiler]) -> None:
    found = 0
    for filer in filers:
        if filer.quirks.impaired is not None:
            quarter = filer.fiscal.index(filer.quirks.impaired) + 1
            original, correction = [f for f in filer.filings if f.quarter == quarter]
            period = filer.starts[quarter], filer.ends[quarter]
            assert correction.form == "10-Q/A"
            loss, profit = (true_value(filer, "net_income", *period, f.filed) for f in (original, correction))
            assert loss is not None
            assert profit is not None
            assert loss < 0 < profit
            per_share = true_value(filer, "eps_diluted", *period, original.filed)
            assert per_share is not None
            assert per_share < 0
            found += 1
    assert found >= 2


def test_a_spin_off_restates_two_years_of_continuing_operations(filers: list[SyntheticFiler]) -> None:
    found = 0
    for filer in filers:
        if filer.quirks.spun_off is None:
            continue
        last = filer.fiscal.index(filer.quirks.spun_off) - 1
        amendment = next(f for f in filer.filings if f.form == "10-K/A" and f.quarter == last)
        eve = amendment.filed - timedelta(days=1)
        for quarter in range(len(filer.ends)):
            period = filer.starts[quarter], filer.ends[quarter]
            before, after = (true_value(filer, "revenue", *period, day) for day in (eve, amendment.filed))
            net = [true_value(filer, "net_income", *period, day) for day in (eve, amendment.filed)]
            assert net[0] == net[1]
            if last - 7 <= quarter <= last:
                assert before is not None
                assert after is not None
                assert after < 0.95 * before
            else:
                assert before == after
        names = [
            true_segments(filer, PRODUCT, filer.starts[last], filer.ends[last], day) for day in (eve, amendment.filed)
        ]
        assert len(set(names[0]) - set(names[1])) == 1
        found += 1
    assert found


def _rows(collection: Path, filer: SyntheticFiler, tag: str, accession: str) -> dict[tuple[str, str], int]:
    """Figures of a tag in one filing by first and last day."""
    rows = filed_facts(collection, filer).get("us-gaap", {}).get(tag, {"units": {"USD": []}})["units"]["USD"]
    return {(row["start"], row["end"]): row["val"] for row in rows if row["accn"] == accession}


def _year(filer: SyntheticFiler, year: int) -> tuple[int, Any, Any]:
    """The last quarter of a fiscal year, its 10-K and the 10-Q before."""
    last = filer.fiscal.index(year) + 3
    return last, *(next(f for f in filer.filings if f.quarter == q and "/A" not in f.form) for q in (last, last - 1))


def test_a_recast_year_cannot_be_split_by_difference(filers: list[SyntheticFiler]) -> None:
    """The 10-K tells its three years without a business: less nine months with it, the fourth quarter is too small."""
    found = 0
    for filer in filers:
        for year in filer.quirks.recast:
            last, annual, quarterly = _year(filer, year)
            first, eve = filer.starts[last - 3], annual.filed - timedelta(days=1)
            nine = true_value(filer, "revenue", first, filer.ends[last - 1], eve)
            whole = true_value(filer, "revenue", first, filer.ends[last], annual.filed)
            before = filer.starts[last - 7], filer.ends[last - 4]
            told = [true_value(filer, "revenue", *before, day) for day in (eve, annual.filed)]
            assert nine is not None
            assert whole is not None
            assert None not in told
            assert told[0] > 1.05 * told[1]  # pyright: ignore[reportOptionalOperand, reportOperatorIssue]
            truly = filer.value(annual.vintage, "revenue", last, last)
            if abs(truly) > 1e8:
                assert whole - nine < 0.95 * truly
            assert quarterly.vintage < annual.vintage
            quarter = true_value(filer, "revenue", filer.starts[last], filer.ends[last], annual.filed)
            assert quarter == (truly if "revenue" in annual.quarterly_metrics else None)
            found += 1
    assert found >= 15


@pytest.mark.slow
def test_depreciation_is_split_redefined_and_tagged_twice(collection: Path, filers: list[SyntheticFiler]) -> None:
    whole, line, intangibles = (
        "DepreciationDepletionAndAmortization",
        "DepreciationAndAmortization",
        "AmortizationOfIntangibleAssets",
    )
    seen = set[str]()
    for filer in filers:
        last, annual, quarterly = _year(filer, filer.quirks.redefined or 2021)
        period = str(filer.starts[last - 3]), str(filer.ends[last])
        metric = "depreciation_amortization"
        true = round(filer.value(annual.vintage, metric, last - 3, last))
        if filer.quirks.redefined is not None:
            now = [_rows(collection, filer, tag, annual.accession)[period] for tag in (whole, intangibles)]
            assert sum(now) == true
            assert now[1] > 0.05 * true
            assert not _rows(collection, filer, intangibles, quarterly.accession)
            seen.add("redefined")
        if filer.quirks.expensed:
            expensed = _rows(collection, filer, line, annual.accession)[period]
            assert 0 < expensed < 0.7 * true
            quarter = str(filer.starts[last - 1]), str(filer.ends[last - 1])
            assert quarter in _rows(collection, filer, line, quarterly.accession)
            assert quarter not in _rows(collection, filer, whole, quarterly.accession)
            seen.add("expensed")
        if filer.fiscal[last] in filer.quirks.of_two.get(metric, ()):
            tags = [gaap_tag(filer, metric, filing) for filing in (annual, quarterly)]
            assert len(set(tags)) == 2
            quarter = filer.starts[last], filer.ends[last]
            assert true_value(filer, metric, *quarter, annual.filed) is None
            seen.add("of two")
    assert seen == {"redefined", "expensed", "of two"}


def test_product_revenue_stands_beside_the_total(collection: Path, filers: list[SyntheticFiler]) -> None:
    """Under the tag that is most filers' total; only revenue less cost tells the two apart."""
    found = 0
    for filer in filers:
        for year in (2016, 2021) if filer.quirks.parted else ():
            last, annual, _ = _year(filer, year)
            period = str(filer.starts[last - 3]), str(filer.ends[last])
            names = ("SalesRevenueGoodsNet", "SalesRevenueNet") if year == 2016 else ("Revenues", TAG_SINCE_2018)
            total, part = (_rows(collection, filer, tag, annual.accession)[period] for tag in names)
            assert total == round(filer.value(annual.vintage, "revenue", last - 3, last))
            assert 0.9 * total < part < 0.95 * total
            found += 1
    assert found >= 2
