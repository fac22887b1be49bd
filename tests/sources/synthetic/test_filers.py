"""The fictional filers: true statements that add up, filings in the SEC's formats, and every quirk they are to have."""

import hashlib
from collections import defaultdict
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import orjson
import polars as pl
import pyarrow.parquet as pq
import pytest
from tests.sampling import THOROUGH, sampled, thorough
from tests.sources.synthetic.truth import filed_facts, filers_of, true_value

from finskillbench.domains.fundamental.objects import reports
from finskillbench.domains.fundamental.objects.reports import RawCompanies
from finskillbench.panels.filings import statements
from finskillbench.panels.filings.facts import build_facts
from finskillbench.panels.store import write_filings
from finskillbench.sources.edgar.collection import load_filings
from finskillbench.sources.synthetic import SyntheticMarket, simulate
from finskillbench.sources.synthetic.calendar import LAST_SESSION, sessions
from finskillbench.sources.synthetic.filers.figures import GEOGRAPHY, INSTANTS, PRODUCT
from finskillbench.sources.synthetic.filers.filer import SyntheticFiler

# Of seed 7, from before there were filings: later parts of a collection draw from streams of their own.
EARLIER = {
    "prices": "4d43b08f6d994617db5498e2585a95866e09ac6eb002b75cea47c4a0903a343d",
    "famafrench": "9d52508e54410126a0cff3f03d0fd241698abb38b9b9a31442b4a3137b0dd663",
    "fred": "13611228b6d6d6326db9b49e7628e88c10ecc1ca69370af8cfd4685890051870",
    "statements_derived": "cd53f9ea818ed5c0e1f8fd6b62e5a2ed922634211321635f2eddc9557b7a5cfc",
}

TAG_SINCE_2018 = "RevenueFromContractWithCustomerExcludingAssessedTax"


def _filers(market: SyntheticMarket) -> list[SyntheticFiler]:
    return list(filers_of(market.seed).values())


@pytest.fixture(scope="module", params=[1, 2, 3])
def market(request: pytest.FixtureRequest) -> SyntheticMarket:
    return simulate(request.param)


@pytest.fixture(scope="module")
def filers(truth: SyntheticMarket) -> list[SyntheticFiler]:
    return _filers(truth)


def _day(text: str) -> date:
    return date.fromisoformat(text)


@pytest.mark.parametrize("folder", EARLIER)
def test_the_files_of_earlier_collections_keep_their_bytes(collection: Path, folder: str) -> None:
    state = hashlib.sha256()
    for path in sorted((collection / folder).rglob("*")):
        state.update(path.relative_to(collection).as_posix().encode())
        state.update(path.read_bytes())
    assert state.hexdigest() == EARLIER[folder]


def test_the_statements_of_every_vintage_add_up(market: SyntheticMarket) -> None:
    for filer in _filers(market):
        for vintage in filer.vintages:
            money = vintage.money
            claims = money["total_liabilities"] + money["stockholders_equity"] + money["minority_interest"]
            np.testing.assert_array_equal(money["total_assets"], claims)
            np.testing.assert_array_equal(money["revenue"] - money["cost_of_revenue"], money["gross_profit"])
            noncurrent = money["total_assets"] - money["current_assets"] - money["ppe_net"]
            assert (noncurrent > 0).all()
            parts = money["cash"] + money["receivables"] + money["inventory"]
            assert (parts < money["current_assets"]).all()
            assert (money["current_liabilities"] + money["long_term_debt"] < money["total_liabilities"]).all()
            for axis in (PRODUCT, GEOGRAPHY):
                together = sum(values for name, values in money.items() if name.startswith(f"{axis}:"))
                np.testing.assert_array_equal(together, money["revenue"])
            for metric in INSTANTS:
                assert (money[metric] >= 0).all(), metric
            assert (money["depreciation_amortization"] > 0).all()
            assert (money["stockholders_equity"] > 0).all()


def test_the_latest_vintage_agrees_with_the_derived_statements(market: SyntheticMarket) -> None:
    """Net income and year-end equity everywhere, revenue outside the moved quarters and the spun-off past."""
    for facts, filer in zip(market.fundamentals, _filers(market), strict=True):
        first, latest = filer.figures.first, len(filer.vintages) - 1
        money = filer.vintages[latest].money
        np.testing.assert_array_equal(money["net_income"], facts.quarterly["netIncome"][first:])
        years = filer.figures.fiscal
        moved = np.isin(years, [y for y in (filer.quirks.empty, filer.quirks.negative) if y is not None])
        # Years too far back to be told again when a business left.
        left = [filer.quirks.spun_off - 2] if filer.quirks.spun_off else [year - 2 for year in filer.quirks.recast]
        spun = years < max(left, default=0)
        same = money["revenue"] == facts.quarterly["revenue"][first:]
        assert (same | moved | spun).all()
        for i, end in enumerate(facts.annual_ends):
            last = 4 * i + 3
            assert money["stockholders_equity"][last] == facts.balances["equity"][i]
            assert spun[last] or money["revenue"][last - 3 : last + 1].sum() == facts.annual["revenue"][i]
            assert abs((filer.ends[last] - end).days) <= 3
            shown = true_value(filer, "diluted_shares", filer.starts[last - 3], filer.ends[last], LAST_SESSION)
            # The last 10-K may not be filed yet; a split in the last year is not in three annual reports.
            if shown is not None and (filer.split is None or filer.split[0] < date(2024, 1, 1)):
                assert shown == facts.diluted_shares[i]
                eps = true_value(filer, "eps_diluted", filer.starts[last - 3], filer.ends[last], LAST_SESSION)
                assert eps == facts.annual["eps"][i]
        for i, (start, end) in enumerate(zip(filer.starts, filer.ends, strict=True)):
            eps = true_value(filer, "eps_diluted", start, end, LAST_SESSION)
            if eps is not None and (filer.split is None or filer.split[0] < date(2024, 1, 1)):
                assert eps == facts.quarterly["eps"][first + i]


def test_year_to_date_figures_are_sums_of_quarters_in_the_files(collection: Path, filers: list[SyntheticFiler]) -> None:
    """Within one filing: a half is its two quarters, a year its four where the 10-K prints them."""
    checked = 0
    for filer in filers:
        rows = filed_facts(collection, filer)["us-gaap"]["NetIncomeLoss"]["units"]["USD"]
        printed: dict[str, dict[tuple[str, str], int]] = defaultdict(dict)
        for row in rows:
            printed[row["accn"]][row["start"], row["end"]] = row["val"]
        everything = {(row["start"], row["end"]): row["val"] for row in rows if row["form"] in ("10-Q", "10-K")}
        starts, ends = [str(day) for day in filer.starts], [str(day) for day in filer.ends]
        restated = filer.quirks.overstated, filer.quirks.impaired
        for i in range(0, len(ends) - 3, 4):
            quarters = [everything.get((starts[i + k], ends[i + k])) for k in range(4)]
            year, nine = everything.get((starts[i], ends[i + 3])), everything.get((starts[i], ends[i + 2]))
            if filer.fiscal[i] in restated or None in quarters[:3] or nine is None:
                continue
            assert sum(quarters[:3]) == nine  # pyright: ignore[reportCallIssue, reportArgumentType]
            if quarters[3] is not None and year is not None:
                assert nine + quarters[3] == year
                checked += 1
    assert checked > 50


def test_cash_flows_are_printed_for_the_year_to_date_only(collection: Path, filers: list[SyntheticFiler]) -> None:
    for filer in filers:
        rows = filed_facts(collection, filer)["us-gaap"]["NetCashProvidedByUsedInOperatingActivities"]["units"]["USD"]
        openings = {filer.starts[filer.year_start(i)].isoformat() for i in range(len(filer.ends))}
        assert {row["start"] for row in rows} <= openings
        lengths = {round((_day(row["end"]) - _day(row["start"])).days / 91.25) for row in rows}
        assert lengths == {1, 2, 3, 4}


def test_filings_come_after_the_news_on_business_days(truth: SyntheticMarket, filers: list[SyntheticFiler]) -> None:
    days = set(sessions())
    for traits, filer in zip(truth.traits, filers, strict=True):
        accessions = [filing.accession for filing in filer.filings]
        assert len(set(accessions)) == len(accessions)
        assert [filing.filed for filing in filer.filings] == sorted(filing.filed for filing in filer.filings)
        assert 38 <= len(filer.filings) <= 45
        for filing in filer.filings:
            assert filing.filed in days or filing.filed < sessions()[0]
            assert filer.ends[filing.quarter] + timedelta(days=18) <= filing.filed <= LAST_SESSION
            announced = traits.announced[filer.figures.first + filing.quarter]
            assert announced == -1 or sessions()[announced] <= filing.filed
            assert filing.accepted.startswith(filing.filed.isoformat())


def test_all_quirks_are_there_whatever_the_seed(market: SyntheticMarket) -> None:
    filers = _filers(market)
    quirks = [filer.quirks for filer in filers]
    for name in ("weeks", "late", "minority", "proxy", "selected", "subtotal", "crossed", "parted", "expensed"):
        assert 2 <= sum(getattr(one, name) for one in quirks) <= 20, name
    assert 15 <= sum(len(one.recast) for one in quirks) <= 30
    assert {metric for one in quirks for metric in one.of_two} == {"revenue", "depreciation_amortization"}
    for name in ("overstated", "impaired", "reclassified", "spun_off", "empty", "negative", "renamed", "redefined"):
        assert 1 <= sum(getattr(one, name) is not None for one in quirks) <= 4, name
    assert 2 <= sum(one.axis is None for one in quirks) <= 4
    assert {one.axis for one in quirks if one.axis} == {
        "us-gaap:StatementBusinessSegmentsAxis",
        "srt:ProductOrServiceAxis",
    }
    for metric in ("total_liabilities", "gross_profit", "cost_of_revenue", "current_assets"):
        assert any(metric in one.unreported for one in quirks), metric
    assert sum(len(filer.vintages) > 1 for filer in filers) >= 8


def test_odd_quarters_calendars_and_deadlines(collection: Path, filers: list[SyntheticFiler]) -> None:
    revenues = [filer.vintages[-1].money["revenue"] for filer in filers]
    assert any((values == 0).any() for values in revenues)
    assert any((values < 0).any() for values in revenues)
    for filer in filers:
        lengths = {(end - start).days + 1 for start, end in zip(filer.starts, filer.ends, strict=True)}
        if filer.quirks.weeks:
            assert lengths == {91, 98}
            assert {end.weekday() for end in filer.ends} == {5}
        else:
            assert lengths <= {90, 91, 92}
        assert all(b - a == timedelta(days=1) for a, b in zip(filer.ends[:-1], filer.starts[1:], strict=True))
        path = collection / "submissions" / f"CIK{filer.company.security.cik}.json"
        recent = orjson.loads(path.read_bytes())["filings"]["recent"]
        assert len({len(column) for column in recent.values()}) == 1
        assert recent["filingDate"] == sorted(recent["filingDate"], reverse=True)
        assert ("NT 10-Q" in recent["form"]) == filer.quirks.late
        lags = [(f.filed - filer.ends[f.quarter]).days for f in filer.filings if f.form == "10-Q"]
        assert (min(lags) >= 44) == filer.quirks.late


def test_tags_change_go_missing_and_stray(collection: Path, filers: list[SyntheticFiler]) -> None:
    changed = stray = 0
    for filer in filers:
        facts = filed_facts(collection, filer)["us-gaap"]
        assert ("Liabilities" in facts) == ("total_liabilities" not in filer.quirks.unreported)
        assert ("MinorityInterest" in facts) == filer.quirks.minority
        if filer.company.security.sector == "Financial Services":
            assert not {"GrossProfit", "AssetsCurrent", "InventoryNet", "CostOfRevenue"} & set(facts)
        if "SalesRevenueNet" in facts and TAG_SINCE_2018 in facts:
            old_rows, new_rows = (facts[tag]["units"]["USD"] for tag in ("SalesRevenueNet", TAG_SINCE_2018))
            assert max(row["filed"] for row in old_rows) < min(row["filed"] for row in new_rows)
            # The new tag repeats periods that were first reported under the old one.
            assert {row["end"] for row in old_rows} & {row["end"] for row in new_rows}
            changed += 1
        proxies = [row for row in facts["NetIncomeLoss"]["units"]["USD"] if row["form"] == "DEF 14A"]
        assert bool(proxies) == filer.quirks.proxy
        stray += len(proxies)
        framed = [(row.get("start"), row["end"]) for row in facts["Assets"]["units"]["USD"] if "frame" in row]
        assert len(set(framed)) == len(framed)
    assert changed >= 10
    assert stray >= 5


def test_nothing_is_known_before_it_is_filed(truth: SyntheticMarket) -> None:
    rng = np.random.default_rng(5)
    metrics = ("revenue", "net_income", "operating_cash_flow", "total_assets", "eps_diluted")
    for filer in _filers(truth):
        for quarter in rng.choice(len(filer.ends), size=8, replace=False).tolist():
            first = min((f.filed for f in filer.filings if f.quarter == quarter), default=LAST_SESSION)
            for metric in metrics:
                start = None if metric == "total_assets" else filer.starts[quarter]
                eve = first - timedelta(days=1)
                assert true_value(filer, metric, start, filer.ends[quarter], eve) is None


@thorough
@pytest.mark.slow
def test_companies_together_or_apart_make_the_same_panels(
    collection: Path, filers: list[SyntheticFiler], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """In memory, and written some after others, as a build does it."""
    data = load_filings(collection, [filer.company.security.symbol for filer in filers[:2]])
    together = statements.build_fundamentals(data)
    monkeypatch.setattr(statements, "_COMPANIES_PER_PART", 1)
    for apart in (statements.build_fundamentals(data), write_filings(data, tmp_path)):
        assert together.tables["facts"]["symbol"].n_unique() == 2
        assert set(together.tables) == set(apart.tables)
        for name in together.tables:
            assert together.tables[name].equals(apart.tables[name], null_equal=True)
        assert set(together.notes) == set(apart.notes)
    assert pq.ParquetFile(tmp_path / "facts.parquet").num_row_groups == 2


@pytest.mark.slow
def test_a_company_that_is_read_again_says_the_same(
    collection: Path, filers: list[SyntheticFiler], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of many companies only the first are kept; the others are read for each subtask anew."""
    symbols = [filer.company.security.symbol for filer in filers[:3]]
    data = load_filings(collection, symbols)
    kept = RawCompanies(data)
    first = {symbol: kept.filed[symbol] for symbol in symbols}
    assert all(kept.filed[symbol] is one for symbol, one in first.items())
    monkeypatch.setattr(reports, "_KEPT", 1)
    few = RawCompanies(data)
    again = [{symbol: few.filed[symbol] for symbol in symbols} for _ in range(2)]
    assert again[0][symbols[0]] is again[1][symbols[0]]
    assert again[0][symbols[1]] is not again[1][symbols[1]]
    assert few.filed[symbols[2]] is few.filed[symbols[2]]
    for symbol in symbols:
        tags = first[symbol].tags(".*")
        assert again[0][symbol].tags(".*") == again[1][symbol].tags(".*") == tags
        assert len(tags) > 20
        assert few.segments[symbol].__dict__ == kept.segments[symbol].__dict__


@thorough
@pytest.mark.slow
def test_the_facts_panel_of_the_files_says_what_the_truth_says(
    collection: Path, truth: SyntheticMarket, filers: list[SyntheticFiler]
) -> None:
    """Every figure of the panel on four days of each company and on those of its restatements."""
    chosen = sampled(filers, 8)
    symbols = [filer.company.security.symbol for filer in chosen]
    panel = build_facts(load_filings(collection, symbols).companies).frame
    assert panel["symbol"].n_unique() == len(chosen)
    compared = 0
    for filer in chosen:
        symbol = filer.company.security.symbol
        mine = panel.filter((pl.col("symbol") == symbol) & (pl.col("metric") != "shares_outstanding"))
        days = sorted({filing.filed for filing in filer.filings})
        changes = [vintage.since for vintage in filer.vintages[1:]]
        for day in sorted({*days[:: max(1, len(days) // 4)], *changes, days[-1]}):
            known = mine.filter(pl.col("filed") <= day).sort("filed")
            latest = known.unique(["metric", "start", "end"], keep="last", maintain_order=True)
            for metric, start, end, value in latest.select("metric", "start", "end", "value").iter_rows():
                assert true_value(filer, metric, start, end, day) == pytest.approx(value), (symbol, metric, end, day)
            compared += latest.height
    assert compared > (30_000 if THOROUGH else 3_500)


def test_scores_spread_as_among_real_companies(market: SyntheticMarket) -> None:
    """Piotroski from 2 to 9, a tenth to a fifth above Beneish's line, some high accruals, some negative quality."""
    scores, manipulated, accruals, quality, mixes = [], [], [], [], []
    for filer in _filers(market):
        money = {name: values.astype(float) for name, values in filer.vintages[-1].money.items()}
        assets, revenue, income = money["total_assets"], money["revenue"], money["net_income"]
        cash_flow = money["operating_cash_flow"]
        accruals.append(((income - cash_flow) / assets)[4:])
        quality.append((cash_flow / income)[4:])
        if filer.company.security.sector == "Financial Services" or (revenue <= 0).any():
            continue
        debt, current = money["long_term_debt"], money["current_assets"] / money["current_liabilities"]
        margin, turnover = money["gross_profit"] / revenue, revenue / assets
        shares = filer.figures.shares

        def rose(values: np.ndarray) -> np.ndarray:
            return values[4:] > values[:-4]

        signals = [
            income[4:] > 0,
            cash_flow[4:] > 0,
            rose(income / assets),
            (cash_flow > income)[4:],
            rose(-debt / assets),
            rose(current),
            ~rose(shares),
            rose(margin),
            rose(turnover),
        ]
        scores.append(np.sum(signals, axis=0))
        soft = 1 - (money["current_assets"] + money["ppe_net"]) / assets
        wear = money["depreciation_amortization"] / (money["depreciation_amortization"] + money["ppe_net"])
        leverage = (debt + money["current_liabilities"]) / assets

        def index(values: np.ndarray) -> np.ndarray:
            return values[4:] / values[:-4]

        manipulated.append(
            -4.84
            + 0.92 * index(money["receivables"] / revenue)
            + 0.528 / index(margin)
            + 0.404 * index(soft)
            + 0.892 * index(revenue)
            + 0.115 / index(wear)
            - 0.172 * index(money["sga"] / revenue)
            + 4.679 * accruals[-1]
            - 0.327 * index(leverage)
        )
        parts = np.array([values for name, values in money.items() if name.startswith(f"{PRODUCT}:")])
        mixes.append(np.abs((parts[:, 4:] / revenue[4:]) - (parts[:, :-4] / revenue[:-4])).mean())
    counts = np.bincount(np.concatenate(scores), minlength=10)
    assert (counts[2:] > 0).all()
    assert counts[5:8].sum() > 0.5 * counts.sum()
    assert 0.08 < (np.concatenate(manipulated) > -1.78).mean() < 0.20
    assert 0.01 < (np.concatenate(accruals) > 0.05).mean() < 0.12
    assert 0.05 < (np.concatenate(quality) < 0).mean() < 0.25
    assert np.median(mixes) > 0.01
