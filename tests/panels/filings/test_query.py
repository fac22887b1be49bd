"""What was public on a day: every version as filed, what counts of each metric, and never anything filed later."""

from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

import orjson
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sampling import examples

from finskillbench.errors import InputError
from finskillbench.panels.filings.query import LARGEST_LIMIT, QUERIED, FactStore, FiledStore
from finskillbench.panels.filings.rows import MEMBERS, MEMBERS_AS_FILED, VISIBLE
from finskillbench.panels.filings.statements import FundamentalPanels

EMPTY = FundamentalPanels.empty().tables
Q1, Q2 = (date(2023, 1, 1), date(2023, 3, 31)), (date(2023, 4, 1), date(2023, 6, 30))
HALF, YEAR = (date(2023, 1, 1), date(2023, 6, 30)), (date(2023, 1, 1), date(2023, 12, 31))
TAGS = {"revenue": "Revenues", "net_income": "NetIncomeLoss", "total_assets": "Assets"}


def fact(
    metric: str,
    period: tuple[date | None, date],
    filed: date,
    value: float | None,
    duration: str = "quarterly",
    form: str = "10-Q",
    symbol: str = "ACME",
    parents: str = "",
) -> dict[str, Any]:
    return {
        "symbol": symbol,
        "metric": metric,
        "start": period[0],
        "end": period[1],
        "filed": filed,
        "value": value,
        "unit": "USD",
        "tag": "" if parents else TAGS[metric],
        "taxonomy": "us-gaap",
        "form": form,
        "accession": f"0000000001-{filed:%y}-{filed.timetuple().tm_yday:06d}",
        "fiscal_year": 2023,
        "fiscal_period": "Q1",
        "duration": duration,
        "derived": bool(parents),
        "parents": parents,
    }


def member(axis: str, segment: str, period: tuple[date, date], filed: date, value: float) -> dict[str, Any]:
    return {
        "symbol": "ACME",
        "axis": axis,
        "segment": segment,
        "start": period[0],
        "end": period[1],
        "duration": "quarterly",
        "value": value,
        "accession": f"0000000001-{filed:%y}-{filed.timetuple().tm_yday:06d}",
        "filed": filed,
        "derived": False,
    }


def filing(form: str, end: date, filed: date) -> dict[str, Any]:
    accession = f"0000000001-{filed:%y}-{filed.timetuple().tm_yday:06d}"
    return {"symbol": "ACME", "accession": accession, "form": form, "period_end": end, "filed": filed}


FILED_1, FILED_2, FILED_A, FILED_K = date(2023, 5, 2), date(2023, 8, 1), date(2023, 9, 4), date(2024, 2, 20)
FACTS = [
    fact("revenue", Q1, FILED_1, 100.0),
    fact("revenue", Q1, FILED_A, 90.0, form="10-Q/A"),
    fact("revenue", Q2, FILED_2, 120.0, parents="revenue half - revenue quarterly"),
    fact("revenue", Q2, FILED_K, 125.0, form="10-K"),
    fact("revenue", HALF, FILED_2, 220.0, "half"),
    fact("revenue", YEAR, FILED_K, 500.0, "annual", "10-K"),
    fact("net_income", Q1, FILED_1, None),
    fact("total_assets", (None, Q1[1]), FILED_1, 1000.0, "instant"),
    fact("total_assets", (None, YEAR[1]), FILED_K, 1200.0, "instant", "10-K"),
    fact("revenue", Q1, FILED_1, 7.0, symbol="BF-B"),
]
SEGMENTS = [
    member("product_segment", "Toys", Q1, FILED_1, 60.0),
    member("product_segment", "Books", Q1, FILED_1, 40.0),
    member("product_segment", "Toys & Games", Q1, FILED_K, 55.0),
    member("product_segment", "Books", Q1, FILED_K, 45.0),
    member("geographic_segment", "Americas", Q1, FILED_1, 100.0),
]
FILINGS = [
    filing("10-Q", Q1[1], FILED_1),
    filing("10-Q", Q2[1], FILED_2),
    filing("10-Q/A", Q1[1], FILED_A),
    filing("10-K", YEAR[1], FILED_K),
]


Rows = list[dict[str, Any]]


def store_of(facts: Rows, filings: Rows = FILINGS, segments: Rows = SEGMENTS) -> FactStore:
    return FactStore(*_tables(facts=facts, filings=filings, segments=segments))


def filed_of(facts: Rows, filings: Rows = FILINGS, segments: Rows = SEGMENTS) -> FiledStore:
    """Of the rows that are not derived."""
    filed = [row for row in facts if not row["derived"]]
    return FiledStore(*_tables(filed=filed, filings=filings, segments=segments))


def _tables(**rows: Rows) -> list[pl.DataFrame]:
    return [
        pl.DataFrame([{key: row[key] for key in EMPTY[name].columns} for row in each], schema=EMPTY[name].schema)
        for name, each in rows.items()
    ]


@pytest.fixture(scope="module")
def metrics() -> FactStore:
    return store_of(FACTS)


@pytest.fixture(scope="module")
def store() -> FiledStore:
    return filed_of(FACTS)


Values = Callable[..., list[float]]


@pytest.fixture
def values(store: FiledStore) -> Values:
    def ask(as_of: date, **arguments: Any) -> list[float]:
        return [row["value"] for row in store.query("ACME", as_of, **arguments)["facts"]]

    return ask


def test_a_restated_figure_is_shown_beside_the_one_it_replaces(values: Values) -> None:
    asked = {"period": "2023-03-31", "metrics": ["Revenues"]}
    assert values(FILED_1 - timedelta(days=1), **asked) == []
    assert values(FILED_1, **asked) == [100.0]
    assert values(FILED_A - timedelta(days=1), **asked) == [100.0]
    assert values(FILED_A, **asked) == [100.0, 90.0]


def test_a_quarter_that_no_filing_states_is_not_shown(values: Values) -> None:
    asked = {"period": "2023-06-30", "duration": "quarterly"}
    assert values(FILED_2, **asked) == []
    assert values(FILED_K, **asked) == [125.0]


def test_a_row_says_where_it_comes_from(store: FiledStore) -> None:
    (half,) = store.query("ACME", FILED_2, period="2023-06")["facts"]
    assert half == {
        "tag": "Revenues",
        "unit": "USD",
        "start": "2023-01-01",
        "end": "2023-06-30",
        "duration": "half",
        "value": 220.0,
        "form": "10-Q",
        "filed": "2023-08-01",
        "accession": "0000000001-23-000213",
        "taxonomy": "us-gaap",
        "fiscal_year": 2023,
        "fiscal_period": "Q1",
    }
    assert tuple(half) == QUERIED


def test_what_is_unknown_is_null_and_an_instant_has_no_start(store: FiledStore) -> None:
    facts = store.query("ACME", FILED_1)["facts"]
    assert {row["tag"]: (row["start"], row["value"]) for row in facts} == {
        "NetIncomeLoss": ("2023-01-01", None),
        "Revenues": ("2023-01-01", 100.0),
        "Assets": (None, 1000.0),
    }
    assert orjson.loads(orjson.dumps(facts)) == facts


def test_latest_period_first(values: Values) -> None:
    assert values(FILED_K, metrics=["Revenues"]) == [500.0, 220.0, 125.0, 100.0, 90.0]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"form": "10-K"}, [1200.0, 500.0, 125.0]),
        ({"form": "10-q/a"}, [90.0]),
        ({"form": "10-Q", "duration": "quarterly"}, [None, 100.0, 90.0]),
        ({"duration": "half"}, [220.0]),
        ({"period": "2023-12"}, [1200.0, 500.0]),
        ({"period": "2023", "duration": "instant"}, [1200.0, 1000.0]),
        ({"metrics": ["Assets", "NETINCOMELOSS"]}, [1200.0, 1000.0, None]),
        ({"metrics": ["total_assets"]}, []),
        ({"metrics": []}, []),
        ({"limit": 1}, [1200.0]),
    ],
)
def test_filters(values: Values, asked: dict[str, Any], expected: list[float]) -> None:
    assert values(date(2024, 3, 1), **asked) == expected


def test_a_cut_answer_says_how_much_there_is(store: FiledStore) -> None:
    answer = store.query("ACME", date(2024, 3, 1), limit=2)
    assert (answer["matching"], len(answer["facts"])) == (8, 2)
    assert answer["note"].startswith("the latest 2 of 8 rows; narrow by")
    assert "note" not in store.query("ACME", date(2024, 3, 1), limit=8)


def test_segments_of_the_latest_filing_replace_those_of_an_earlier_one(store: FiledStore) -> None:
    def split(as_of: date, axis: str = "product_segment", **asked: Any) -> dict[str, float]:
        rows = store.query("ACME", as_of, axis=axis, **asked)["segments"]
        assert all(tuple(row) == MEMBERS_AS_FILED and row["axis"] == axis for row in rows)
        return {row["segment"]: row["value"] for row in rows}

    assert split(FILED_A) == {"Toys": 60.0, "Books": 40.0}
    assert split(FILED_K) == {"Toys & Games": 55.0, "Books": 45.0}
    assert split(FILED_K, "geographic_segment") == {"Americas": 100.0}
    assert split(FILED_K, form="10-K", period="2023-03-31") == {"Toys & Games": 55.0, "Books": 45.0}
    assert split(FILED_K, form="10-Q") == {}
    assert split(FILED_K, duration="annual") == {}


def test_what_is_not_there_is_named_with_what_is(store: FiledStore) -> None:
    answer = store.query("ACME", FILED_A, period="2023-09-30", metrics=["Revenues", "EBITDA"], axis="product_segment")
    assert answer["facts"] == answer["segments"] == []
    assert answer["missing"] == {
        "Revenues": "on file, but not for this period, form and duration",
        "EBITDA": "not on file",
    }
    assert answer["available"] == {
        "tags": ["Assets", "NetIncomeLoss", "Revenues"],
        "periods": ["2023-06-30", "2023-03-31"],
        "durations": ["instant", "quarterly", "half"],
        "forms": ["10-Q", "10-Q/A"],
        "axes": ["geographic_segment", "product_segment"],
        "latest_filings": [
            {"form": "10-Q/A", "period_end": "2023-03-31", "filed": "2023-09-04", "accession": "0000000001-23-000247"},
            {"form": "10-Q", "period_end": "2023-06-30", "filed": "2023-08-01", "accession": "0000000001-23-000213"},
            {"form": "10-Q", "period_end": "2023-03-31", "filed": "2023-05-02", "accession": "0000000001-23-000122"},
        ],
    }
    before = store.query("ACME", date(2020, 1, 1), period="2019")
    assert before["matching"] == 0
    assert not any(before["available"].values())


def test_the_nearest_periods_are_named() -> None:
    ends = [date(2000 + year, 12, 31) for year in range(24)]
    rows = [fact("total_assets", (None, end), end + timedelta(days=50), 1.0, "instant") for end in ends]
    answer = filed_of(rows).query("ACME", date(2024, 6, 1), period="2010-06-30")
    assert answer["available"]["periods"] == [f"{year}-12-31" for year in range(2015, 2003, -1)]


def test_tickers_are_found_in_any_case_and_with_a_point(store: FiledStore) -> None:
    assert store.query("bf.b", FILED_1)["ticker"] == "BF-B"
    assert store.query(" acme ", FILED_1)["ticker"] == "ACME"
    assert store.symbols == ("ACME", "BF-B")


@pytest.mark.parametrize(
    ("symbol", "asked", "words"),
    [
        ("XYZ", {}, "no facts of 'XYZ'; choose one of: ACME, BF-B"),
        ("X" * 5000, {}, "XXX...'; choose one of: ACME"),
        ("ACME", {"period": "yesterday"}, "'yesterday' is not the end of a period; give its day YYYY-MM-DD"),
        ("ACME", {"period": "2023-02-30"}, "is not the end of a period"),
        ("ACME", {"period": "0000"}, "is not the end of a period"),
        ("ACME", {"period": "2023-13"}, "is not the end of a period"),
        ("ACME", {"period": "٢٠٢٣"}, "is not the end of a period"),
        ("ACME", {"duration": "monthly"}, "duration 'monthly' is unknown; choose one of: instant, quarterly"),
        ("ACME", {"axis": "colour"}, "axis 'colour' is unknown; choose one of: product_segment, geographic_segment"),
        ("ACME", {"limit": 0}, "between 1 and 500, not 0"),
        ("ACME", {"limit": LARGEST_LIMIT + 1}, "between 1 and 500, not 501"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_line(
    store: FiledStore, symbol: str, asked: dict[str, Any], words: str
) -> None:
    with pytest.raises(InputError, match=words.replace("(", r"\(")) as caught:
        store.query(symbol, FILED_1, **asked)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_many_tickers_are_not_all_named() -> None:
    rows = [fact("revenue", Q1, FILED_1, 1.0, symbol=f"{'AB'[i % 2]}{i:03d}") for i in range(100)]
    with pytest.raises(InputError, match=r"one of: B001, B003, .*, B023 and 88 more"):
        filed_of(rows).query("BBB", FILED_1)


def test_no_company_at_all() -> None:
    with pytest.raises(InputError, match="one of: no company"):
        filed_of([], [], []).query("ACME", FILED_1)


def test_a_quarter_is_derived_until_it_is_reported(metrics: FactStore) -> None:
    def quarter(as_of: date) -> list[tuple[Any, ...]]:
        rows = metrics.visible("ACME", as_of, Q2[1])["facts"]
        return [(row["value"], row["derived"]) for row in rows if row["duration"] == "quarterly"]

    assert quarter(FILED_2) == [(120.0, True)]
    assert quarter(FILED_K) == [(125.0, False)]


def test_of_a_metric_the_latest_version_by_the_day_counts(metrics: FactStore) -> None:
    def revenue(as_of: date) -> list[float]:
        rows = metrics.visible("ACME", as_of)["facts"]
        return [row["value"] for row in rows if (row["metric"], row["end"]) == ("revenue", "2023-03-31")]

    assert revenue(FILED_1 - timedelta(days=1)) == []
    assert revenue(FILED_A - timedelta(days=1)) == [100.0]
    assert revenue(FILED_A) == [90.0]


def test_the_facts_of_an_episode_are_all_that_was_current_since_a_day(metrics: FactStore) -> None:
    held = metrics.visible("ACME", FILED_K, Q2[1])
    assert [row["value"] for row in held["facts"]] == [500.0, 1200.0, 220.0, 125.0]
    assert all(tuple(row) == VISIBLE for row in held["facts"])
    assert held["segments"] == []
    everything = metrics.visible("ACME", FILED_K)
    assert len(everything["facts"]) == 7
    assert [row["segment"] for row in everything["segments"]] == ["Americas", "Toys & Games", "Books"]
    assert all(tuple(row) == MEMBERS for row in everything["segments"])


_DAYS = st.dates(date(2022, 12, 1), date(2024, 6, 1))
_ROWS = st.lists(
    st.builds(
        fact,
        metric=st.sampled_from(sorted(TAGS)),
        period=st.sampled_from([Q1, Q2, HALF, YEAR, (None, Q1[1])]),
        filed=_DAYS,
        value=st.floats(-1e9, 1e9),
        symbol=st.sampled_from(["ACME", "BETA"]),
        parents=st.sampled_from(["", "", "parents"]),
    ),
    max_size=40,
)
_MEMBERS = st.lists(
    st.builds(
        member,
        axis=st.sampled_from(["product_segment", "geographic_segment"]),
        segment=st.sampled_from("abcd"),
        period=st.sampled_from([Q1, Q2]),
        filed=_DAYS,
        value=st.floats(0, 1e9),
    ),
    max_size=20,
)


@settings(max_examples=examples(200))
@given(facts=_ROWS, segments=_MEMBERS, as_of=_DAYS)
def test_against_a_plain_search_and_never_a_row_filed_later(
    facts: list[dict[str, Any]], segments: list[dict[str, Any]], as_of: date
) -> None:
    # One row of each kind a day: that is how the panel is made.
    facts = list(
        {tuple(row[key] for key in ("symbol", "metric", "start", "end", "filed")): row for row in facts}.values()
    )
    store = store_of(facts, [], segments)
    for symbol in store.symbols:
        current: dict[tuple[Any, ...], dict[str, Any]] = {}
        for row in sorted(facts, key=lambda row: row["filed"]):
            if row["symbol"] == symbol and row["filed"] <= as_of:
                current[row["metric"], row["start"], row["end"]] = row
        found = store.visible(symbol, as_of)
        key = ("metric", "start", "end", "filed", "value")
        assert sorted(str([row[name] for name in key]) for row in found["facts"]) == sorted(
            str([row[n].isoformat() if isinstance(row[n], date) else row[n] for n in key]) for row in current.values()
        )
        assert all(row["filed"] <= as_of.isoformat() for row in found["segments"])
        latest = {
            row["filed"] for row in found["segments"] if row["axis"] == "product_segment" and row["end"] == "2023-03-31"
        }
        assert len(latest) <= 1
    filed = filed_of(facts, [], segments)
    for symbol in filed.symbols:
        stated = [row for row in facts if row["symbol"] == symbol and not row["derived"] and row["filed"] <= as_of]
        shown = filed.query(symbol, as_of)["facts"]
        assert sorted((row["tag"], row["end"], row["filed"], row["value"]) for row in shown) == sorted(
            (row["tag"], str(row["end"]), str(row["filed"]), row["value"]) for row in stated
        )
