"""The formats of a raw collection in words: every file that is read, and every field that is read of it.

`docs/raw-data.md` and the README of `finskillbench data template` are written from here, and a test holds it to the
readers: no field is documented that none reads, and none is read that is not documented.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from finskillbench.arrays import SECTORS
from finskillbench.sources.companies.constituents import GICS_SECTORS
from finskillbench.sources.market.fred import SERIES


@dataclass(frozen=True, slots=True)
class Format:
    """One kind of file.

    folder : its folder in the collection, "" for the collection itself; other : a second name of the folder.
    file : how files are called in it. needed : what cannot be built without. what : a sentence about it.
    fields : name to meaning; an optional one begins with "optional: ". header : the first line of the shortest file.
    required : whether the half of the collection that it is of cannot be built without it.
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
        """Where its files lie, as documents write it."""
        return f"{self.folder}/{self.file}" if self.folder else self.file

    def in_a_line(self) -> str:
        """What a finding about a missing or broken file adds."""
        return f"{self.path}: {self.header or ', '.join(self.fields)}"


_ENTRIES = 'a list of {"end": "YYYY-MM-DD", "v": number}, by end'

UNIVERSE = Format(
    "",
    "universe.json",
    "nothing; without it the universe is the published one, or, where the files do not support that, every name of "
    "constituents.csv with prices and statements",
    "Which names are taken, by sector, and who stands in for one that cannot be used.",
    {
        "sectors.SECTOR.names": f"symbols to take; SECTOR is one of {', '.join(SECTORS)}",
        "sectors.SECTOR.alternates": "optional: symbols that stand in, in this order",
        "securities.SYMBOL.name": "optional record of a name, with: the company's name",
        "securities.SYMBOL.sector": "in it: the sector under which it is listed",
        "securities.SYMBOL.sub_sector": "in it: industry",
        "securities.SYMBOL.cik": "optional: number of the filer at the SEC, ten digits, as text",
        "securities.SYMBOL.isin": "optional: text",
        "securities.SYMBOL.cusip": "optional: text",
        "securities.SYMBOL.exchange": "optional: text",
        "securities.SYMBOL.country": "optional: text",
        "securities.SYMBOL.date_added": "optional: YYYY-MM-DD",
    },
    '{"sectors": {"Technology": {"names": ["AAPL"], "alternates": ["IBM"]}}}',
)
CONSTITUENTS = Format(
    "constituents",
    "constituents.csv",
    "nothing; it names companies, and gives sectors where there is no universe.json",
    "The list of an index with GICS sectors; other columns may stand between these.",
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
PRICES = Format(
    "prices",
    "[SET/]TICKER.csv[.gz]",
    "portfolio construction and risk management",
    "Daily prices as Yahoo Finance serves them, a file per ticker; several downloads lie in a folder each and are "
    "joined. Sorted by date, a row per session, two calendar years whole at the least: a date has a year behind it.",
    {
        "Date": "YYYY-MM-DD, or with a time and an offset; `Price` in yfinance's header of three lines",
        "Open": "USD; 0 or empty where not recorded",
        "High": "USD, not below Low",
        "Low": "USD",
        "Close": "USD, positive; adjusted for splits, and for dividends where there is no Adj Close",
        "Adj Close": "optional: USD, adjusted for splits and dividends",
        "Volume": "shares; may be empty. A file without Open, High, Low and Volume is no price set and is left out",
        "Dividends": "optional: USD per share on the ex-dividend session, else 0",
        "Stock Splits": "optional: new shares for one old on the session, else 0",
        "Capital Gains": "optional: is not used",
        "Symbol": "optional: the ticker of every row; `StockName` or `Ticker` likewise",
    },
    "Date,Open,High,Low,Close,Volume",
    required=True,
)
FIVE_FACTORS = Format(
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
MOMENTUM = Format(
    "famafrench",
    "*momentum*daily*.csv[.gz]",
    "portfolio construction and risk management",
    "Its momentum factor, daily, on the same dates.",
    {"Mom": "per cent"},
    ",Mom",
    "french",
    required=True,
)
FRED = Format(
    "fred",
    "[SET/]SERIES.csv[.gz]",
    "portfolio construction and risk management, which need DGS3MO, the risk-free rate; what is absent of the "
    "others is left out",
    f"A file per series of the Federal Reserve Bank of St. Louis: {', '.join(SERIES)}.",
    {"observation_date": "YYYY-MM-DD; `date` in an extract", "SERIES": "the value; empty or `.` where there is none"},
    "observation_date,DGS3MO",
    required=True,
)
STATEMENTS = Format(
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
COMPANY_FACTS = Format(
    "companyfacts",
    "CIK##########.json[.gz] or TICKER.json[.gz]",
    "fundamental analysis",
    "A filer's facts as the SEC's companyfacts API serves them; in any depth of folders.",
    {
        "cik": "number of the filer",
        "entityName": "its name",
        "ticker": "optional: what a collector wrapped around it",
        "facts.TAXONOMY.TAG.units.UNIT[]": "rows, with the fields below; UNIT: USD, USD/shares or shares, in any case",
        "start": "first day of a flow; absent for an instant",
        "end": "last day",
        "val": "number",
        "accn": "accession, 0000000000-00-000000",
        "fy": "optional: fiscal year of the filing",
        "fp": "optional: fiscal period of the filing",
        "form": "10-Q, 10-K, 10-QT, 10-KT, 20-F, 40-F or an amendment; rows of others are skipped unchecked",
        "filed": "day it was filed",
        "frame": "optional: is not used",
    },
    '{"cik": 320193, "entityName": "Apple Inc.", "facts": {"us-gaap": {"Assets": {"units": {"USD": [...]}}}}}',
    required=True,
)
SUBMISSIONS = Format(
    "submissions",
    "CIK##########.json[.gz]",
    "nothing; without it filings are those that company facts name",
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
        "filings.files": "further lists; those that lie beside it (CIK##########-submissions-###.json) are read too",
    },
    '{"cik": "320193", "name": "Apple Inc.", "tickers": ["AAPL"], "filings": {"recent": {"accessionNumber": [...]}}}',
)
INSTANCES = Format(
    "xbrl",
    "ACCESSION.xml, .htm, .html or .xhtml, [.gz]",
    "revenue by segment in fundamental analysis",
    "XBRL instances or inline XBRL documents as filed, anywhere in the collection: each names its filer by the CIK of "
    "its contexts, and its accession is that of its name or of a folder above it.",
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
"""What portfolio construction and risk management are made of."""
FILINGS = (COMPANY_FACTS, SUBMISSIONS, INSTANCES)
"""What fundamental analysis is made of."""
TEMPLATE = Path(__file__).parent / "template"
"""Small files of every format, of two fictional companies."""


def documentation() -> str:
    """Every format as Markdown."""
    parts = [_section(one) for one in FORMATS]
    return "\n".join(parts)


def _section(one: Format) -> str:
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
        lines += ["The shortest that is read begins:", "", f"    {one.header}", ""]
    return "\n".join(lines)
