"""The facts panel: durations, forms, units, filings; `test_figures` says what it makes of filed figures."""

from collections.abc import Iterable, Mapping
from datetime import date, timedelta
from pathlib import Path

import polars as pl
import pytest

from finskillbench.panels.filings.facts import PANEL_SCHEMA, FactsPanel, build_facts, duration_class
from finskillbench.panels.filings.quarters import FILINGS_SCHEMA, build_filings
from finskillbench.sources.edgar.companyfacts import FACTS_SCHEMA, EdgarFacts
from finskillbench.sources.edgar.submissions import FILINGS_SCHEMA as SUBMISSIONS_SCHEMA
from finskillbench.sources.edgar.submissions import Submissions

YEAR = ("2023-01-01", "2023-12-31")
NINE = ("2023-01-01", "2023-09-30")
HALF = ("2023-01-01", "2023-06-30")
FIRST = ("2023-01-01", "2023-03-31")
LAST_HALF = ("2022-01-01", "2022-06-30")
SECOND = ("2023-04-01", "2023-06-30")
THIRD = ("2023-07-01", "2023-09-30")
FOURTH = ("2023-10-01", "2023-12-31")
AT = (None, "2023-03-31")

Fact = tuple[str, tuple[str | None, str], float, str]
"""Tag, period, value, day of filing; the accession follows from the day."""


def rows(facts: Iterable[Fact], *, unit: str = "USD", form: str = "10-Q") -> pl.DataFrame:
    records: list[dict[str, object]] = []
    for tag, (start, end), value, filed in facts:
        taxonomy, _, name = tag.rpartition(":")
        records.append(
            {
                "taxonomy": taxonomy or "us-gaap",
                "tag": name,
                "unit": unit,
                "start": start and date.fromisoformat(start),
                "end": date.fromisoformat(end),
                "value": float(value),
                "accession": f"0000000001-{filed[2:4]}-{filed[5:7]}{filed[8:]}00",
                "fiscal_year": 2023,
                "fiscal_period": "Q1",
                "form": form,
                "filed": date.fromisoformat(filed),
                "frame": None,
            }
        )
    return pl.DataFrame(records, schema=FACTS_SCHEMA)


def panel(*frames: pl.DataFrame) -> FactsPanel:
    return build_facts({"ONE": EdgarFacts(1, "One", None, Path("ONE.json"), pl.concat(frames), ())})


def versions(frame: pl.DataFrame, metric: str, period: tuple[str | None, str]) -> list[tuple[float, str, bool]]:
    """value, filed, derived of a period, by filing date."""
    start, end = (day and date.fromisoformat(day) for day in period)
    found = frame.filter((pl.col("metric") == metric) & pl.col("start").eq_missing(start) & (pl.col("end") == end))
    return [(value, str(filed), derived) for value, filed, derived in found["value", "filed", "derived"].rows()]


@pytest.mark.parametrize(
    ("days", "kind"),
    [
        (None, "instant"),
        (69, "other"),
        (84, "quarterly"),  # 12 weeks
        (91, "quarterly"),
        (119, "quarterly"),  # 17 weeks
        (140, "other"),
        (168, "half"),  # 24 weeks
        (184, "half"),
        (252, "nine_months"),  # 36 weeks
        (274, "nine_months"),
        (364, "annual"),
        (371, "annual"),  # 53 weeks
        (400, "other"),
    ],
)
def test_durations_come_from_the_dates(days: int | None, kind: str) -> None:
    end = date(2023, 12, 30)
    start = None if days is None else end - timedelta(days=days - 1)
    frame = pl.DataFrame({"start": [start], "end": [end]}, schema={"start": pl.Date, "end": pl.Date})
    assert frame.select(duration_class(pl.col("start"), pl.col("end"))).item() == kind


def test_figures_under_two_tags_are_not_subtracted_nor_averages_nor_earnings_per_share() -> None:
    frame = panel(
        rows([("SalesRevenueNet", NINE, 45, "2023-11-01"), ("Revenues", YEAR, 70, "2024-02-20")]),
        rows([("EarningsPerShareDiluted", p, 1, "2024-02-20") for p in (NINE, YEAR)], unit="USD/shares"),
        rows(
            [("WeightedAverageNumberOfDilutedSharesOutstanding", p, 9, "2024-02-20") for p in (NINE, YEAR)],
            unit="shares",
        ),
    ).frame
    assert frame.filter("derived").is_empty()
    assert frame.height == 6


def test_a_filing_is_judged_by_all_its_periods_though_another_of_the_day_repeats_them() -> None:
    """HRI amended a report on the day of the next: the cover's count is not that of the balance sheet."""
    cover, sheet = "dei:EntityCommonStockSharesOutstanding", "CommonStockSharesOutstanding"
    first = rows([(cover, (None, "2023-06-30"), 1_015, "2023-07-16")], unit="shares")
    day = rows(
        [(cover, (None, "2023-11-02"), 990, "2023-11-09"), (sheet, (None, "2023-06-30"), 1_000, "2023-11-09")],
        unit="shares",
    )
    later = day.filter(pl.col("taxonomy") == "dei").with_columns(accession=pl.lit("0000000001-23-110999"))
    frame = panel(first, day, later).frame
    assert versions(frame, "shares_outstanding", (None, "2023-06-30")) == [(1_015, "2023-07-16", False)]


def test_other_forms_units_and_kinds_stay_out() -> None:
    built = panel(
        rows([("NetIncomeLoss", FIRST, 100, "2023-05-01")]),
        rows([("NetIncomeLoss", FIRST, 101, "2023-06-01")], form="DEF 14A"),
        rows([("NetIncomeLoss", FIRST, 102, "2023-07-01")], form="8-K"),
        rows([("Revenues", FIRST, 103, "2023-05-01")], unit="EUR"),
        rows([("Assets", FIRST, 104, "2023-05-01")]),
        rows([("WeightedAverageNumberOfDilutedSharesOutstanding", FIRST, 0, "2023-05-01")], unit="shares"),
    )
    assert built.frame["value"].to_list() == [100.0]
    assert built.notes == (
        "ONE: 1 figures in EUR where USD is expected: left out.",
        "ONE: 1 figures of total_assets over the wrong kind of period: left out.",
        "ONE: 1 figures of WeightedAverageNumberOfDilutedSharesOutstanding in 0000000001-23-050100 are not positive: "
        "left out.",
    )


def test_total_assets_are_never_nothing() -> None:
    end = (None, "2023-03-31")
    equity = [("StockholdersEquity", end, 5, "2023-05-01"), ("LongTermDebtNoncurrent", end, 0, "2023-05-01")]
    built = panel(rows([("Assets", end, 0, "2023-05-01"), *equity]))
    assert set(built.frame["metric"]) == {"stockholders_equity", "long_term_debt"}
    assert built.notes == ("ONE: 1 figures of Assets in 0000000001-23-050100 are not positive: left out.",)


def test_a_company_without_usable_facts_is_named() -> None:
    built = panel(rows([("Revenues", FIRST, 1, "2023-05-01")], form="8-K"))
    assert built.frame.is_empty()
    assert dict(built.frame.schema) == PANEL_SCHEMA
    assert "ONE: no usable fact of" in built.notes[0]
    assert build_facts({}).frame.is_empty()


def test_filings_are_listed_and_completed_from_the_facts() -> None:
    frame = panel(
        rows([("Assets", (None, "2023-03-31"), 1, "2023-05-01"), ("Assets", (None, "2022-12-31"), 2, "2023-05-01")]),
        rows([("dei:EntityCommonStockSharesOutstanding", (None, "2023-04-25"), 5, "2023-05-01")], unit="shares"),
    ).frame
    listed = pl.DataFrame(
        [
            ("0000000001-20-000001", "10-K", date(2020, 2, 1), date(2019, 12, 31), None),
            ("0000000001-20-000002", "8-K", date(2020, 2, 2), date(2020, 2, 2), None),
        ],
        schema=SUBMISSIONS_SCHEMA,
        orient="row",
    )
    filer = Submissions(1, "One", ("ONE",), None, listed, (), Path("ONE.json"))
    filings = build_filings({"ONE": filer, "TWO": filer}, frame)
    assert dict(filings.schema) == FILINGS_SCHEMA
    assert filings.rows() == [
        ("ONE", "0000000001-20-000001", "10-K", date(2019, 12, 31), date(2020, 2, 1)),
        ("ONE", "0000000001-23-050100", "10-Q", date(2023, 3, 31), date(2023, 5, 1)),
    ]
    assert build_filings({}, frame).height == 1


def test_mapping_order_does_not_matter() -> None:
    one = EdgarFacts(1, "One", None, Path("1"), rows([("Assets", (None, "2023-03-31"), 1, "2023-05-01")]), ())
    two = EdgarFacts(2, "Two", None, Path("2"), rows([("Assets", (None, "2023-03-31"), 2, "2023-05-01")]), ())
    forward: Mapping[str, EdgarFacts] = {"A": one, "B": two}
    assert build_facts(forward).frame.equals(build_facts(dict(reversed(forward.items()))).frame)
