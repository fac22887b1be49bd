"""EDGAR, the factors of Kenneth R. French's library, and series of the Federal Reserve Bank of St. Louis.

A filer's newest filings are in `submissions/CIK##########.json`, which names further pages for the older ones. The
document of a report is found by its accession: of an inline report the SEC extracts `PRIMARY_htm.xml`, and whatever
else a filing holds is in its folder's `index.json`.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial

from finskillbench.fetch.client import AbsentError, Question
from finskillbench.fetch.configuration import (
    Addresses,
    ContentError,
    NothingError,
    Window,
    cik_in,
    first_words,
    object_of,
    refuse_page,
    rows_of,
    unzipped,
)
from finskillbench.fetch.fetcher import Fetcher, Item, packed
from finskillbench.sources.fetched import PARTS, Entry
from finskillbench.sources.files import as_list, as_object
from finskillbench.sources.market.fred import SERIES

_FORMS = frozenset({"10-K", "10-Q", "10-K/A", "10-Q/A", "10-KT", "10-QT", "20-F", "40-F", "20-F/A", "40-F/A"})
_LISTS = ("accessionNumber", "form", "filingDate", "isXBRL", "isInlineXBRL", "primaryDocument")
_PAGE = re.compile(r"CIK\d{10}-submissions-\d{3}\.json")
_NO_INSTANCE = re.compile(r"(_(cal|def|lab|pre|ref)\.xml|^R\d+\.xml|^FilingSummary\.xml|^defnref\.xml)$", re.IGNORECASE)
_IDENTIFIER = re.compile(rb"<(?:[\w.-]+:)?identifier\b[^>]*>\s*(\d{1,10})\s*</")
_END = re.compile(rb"</(?:[\w.-]+:)?xbrl\s*>\s*(?:<!--.*?-->\s*)*\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Report:
    """A periodic report with XBRL: accession with dashes, its main document, and whether XBRL is inline in that."""

    accession: str
    document: str
    inline: bool


def submissions_item(cik: int, addresses: Addresses) -> Item:
    """The list of a filer's newest filings."""

    def check(body: bytes) -> None:
        record = object_of(body)
        cik_in(record, cik)
        _lists(as_object((as_object(record.get("filings")) or {}).get("recent")))

    url = f"{addresses.sec_data}/submissions/CIK{cik:010d}.json"
    return Item(submissions_path(cik), (Question("sec", url, check),), packed)


def submissions_path(cik: int) -> str:
    """Where the list of a filer's newest filings lies in a collection."""
    return f"submissions/CIK{cik:010d}.json.gz"


def facts_path(cik: int) -> str:
    """Where a filer's facts lie in a collection."""
    return f"companyfacts/CIK{cik:010d}.json.gz"


def facts_item(cik: int, addresses: Addresses) -> Item:
    """All facts of a filer."""

    def check(body: bytes) -> None:
        record = object_of(body)
        cik_in(record, cik)
        if not as_object(record.get("facts")):
            raise NothingError("a record without facts")

    url = f"{addresses.sec_data}/api/xbrl/companyfacts/CIK{cik:010d}.json"
    return Item(facts_path(cik), (Question("sec", url, check),), packed)


def page_items(submissions: bytes, window: Window, addresses: Addresses) -> Iterator[Item]:
    """The pages of older filings that a list names, as far back as reports are fetched."""
    filings = as_object(object_of(submissions).get("filings")) or {}
    for page in map(as_object, as_list(filings.get("files")) or ()):
        name = str((page or {}).get("name"))
        if page is None or _PAGE.fullmatch(name) is None or str(page.get("filingTo")) < str(window.reports_from):
            continue

        def check(body: bytes) -> None:
            _lists(object_of(body))

        question = Question("sec", f"{addresses.sec_data}/submissions/{name}", check)
        yield Item(f"submissions/{name}.gz", (question,), packed)


def reports(table: bytes, window: Window) -> Iterator[_Report]:
    """The periodic reports with XBRL of a list or a page, filed from two years before the window to its end."""
    record = object_of(table)
    recent = as_object((as_object(record.get("filings")) or {}).get("recent"))
    columns = _lists(recent if recent is not None else record)
    for accession, form, filed, xbrl, inline, document in zip(*columns, strict=True):
        within = window.reports_from <= date.fromisoformat(str(filed)) <= window.last
        if form in _FORMS and within and xbrl:
            yield _Report(str(accession), str(document), bool(inline))


def _lists(recent: Mapping[str, object] | None) -> tuple[list[object], ...]:
    if recent is None:
        raise ContentError("no filings.recent")
    columns = tuple(as_list(recent.get(name)) for name in _LISTS)
    found = tuple(column for column in columns if column is not None)
    if len(found) < len(columns) or len({len(column) for column in found}) != 1:
        raise ContentError("a list of filings whose columns are missing or of different lengths")
    return found


def instance_path(symbol: str, report: _Report) -> str:
    """Where the XBRL document of a report lies in a collection."""
    return f"xbrl/{symbol}/{report.accession}.xml.gz"


def fetch_instance(fetcher: Fetcher, symbol: str, cik: int, report: _Report, addresses: Addresses) -> Entry:
    """The XBRL document of a report; an entry that says so where it has none.

    Raises
    ------
    DownloadError, OSError : as for `Fetcher.fetch`.
    """
    path = instance_path(symbol, report)
    entry = fetcher.folder.have(path)
    if entry is not None and fetcher.is_fresh(entry, lasting=True):
        fetcher.folder.keep(path)
        return entry
    base = f"{addresses.sec}/Archives/edgar/data/{cik}/{report.accession.replace('-', '')}"
    if report.inline and "." in report.document:
        stem = report.document.rpartition(".")[0]
        try:
            return _document(fetcher, path, f"{base}/{stem}_htm.xml", cik)
        except AbsentError:
            pass  # documents of several parts are extracted under the name of another
    index = f"{PARTS}/index-{report.accession}.json"
    name = _listed(fetcher, Item(index, (Question("sec", f"{base}/index.json", _index),), lasting=True))
    why = "the filing has no XBRL instance"
    try:
        if name is not None:
            found = _document(fetcher, path, f"{base}/{name}", cik)
            fetcher.folder.drop([index])
            return found
    except AbsentError as error:
        why = f"{error}"
    absent = Entry(path, retrieved=fetcher.client.now(), absent=why)
    fetcher.folder.note(absent)
    return absent


def _document(fetcher: Fetcher, path: str, url: str, cik: int) -> Entry:
    question = Question("sec", url, lambda body: _instance(body, cik))
    item = Item(path, (question,), packed, lasting=True)
    return fetcher.write(item, [fetcher.client.ask(question)])


def _instance(body: bytes, cik: int) -> None:
    """Refuse what is no whole instance of the filer."""
    refuse_page(body, "an XBRL instance")
    filers = {int(found) for found in _IDENTIFIER.findall(body)}
    if not filers:
        raise ContentError(f"no XBRL instance: {first_words(body)!r}")
    if _END.search(body[-10_000:]) is None:
        raise ContentError("an XBRL instance that is cut off")
    if cik not in filers:
        # A filing under several filers has the figures of one; of the others it has none.
        raise NothingError(f"the instance is of CIK {min(filers)} alone")


def _index(body: bytes) -> None:
    if not _names(body):
        raise ContentError("an index without files")


def _names(body: bytes) -> list[str]:
    items = as_list((as_object(object_of(body).get("directory")) or {}).get("item")) or []
    return [str(item.get("name")) for item in map(as_object, items) if item is not None]


def _listed(fetcher: Fetcher, item: Item) -> str | None:
    """The name of the instance in a filing's folder."""
    entry = fetcher.fetch(item)
    if entry.absent:
        return None
    names = _names(fetcher.folder.read(item.path))
    xml = [name for name in names if name.lower().endswith(".xml") and _NO_INSTANCE.search(name) is None]
    extracted = [name for name in xml if name.lower().endswith("_htm.xml")]
    dated = [name for name in xml if re.search(r"-\d{8}\.xml$", name)]
    return next(iter(extracted or dated or xml), None)


def exchange_in(submissions: bytes) -> str | None:
    """The exchange that a list of filings names first."""
    exchanges = as_list(object_of(submissions).get("exchanges")) or []
    return next((name for name in exchanges if isinstance(name, str) and name), None)


def unpacked(body: bytes) -> bytes:
    """What a packed file of the collection holds."""
    return gzip.decompress(body)


def tickers_item(addresses: Addresses) -> Item:
    """The SEC's list of tickers with the CIK of each, for names that no other list gives one."""

    def check(body: bytes) -> None:
        if not tickers_in(body):
            raise ContentError("a list without tickers")

    url = f"{addresses.sec}/files/company_tickers.json"
    return Item("constituents/company_tickers.json", (Question("sec", url, check),))


def tickers_in(body: bytes) -> dict[str, str]:
    """CIK (ten digits) by ticker, share classes with a dash."""
    records = map(as_object, object_of(body).values())
    return {
        str(record["ticker"]).upper().replace(".", "-"): f"{record['cik_str']:0>10}"
        for record in records
        if record is not None and "ticker" in record and "cik_str" in record
    }


_FACTOR_FILES = {
    "F-F_Research_Data_5_Factors_2x3_daily": rb"Mkt-RF,\s*SMB,\s*HML,\s*RMW,\s*CMA,\s*RF",
    "F-F_Momentum_Factor_daily": rb"Mom",
}
"""Daily files that a build reads, and the end of the header of each. They lie in archives named `..._CSV.zip`."""


def factor_items(addresses: Addresses) -> Iterator[Item]:
    """The two archives of daily factors, each unpacked. The library replaces them as a whole every month."""
    for name, header in _FACTOR_FILES.items():
        question = Question("french", f"{addresses.french}/{name}_CSV.zip", partial(_factors, header))
        yield Item(f"famafrench/{name}.csv", (question,), _unpacked)


def series_items(window: Window, addresses: Addresses) -> Iterator[Item]:
    """Every series that a build reads, from its first day to the end of the window."""
    for series in SERIES:
        url = f"{addresses.fred}/graph/fredgraph.csv?id={series}&cosd={window.prices_from}&coed={window.last}"
        headers = (f"observation_date,{series}", f"DATE,{series}")
        yield Item(f"fred/{series}.csv", (Question("fred", url, partial(_series, headers)),))


def _unpacked(bodies: Sequence[bytes]) -> bytes:
    return unzipped(bodies[0])


def _factors(header: bytes, body: bytes) -> None:
    table = unzipped(body)
    if not re.search(rb"^(Date)?\s*,\s*" + header + rb"\s*$", table, re.MULTILINE):
        raise ContentError(f"no daily factors: {first_words(table)!r}", lasting=True)
    if not re.search(rb"^\s*(\d{8}|\d{4}-\d\d-\d\d)\s*,", table, re.MULTILINE):
        raise ContentError("daily factors without a row", lasting=True)


def _series(headers: Sequence[str], body: bytes) -> None:
    rows_of(body, headers)
