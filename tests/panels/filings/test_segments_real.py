"""Revenue by segment of real filings, by value."""

from datetime import date
from pathlib import Path

import orjson
import polars as pl
import pytest
from tests.panels.filings.test_segments import NO_FACTS

from finskillbench.panels.filings.quarters import FILINGS_SCHEMA
from finskillbench.panels.filings.segments.revenue import REVENUE_TAGS, SegmentsPanel, build_segments
from finskillbench.sources.edgar.instance import Instance, instance_files, parse_instance
from finskillbench.sources.files import read_bytes

KNOWN = [
    # (symbol, accession, axis, segment, start, end, USD millions), as tagged; all also read apart with ElementTree.
    ("AAPL", "0000320193-23-000106", "product_segment", "iPhone", "2022-09-25", "2023-09-30", 200_583),
    ("AAPL", "0000320193-23-000106", "product_segment", "Mac", "2022-09-25", "2023-09-30", 29_357),
    ("AAPL", "0000320193-23-000106", "product_segment", "iPad", "2022-09-25", "2023-09-30", 28_300),
    (
        "AAPL",
        "0000320193-23-000106",
        "product_segment",
        "Wearables Home and Accessories",
        "2022-09-25",
        "2023-09-30",
        39_845,
    ),
    ("AAPL", "0000320193-23-000106", "product_segment", "Service", "2022-09-25", "2023-09-30", 85_200),
    ("AAPL", "0000320193-23-000106", "geographic_segment", "China", "2022-09-25", "2023-09-30", 72_559),
    ("AAPL", "0000320193-24-000123", "product_segment", "iPhone", "2023-10-01", "2024-09-28", 201_183),
    ("AAPL", "0000320193-24-000123", "product_segment", "Service", "2023-10-01", "2024-09-28", 96_169),
    ("AAPL", "0000320193-24-000123", "geographic_segment", "United States", "2023-10-01", "2024-09-28", 142_196),
    # Fourth quarters are differences: 200,583 - 156,778, and 85,200 - 62,886.
    ("AAPL", "0000320193-23-000106", "product_segment", "iPhone", "2023-07-02", "2023-09-30", 43_805),
    ("AAPL", "0000320193-23-000106", "product_segment", "Service", "2023-07-02", "2023-09-30", 22_314),
    ("AAPL", "0000320193-23-000077", "product_segment", "iPhone", "2023-04-02", "2023-07-01", 39_669),
    ("AAPL", "0000320193-25-000057", "product_segment", "Service", "2024-12-29", "2025-03-29", 26_645),
    ("AMZN", "0001018724-23-000004", "product_segment", "Amazon Web Services", "2022-01-01", "2022-12-31", 80_096),
    ("AMZN", "0001018724-23-000004", "geographic_segment", "Germany", "2022-01-01", "2022-12-31", 33_598),
    ("AMZN", "0001018724-25-000004", "product_segment", "Advertising", "2024-01-01", "2024-12-31", 56_214),
    ("KO", "0000021344-25-000011", "product_segment", "Concentrate Operations", "2024-01-01", "2024-12-31", 27_725),
    ("KO", "0000021344-25-000011", "geographic_segment", "United States", "2024-01-01", "2024-12-31", 18_362),
    ("NFLX", "0001065280-24-000030", "geographic_segment", "EMEA", "2023-01-01", "2023-12-31", 10_556.487),
    ("NFLX", "0001065280-24-000287", "geographic_segment", "Asia Pacific", "2024-07-01", "2024-09-30", 1_127.869),
    ("PG", "0000080424-25-000076", "product_segment", "Beauty", "2024-07-01", "2025-06-30", 14_964),
    # 6,662 - 4,980.
    ("PG", "0000080424-25-000076", "product_segment", "Grooming", "2025-04-01", "2025-06-30", 1_682),
    ("XOM", "0000034088-25-000042", "product_segment", "Other Revenue", "2025-04-01", "2025-06-30", 567),
    ("NVDA", "0001045810-25-000023", "product_segment", "Compute", "2024-01-29", "2025-01-26", 102_196),
    ("GOOGL", "0001652044-25-000014", "product_segment", "Google Cloud", "2024-01-01", "2024-12-31", 43_229),
    ("MSFT", "0001193125-15-272806", "product_segment", "Xbox", "2014-07-01", "2015-06-30", 9_121),
    ("WMT", "0000104169-25-000021", "product_segment", "Walmart US", "2024-02-01", "2025-01-31", 465_009),
    ("JNJ", "0000200406-25-000178", "product_segment", "Med Tech", "2025-03-31", "2025-06-29", 8_541),
]


@pytest.fixture(scope="module")
def real(realdata: Path) -> SegmentsPanel:
    """The panel of all real documents; accession numbers and dates straight from the company facts."""
    instances: dict[str, list[Instance]] = {}
    for path in instance_files(realdata / "xbrl"):
        parsed = parse_instance(path, tags=REVENUE_TAGS)
        instances.setdefault(str(parsed.symbol), []).append(parsed)
    ends: dict[tuple[str, str, str, str], str] = {}
    for symbol in instances:
        path = realdata / "companyfacts" / "filtered_tags_2026-07" / f"{symbol}.json.gz"
        for taxonomy in orjson.loads(read_bytes(path))["facts"].values() if path.exists() else ():
            for tag in taxonomy.values():
                for row in (row for unit in tag["units"].values() for row in unit):
                    key = (symbol, row["accn"], row["form"], row["filed"])
                    ends[key] = max(ends.get(key, ""), row["end"])
    rows = [
        (symbol, number, form, date.fromisoformat(end), date.fromisoformat(filed))
        for (symbol, number, form, filed), end in ends.items()
    ]
    return build_segments(instances, NO_FACTS, pl.DataFrame(rows, schema=FILINGS_SCHEMA, orient="row"))


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: f"{known[0]}-{known[3]}-{known[5]}")
def test_known_figures(real: SegmentsPanel, known: tuple[str, str, str, str, str, str, float]) -> None:
    symbol, accession, axis, segment, start, end, millions = known
    found = real.frame.filter(
        symbol=symbol,
        accession=accession,
        axis=axis,
        segment=segment,
        start=date.fromisoformat(start),
        end=date.fromisoformat(end),
    )
    assert found["value"].to_list() == pytest.approx([millions * 1e6], rel=1e-12)


@pytest.mark.parametrize(
    ("accession", "total"), [("0000320193-23-000106", 383_285e6), ("0000320193-24-000123", 391_035e6)]
)
def test_apples_products_and_places_are_its_revenue(real: SegmentsPanel, accession: str, total: float) -> None:
    year = real.frame.filter(accession=accession, duration="annual")
    last = year.filter(pl.col("end") == pl.col("end").max())
    sums = last.group_by("axis").agg(pl.len(), pl.col("value").sum()).sort("axis")
    assert sums.rows() == [("geographic_segment", 3, total), ("product_segment", 5, total)]


def test_every_real_set_is_of_one_filing_and_never_of_the_future(real: SegmentsPanel) -> None:
    frame = real.frame
    assert (frame["filed"] > frame["end"]).all()
    assert frame.select("symbol", "axis", "start", "end", "accession", "segment").is_unique().all()
    assert frame["symbol"].n_unique() == 13
    sizes = frame.group_by("symbol", "axis", "start", "end", "accession").len()["len"]
    assert sizes.min() is not None
    assert sizes.min() >= 2  # pyright: ignore[reportOperatorIssue]
    # TSLA has no company facts in this folder, so that its three documents belong to no known filing.
    assert [note[:4] for note in real.notes] == ["TSLA"] * 3
