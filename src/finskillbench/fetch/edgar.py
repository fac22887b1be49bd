"""Download items of EDGAR, Kenneth R. French's library and FRED.

A filer's newest filings are in `submissions/CIK##########.json`, which names further pages for older ones. Of an inline
report the SEC extracts `PRIMARY_htm.xml`; other instances are found in the filing's `index.json`.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial

from finskillbench.fetch.client import AbsentError, SourceRequest
from finskillbench.fetch.configuration import (
    Addresses,
    ContentError,
    NoDataError,
    Window,
    check_cik,
    checked_csv,
    excerpt,
    object_of,
    refuse_page,
    unzipped,
)
from finskillbench.fetch.fetcher import Fetcher, FetchItem, gzipped
from finskillbench.sources.fetched import PARTS_FOLDER, Entry
from finskillbench.sources.files import json_list, json_object
from finskillbench.sources.market.fred import SERIES

_FORMS = frozenset({"10-K", "10-Q", "10-K/A", "10-Q/A", "10-KT", "10-QT", "20-F", "40-F", "20-F/A", "40-F/A"})
_LISTS = ("accessionNumber", "form", "filingDate", "isXBRL", "isInlineXBRL", "primaryDocument")
_PAGE = re.compile(r"CIK\d{10}-submissions-\d{3}\.json")
_NO_INSTANCE = re.compile(r"(_(cal|def|lab|pre|ref)\.xml|^R\d+\.xml|^FilingSummary\.xml|^defnref\.xml)$", re.IGNORECASE)
_IDENTIFIER = re.compile(rb"<(?:[\w.-]+:)?identifier\b[^>]*>\s*(\d{1,10})\s*</")
_END = re.compile(rb"</(?:[\w.-]+:)?xbrl\s*>\s*(?:<!--.*?-->\s*)*\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Report:
    """A periodic report with XBRL: accession with dashes, main document, and whether its XBRL is inline."""

    accession: str
    document: str
    inline: bool


def submissions_item(cik: int, addresses: Addresses) -> FetchItem:
    def check(body: bytes) -> None:
        record = object_of(body)
        check_cik(record, cik)
        _lists(json_object((json_object(record.get("filings")) or {}).get("recent")))

    url = f"{addresses.sec_data}/submissions/CIK{cik:010d}.json"
    return FetchItem(submissions_path(cik), (SourceRequest("sec", url, check),), gzipped)


def submissions_path(cik: int) -> str:
    return f"submissions/CIK{cik:010d}.json.gz"


def facts_path(cik: int) -> str:
    return f"companyfacts/CIK{cik:010d}.json.gz"


def facts_item(cik: int, addresses: Addresses) -> FetchItem:
    def check(body: bytes) -> None:
        record = object_of(body)
        check_cik(record, cik)
        if not json_object(record.get("facts")):
            raise NoDataError("a record without facts")

    url = f"{addresses.sec_data}/api/xbrl/companyfacts/CIK{cik:010d}.json"
    return FetchItem(facts_path(cik), (SourceRequest("sec", url, check),), gzipped)


def page_items(submissions: bytes, window: Window, addresses: Addresses) -> Iterator[FetchItem]:
    """Yield the pages of older filings in a submissions file, back to the first fetched report."""
    filings = json_object(object_of(submissions).get("filings")) or {}
    for page in map(json_object, json_list(filings.get("files")) or ()):
        name = str((page or {}).get("name"))
        if page is None or _PAGE.fullmatch(name) is None or str(page.get("filingTo")) < str(window.reports_from):
            continue

        def check(body: bytes) -> None:
            _lists(object_of(body))

        request = SourceRequest("sec", f"{addresses.sec_data}/submissions/{name}", check)
        yield FetchItem(f"submissions/{name}.gz", (request,), gzipped)


def reports(table: bytes, window: Window) -> Iterator[_Report]:
    """Yield the periodic reports with XBRL in a submissions file, from two years before the window to its end."""
    record = object_of(table)
    recent = json_object((json_object(record.get("filings")) or {}).get("recent"))
    columns = _lists(recent if recent is not None else record)
    for accession, form, filed, xbrl, inline, document in zip(*columns, strict=True):
        within = window.reports_from <= date.fromisoformat(str(filed)) <= window.last
        if form in _FORMS and within and xbrl:
            yield _Report(str(accession), str(document), bool(inline))


def _lists(recent: Mapping[str, object] | None) -> tuple[list[object], ...]:
    if recent is None:
        raise ContentError("no filings.recent")
    columns = tuple(json_list(recent.get(name)) for name in _LISTS)
    found = tuple(column for column in columns if column is not None)
    if len(found) < len(columns) or len({len(column) for column in found}) != 1:
        raise ContentError("a list of filings whose columns are missing or of different lengths")
    return found


def instance_path(symbol: str, report: _Report) -> str:
    return f"xbrl/{symbol}/{report.accession}.xml.gz"


def fetch_instance(fetcher: Fetcher, symbol: str, cik: int, report: _Report, addresses: Addresses) -> Entry:
    """Fetch the XBRL document of a report; return an absent entry where it has none. Raises as `Fetcher.fetch`."""
    path = instance_path(symbol, report)
    entry = fetcher.folder.have(path)
    if entry is not None and fetcher.is_fresh(entry, immutable=True):
        fetcher.folder.keep(path)
        return entry
    base = f"{addresses.sec}/Archives/edgar/data/{cik}/{report.accession.replace('-', '')}"
    if report.inline and "." in report.document:
        stem = report.document.rpartition(".")[0]
        try:
            return _document(fetcher, path, f"{base}/{stem}_htm.xml", cik)
        except AbsentError:
            pass  # Multi-part documents are extracted under another file name.
    index = f"{PARTS_FOLDER}/index-{report.accession}.json"
    name = _listed(fetcher, FetchItem(index, (SourceRequest("sec", f"{base}/index.json", _index),), immutable=True))
    why = "the filing has no XBRL instance"
    try:
        if name is not None:
            found = _document(fetcher, path, f"{base}/{name}", cik)
            fetcher.folder.drop([index])
            return found
    except AbsentError as error:
        why = f"{error}"
    absent = Entry(path, retrieved=fetcher.client.now(), absent=why)
    fetcher.folder.record(absent)
    return absent


def _document(fetcher: Fetcher, path: str, url: str, cik: int) -> Entry:
    request = SourceRequest("sec", url, lambda body: _instance(body, cik))
    item = FetchItem(path, (request,), gzipped, immutable=True)
    return fetcher.write(item, [fetcher.client.get(request)])


def _instance(body: bytes, cik: int) -> None:
    """Refuse an incomplete instance, or one of another filer."""
    refuse_page(body, "an XBRL instance")
    filers = {int(found) for found in _IDENTIFIER.findall(body)}
    if not filers:
        raise ContentError(f"not an XBRL instance: {excerpt(body)!r}")
    if _END.search(body[-10_000:]) is None:
        raise ContentError("an XBRL instance that is cut off")
    if cik not in filers:
        # A filing of several filers has the figures of one of them only.
        raise NoDataError(f"the instance is of CIK {min(filers)} alone")


def _index(body: bytes) -> None:
    if not _names(body):
        raise ContentError("an index without files")


def _names(body: bytes) -> list[str]:
    items = json_list((json_object(object_of(body).get("directory")) or {}).get("item")) or []
    return [str(item.get("name")) for item in map(json_object, items) if item is not None]


def _listed(fetcher: Fetcher, item: FetchItem) -> str | None:
    """Return the file name of the instance in a filing's folder."""
    entry = fetcher.fetch(item)
    if entry.absent:
        return None
    names = _names(fetcher.folder.read(item.path))
    xml = [name for name in names if name.lower().endswith(".xml") and _NO_INSTANCE.search(name) is None]
    extracted = [name for name in xml if name.lower().endswith("_htm.xml")]
    dated = [name for name in xml if re.search(r"-\d{8}\.xml$", name)]
    return next(iter(extracted or dated or xml), None)


def exchange_in(submissions: bytes) -> str | None:
    exchanges = json_list(object_of(submissions).get("exchanges")) or []
    return next((name for name in exchanges if isinstance(name, str) and name), None)


def unpacked(body: bytes) -> bytes:
    return gzip.decompress(body)


def tickers_item(addresses: Addresses) -> FetchItem:
    """Return the item of the SEC's list of tickers and CIKs."""

    def check(body: bytes) -> None:
        if not tickers_in(body):
            raise ContentError("a list without tickers")

    url = f"{addresses.sec}/files/company_tickers.json"
    return FetchItem("constituents/company_tickers.json", (SourceRequest("sec", url, check),))


def tickers_in(body: bytes) -> dict[str, str]:
    """Return CIKs (ten digits) by ticker; share classes have a dash."""
    records = map(json_object, object_of(body).values())
    return {
        str(record["ticker"]).upper().replace(".", "-"): f"{record['cik_str']:0>10}"
        for record in records
        if record is not None and "ticker" in record and "cik_str" in record
    }


_FACTOR_FILES = {
    "F-F_Research_Data_5_Factors_2x3_daily": rb"Mkt-RF,\s*SMB,\s*HML,\s*RMW,\s*CMA,\s*RF",
    "F-F_Momentum_Factor_daily": rb"Mom",
}
"""Daily files that a build reads, and the end of the header of each. The library has them in archives `..._CSV.zip`."""


def factor_items(addresses: Addresses) -> Iterator[FetchItem]:
    """Yield the two archives of daily factors, which the library replaces every month."""
    for name, header in _FACTOR_FILES.items():
        request = SourceRequest("french", f"{addresses.french}/{name}_CSV.zip", partial(_factors, header))
        yield FetchItem(f"famafrench/{name}.csv", (request,), lambda bodies: unzipped(bodies[0]))


def series_items(window: Window, addresses: Addresses) -> Iterator[FetchItem]:
    """Yield every FRED series that a build reads, up to the end of the window."""
    for series in SERIES:
        url = f"{addresses.fred}/graph/fredgraph.csv?id={series}&cosd={window.prices_from}&coed={window.last}"
        headers = (f"observation_date,{series}", f"DATE,{series}")
        yield FetchItem(f"fred/{series}.csv", (SourceRequest("fred", url, partial(_series, headers)),))


def _factors(header: bytes, body: bytes) -> None:
    table = unzipped(body)
    if not re.search(rb"^(Date)?\s*,\s*" + header + rb"\s*$", table, re.MULTILINE):
        raise ContentError(f"not daily factors: {excerpt(table)!r}", final=True)
    if not re.search(rb"^\s*(\d{8}|\d{4}-\d\d-\d\d)\s*,", table, re.MULTILINE):
        raise ContentError("daily factors without a row", final=True)


def _series(headers: Sequence[str], body: bytes) -> None:
    checked_csv(body, headers)
