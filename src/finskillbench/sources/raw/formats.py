"""Formats of a raw collection: every file and field that is read.

`docs/raw-data.md` and the README of `finskillbench data template` are generated from here. A test compares the
documented fields with those that the readers use.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from finskillbench.arrays import SECTORS
from finskillbench.sources.companies.constituents import GICS_SECTORS
from finskillbench.sources.market.fred import SERIES


@dataclass(frozen=True, slots=True)
class RawFormat:
    """One format.

    folder : in the collection, "" for its root; other : alternative folder. file : pattern of file names.
    needed : data that require it. what : description. header : first line of the shortest file.
    fields : name to meaning; optional ones begin with "optional: ". required : its half cannot be built without it.
    """

    folder: str
    file: str
    needed: str
    what: str
    fields: Mapping[str, str]
    header: str = ""
    other: str = ""
    required: bool = False

    @property
    def path(self) -> str:
        """Return the path pattern of its files."""
        return f"{self.folder}/{self.file}" if self.folder else self.file

    def in_a_line(self) -> str:
        """Return path and fields in one line, for findings."""
        return f"{self.path}: {self.header or ', '.join(self.fields)}"


_ENTRIES = 'a list of {"end": "YYYY-MM-DD", "v": number}, by end'

UNIVERSE = RawFormat(
    "",
    "universe.json",
    "nothing; without it the universe is the published one, or, if the files do not support that, every name of "
    "constituents.csv with prices and statements",
    "Names to use, by sector, and alternates for names that cannot be used.",
    {
        "sectors.SECTOR.names": f"symbols to take; SECTOR is one of {', '.join(SECTORS)}",
        "sectors.SECTOR.alternates": "optional: replacement symbols, in order of preference",
        "securities.SYMBOL.name": "optional record: the company's name",
        "securities.SYMBOL.sector": "in the record: the sector under which it is listed",
        "securities.SYMBOL.sub_sector": "in the record: industry",
        "securities.SYMBOL.cik": "optional: number of the filer at the SEC, ten digits, as text",
        "securities.SYMBOL.isin": "optional: text",
        "securities.SYMBOL.cusip": "optional: text",
        "securities.SYMBOL.exchange": "optional: text",
        "securities.SYMBOL.country": "optional: text",
        "securities.SYMBOL.date_added": "optional: YYYY-MM-DD",
    },
    '{"sectors": {"Technology": {"names": ["AAPL"], "alternates": ["IBM"]}}}',
)
CONSTITUENTS = RawFormat(
    "constituents",
    "constituents.csv",
    "nothing; it names companies, and gives sectors if there is no universe.json",
    "The constituents of an index with GICS sectors; other columns are allowed.",
    {
        "Symbol": "ticker; BF.B and BF-B are the same",
        "Security": "the company's name",
        "GICS Sector": ", ".join(GICS_SECTORS),
        "GICS Sub-Industry": "text",
        "Date added": "optional: YYYY-MM-DD",
        "CIK": "optional: number of the filer at the SEC",
    },
    "Symbol,Security,GICS Sector,GICS Sub-Industry,Date added,CIK",
)
PRICES = RawFormat(
    "prices",
    "[SET/]TICKER.csv[.gz]",
    "portfolio construction and risk management",
    "Daily prices as Yahoo Finance serves them, a file per ticker. Several downloads, in a folder each, are joined. "
    "Sorted by date, a row per session, at least two full calendar years: every date needs a year of history.",
    {
        "Date": "YYYY-MM-DD, or with a time and an offset; `Price` in yfinance's header of three lines",
        "Open": "USD; 0 or empty if not recorded",
        "High": "USD, not below Low",
        "Low": "USD",
        "Close": "USD, positive; adjusted for splits, and for dividends if there is no Adj Close",
        "Adj Close": "optional: USD, adjusted for splits and dividends",
        "Volume": "shares; may be empty. A file without Open, High, Low and Volume is skipped",
        "Dividends": "optional: USD per share on the ex-dividend session, else 0",
        "Stock Splits": "optional: new shares for one old on the session, else 0",
        "Capital Gains": "optional: not used",
        "Symbol": "optional: the ticker of every row; `StockName` or `Ticker` likewise",
    },
    "Date,Open,High,Low,Close,Volume",
    required=True,
)
FIVE_FACTORS = RawFormat(
    "famafrench",
    "*5_factors*daily*.csv[.gz]",
    "portfolio construction and risk management",
    "The five factors of Kenneth R. French's data library, daily, in per cent; dates YYYYMMDD or YYYY-MM-DD; -99.99 is "
    "missing. They must reach the last session of the last full year of the prices.",
    {
        "Mkt-RF": "per cent",
        "SMB": "per cent",
        "HML": "per cent",
        "RMW": "per cent",
        "CMA": "per cent",
        "RF": "per cent a day",
    },
    ",Mkt-RF,SMB,HML,RMW,CMA,RF",
    "french",
    required=True,
)
MOMENTUM = RawFormat(
    "famafrench",
    "*momentum*daily*.csv[.gz]",
    "portfolio construction and risk management",
    "The library's momentum factor, daily, on the same dates.",
    {"Mom": "per cent"},
    ",Mom",
    "french",
    required=True,
)
FRED = RawFormat(
    "fred",
    "[SET/]SERIES.csv[.gz]",
    "portfolio construction and risk management, which need DGS3MO, the risk-free rate; other series may be absent",
    f"A file per series of the Federal Reserve Bank of St. Louis: {', '.join(SERIES)}.",
    {"observation_date": "YYYY-MM-DD; `date` in an extract", "SERIES": "the value; empty or `.` on holidays"},
    "observation_date,DGS3MO",
    required=True,
)
STATEMENTS = RawFormat(
    "statements_derived",
    "TICKER.json",
    "portfolio construction and risk management: market capitalisations, and the views behind expected returns",
    "A company's published figures in USD and shares, without filing dates: each counts as known 90 days after its "
    "end. At least 8 quarters of net income, one entry of equity and one share count.",
    {
        "symbol": "the ticker of the file's name",
        "name": "optional: the company's name",
        "cik": "optional: number of the filer at the SEC",
        "profile.exchange": "optional: text",
        "quarterly.netIncome": _ENTRIES,
        "quarterly.eps": f"{_ENTRIES}; may be empty",
        "annual.netIncome": f"{_ENTRIES}; gives fourth quarters",
        "annual.eps": f"{_ENTRIES}; may be empty",
        "balances.equity": _ENTRIES,
        "dilutedShares": f"{_ENTRIES}, positive",
        "sharesLatest": 'optional: one {"end", "v"}: shares outstanding last',
    },
    '{"symbol": "AAPL", "quarterly": {"netIncome": [{"end": "2024-03-31", "v": 1000000}], "eps": []}, "annual": '
    '{"netIncome": [], "eps": []}, "balances": {"equity": []}, "dilutedShares": []}',
    "statements",
    required=True,
)
COMPANY_FACTS = RawFormat(
    "companyfacts",
    "CIK##########.json[.gz] or TICKER.json[.gz]",
    "fundamental analysis",
    "A filer's facts as the SEC's companyfacts API serves them, in folders of any depth.",
    {
        "cik": "number of the filer",
        "entityName": "its name",
        "ticker": "optional: added by a collector",
        "facts.TAXONOMY.TAG.units.UNIT[]": "rows, with the fields below; UNIT: USD, USD/shares or shares, in any case",
        "start": "first day of a flow; absent for an instant",
        "end": "last day",
        "val": "number",
        "accn": "accession, 0000000000-00-000000",
        "fy": "optional: fiscal year of the filing",
        "fp": "optional: fiscal period of the filing",
        "form": "10-Q, 10-K, 10-QT, 10-KT, 20-F, 40-F or an amendment; rows of other forms are skipped unchecked",
        "filed": "day it was filed",
        "frame": "optional: not used",
    },
    '{"cik": 320193, "entityName": "Apple Inc.", "facts": {"us-gaap": {"Assets": {"units": {"USD": [...]}}}}}',
    required=True,
)
SUBMISSIONS = RawFormat(
    "submissions",
    "CIK##########.json[.gz]",
    "nothing; without it filings are those named in company facts",
    "A filer's list of filings as the SEC's submissions API serves it; the lists are of equal length.",
    {
        "cik": "number of the filer",
        "name": "its name",
        "tickers": "its tickers",
        "sic": "optional: industry code",
        "filings.recent.accessionNumber": "0000000000-00-000000",
        "filings.recent.form": "form",
        "filings.recent.filingDate": "YYYY-MM-DD",
        "filings.recent.reportDate": "YYYY-MM-DD, or empty",
        "filings.recent.acceptanceDateTime": "YYYY-MM-DDTHH:MM:SS.000Z",
        "filings.files": "further lists; those in the same folder (CIK##########-submissions-###.json) are read too",
    },
    '{"cik": "320193", "name": "Apple Inc.", "tickers": ["AAPL"], "filings": {"recent": {"accessionNumber": [...]}}}',
)
INSTANCES = RawFormat(
    "xbrl",
    "ACCESSION.xml, .htm, .html or .xhtml, [.gz]",
    "revenue by segment in fundamental analysis",
    "XBRL instances or inline XBRL documents as filed, anywhere in the collection. The contexts of each name the CIK; "
    "the accession is in the name of the file or of a parent folder.",
    {},
    "XBRL 2.1 instance",
)

FORMATS = (
    UNIVERSE,
    CONSTITUENTS,
    PRICES,
    FIVE_FACTORS,
    MOMENTUM,
    FRED,
    STATEMENTS,
    COMPANY_FACTS,
    SUBMISSIONS,
    INSTANCES,
)
MARKET = (PRICES, FIVE_FACTORS, MOMENTUM, FRED, STATEMENTS)
"""Formats of portfolio construction and risk management."""
FILINGS = (COMPANY_FACTS, SUBMISSIONS, INSTANCES)
"""Formats of fundamental analysis."""
TEMPLATE = Path(__file__).parent / "template"
"""Small files of every format, of two fictional companies."""


def documentation() -> str:
    """Return every format as Markdown."""
    parts = [_section(one) for one in FORMATS]
    return "\n".join(parts)


def _section(one: RawFormat) -> str:
    also = f" (the folder may be called `{one.other}`)" if one.other else ""
    lines = [f"## {one.path}", "", f"{one.what}{also}", f"Needed for: {one.needed}.", ""]
    if one.fields:
        lines += [
            "| field | holds |",
            "|---|---|",
            *(f"| {name} | {holds} |" for name, holds in one.fields.items()),
            "",
        ]
    if one.header:
        lines += ["Beginning of the shortest valid file:", "", f"    {one.header}", ""]
    return "\n".join(lines)
