"""Chosen tags against the calculation linkbases of filings: the lines that the filer itself adds up."""

from __future__ import annotations

from collections import defaultdict
from datetime import date
from pathlib import Path
from xml.etree import ElementTree

import pytest

from finskillbench.panels.filings.facts import build_facts
from finskillbench.sources.edgar.companyfacts import parse_companyfacts

XLINK, LINK = "{http://www.w3.org/1999/xlink}", "{http://www.xbrl.org/2003/linkbase}"
CASH = "NetCashProvidedByUsedInOperatingActivities"
FILINGS = [
    ("AAPL", "xbrl/xbrl/aapl/10k_2010/aapl-20101027_cal.xml", date(2010, 9, 25)),
    ("AAPL", "xbrl/xbrl/aapl/10k_2022/aapl-20220924_cal.xml", date(2022, 9, 24)),
    ("AAPL", "xbrl/xbrl/aapl/10q_2023/aapl-20230701_cal.xml", date(2023, 7, 1)),
    ("AAPL", "xbrl/xbrl/aapl/10k_2023/aapl-20230930_cal.xml", date(2023, 9, 30)),
    ("AAPL", "xbrl/attachments/aapl/20250329/aapl-20250329_cal.xml", date(2025, 3, 29)),
    ("AMZN", "xbrl/xbrl/special_cases/segments/amzn/amzn-20221231_cal.xml", date(2022, 12, 31)),
    ("MSFT", "xbrl/xbrl/msft/10k_2015/msft-20150731_cal.xml", date(2015, 6, 30)),
    ("NFLX", "xbrl/xbrl/nflx/2010/nflx-20100930_cal.xml", date(2010, 9, 30)),
    ("NFLX", "xbrl/xbrl/nflx/10k_2024/nflx-20240126_cal.xml", date(2023, 12, 31)),
    ("NFLX", "xbrl/xbrl/nflx/10q_2024/nflx-20241018_cal.xml", date(2024, 9, 30)),
]
FILES = {"AAPL": "full_2026-07/CIK0000320193"}
TOTALS = {
    "revenue": ("GrossProfit", "OperatingIncomeLoss"),
    "cost_of_revenue": ("GrossProfit", "OperatingIncomeLoss"),
    "depreciation_amortization": (CASH,),
    "total_liabilities": ("LiabilitiesAndStockholdersEquity",),
    "stockholders_equity": ("LiabilitiesAndStockholdersEquity",),
}
"""Metric to the totals that its line adds up to."""


def _sums(path: Path) -> dict[str, set[str]]:
    """Concept to those that it adds up from, without taxonomies."""
    found: dict[str, set[str]] = defaultdict(set)
    for link in ElementTree.parse(path).getroot().iter(f"{LINK}calculationLink"):
        concepts = {
            one.attrib[f"{XLINK}label"]: one.attrib[f"{XLINK}href"].partition("#")[2].partition("_")[2]
            for one in link.iter(f"{LINK}loc")
        }
        for arc in link.iter(f"{LINK}calculationArc"):
            found[concepts[arc.attrib[f"{XLINK}from"]]].add(concepts[arc.attrib[f"{XLINK}to"]])
    return found


@pytest.mark.parametrize(("symbol", "linkbase", "end"), FILINGS)
def test_chosen_tags_are_lines_that_the_filing_adds_up(realdata: Path, symbol: str, linkbase: str, end: date) -> None:
    """No metric of the report stands under a tag that the filer's own calculation does not add up to its total."""
    company = parse_companyfacts(
        realdata / "companyfacts" / f"{FILES.get(symbol, f'filtered_tags_2026-07/{symbol}')}.json.gz"
    )
    rows = build_facts({symbol: company}).frame.filter(end=end).sort("filed")
    report = rows.filter(metric="revenue")["accession"].first()
    sums, compared = _sums(realdata / linkbase), 0
    for metric, tag in rows.filter(accession=report, derived=False).select("metric", "tag").unique().iter_rows():
        lines = {line for total in TOTALS.get(metric, ()) for line in sums.get(total, ())}
        compared += bool(lines)
        assert not lines or tag in lines, metric
    assert compared
