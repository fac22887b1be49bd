"""XBRL instances and inline XBRL documents: facts of one filing, including those with dimensions.

`instance_reader` reads the XML; this module identifies the filing and removes duplicate facts.
"""

import math
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

from finskillbench.sources.edgar.instance_reader import Context, InstanceFact, InstanceReader
from finskillbench.sources.files import read_bytes, symbol_of


@dataclass(frozen=True, slots=True)
class Instance:
    """The facts of one filing.

    accession : from the name of the file or a parent folder, else None.
    cik, symbol, entity, form, period_end, fiscal_year, fiscal_period : from the cover page (`dei`), None or empty if
        not stated; the form of an amendment ends in "/A", the symbol is like `BF-B`.
    contexts : by the document's id. notes : omitted figures that contradict each other.
    facts : in document order; one per (taxonomy, tag, unit, period, dimensions), the most precise of consistent ones.
    """

    path: Path
    accession: str | None
    cik: int | None
    symbol: str | None
    entity: str
    form: str
    period_end: date | None
    fiscal_year: int | None
    fiscal_period: str
    contexts: dict[str, Context]
    facts: tuple[InstanceFact, ...]
    notes: tuple[str, ...]


def parse_instance(path: Path, *, tags: Collection[str] | None = None) -> Instance:
    """Read an XBRL instance or an inline XBRL document, plain or gzipped.

    Parameters
    ----------
    tags : local names (`Revenues`) of the figures to keep; None keeps all.

    Raises
    ------
    SourceError : malformed file, neither instance nor inline document, a missing context or unit, an invalid figure.
    """
    reader = InstanceReader(path, None if tags is None else frozenset(tags))
    reader.read(read_bytes(path))
    contexts = reader.contexts()
    facts, notes = _one_each(path, reader.facts(contexts))
    cover = reader.cover(contexts)
    form = cover.get("DocumentType", "").upper().replace(" ", "")
    if cover.get("AmendmentFlag", "").lower() in ("true", "1") and form and not form.endswith("/A"):
        form += "/A"
    digits = re.sub(r"\D", "", cover.get("EntityCentralIndexKey", "") or reader.identifier)
    symbol = symbol_of(cover.get("TradingSymbol", "")).replace(" ", "")
    year = cover.get("DocumentFiscalYearFocus", "")
    # The context of the document type has the period's end, however the cover writes it.
    typed = contexts.get(reader.document_context)
    return Instance(
        path=path,
        accession=_accession(path),
        cik=int(digits) if digits else None,
        symbol=symbol if re.fullmatch(r"[A-Z][A-Z0-9-]{0,9}", symbol) else None,
        entity=cover.get("EntityRegistrantName", ""),
        form=form,
        period_end=_cover_date(cover.get("DocumentPeriodEndDate", "")) or (typed.end if typed else None),
        fiscal_year=int(year) if re.fullmatch(r"\d{4}", year) else None,
        fiscal_period=cover.get("DocumentFiscalPeriodFocus", "").upper(),
        contexts=contexts,
        facts=facts,
        notes=notes,
    )


_DOCUMENT = re.compile(r"(?<!_cal)(?<!_def)(?<!_lab)(?<!_pre)(?<!_ref)(?<!\.xsd)\.(?:xml|x?html?)(?:\.gz)?$", re.I)
_NOT_A_DOCUMENT = frozenset({"filingsummary.xml"})


def instance_files(folder: Path) -> Iterator[Path]:
    """Yield instances and inline documents below a folder, in path order.

    Schemas, linkbases, SEC summaries, and inline documents (`x.htm`) with an extracted instance (`x_htm.xml`) are
    skipped.
    """
    if not folder.is_dir():
        return
    # `rglob` from above would not follow links to folders.
    below = (path for top in folder.iterdir() for path in ([top] if top.is_file() else top.rglob("*")))
    found = [path for path in sorted(below) if path.is_file() and _DOCUMENT.search(path.name)]
    extracted = {(path.parent, _stem(path).removesuffix("_htm")) for path in found if _stem(path).endswith("_htm")}
    for path in found:
        if path.name.removesuffix(".gz").lower() not in _NOT_A_DOCUMENT and (path.parent, _stem(path)) not in extracted:
            yield path


def _stem(path: Path) -> str:
    return path.name.removesuffix(".gz").rpartition(".")[0]


_IDENTIFIER = re.compile(rb"<(?:[\w.-]+:)?identifier\b[^>]*>\s*(\d{1,10})\s*</")
_ACCESSION = re.compile(r"(?<!\d)(\d{10})-?(\d{2})-?(\d{6})(?!\d)")


def filer_of(path: Path) -> int | None:
    """Return the CIK in the first context without a full parse, or None; SourceError if unreadable."""
    found = _IDENTIFIER.search(read_bytes(path))
    return int(found.group(1)) if found else None


def _accession(path: Path) -> str | None:
    """Find the accession `0000320193-23-000106`, or its eighteen digits, in the file's or closest folder's name."""
    named = _ACCESSION.search(path.name)
    folders = (_ACCESSION.fullmatch(folder.name) for folder in path.parents)
    found = named or next((digits for digits in folders if digits), None)
    return "-".join(found.groups()) if found else None


def _cover_date(text: str) -> date | None:
    """Parse the period's end on the cover, ISO or in words; None for other formats."""
    normalised = re.sub(r"\s*,\s*", ", ", " ".join(text.split()))
    for pattern in ("%Y-%m-%d", "%B %d, %Y", "%b %d, %Y", "%d %B %Y"):
        try:
            return datetime.strptime(normalised, pattern).date()
        except ValueError:
            continue
    return None


def _one_each(path: Path, facts: list[InstanceFact]) -> tuple[tuple[InstanceFact, ...], tuple[str, ...]]:
    """Keep the most precise of duplicate facts, and none of contradictory ones."""
    chosen: dict[tuple[Any, ...], InstanceFact] = {}
    refused: dict[tuple[Any, ...], str] = {}
    for fact in facts:
        key = (fact.taxonomy, fact.tag, fact.unit, fact.start, fact.end, fact.dimensions)
        first = chosen.setdefault(key, fact)
        if fact.value != first.value:
            coarse, fine = sorted((first, fact), key=lambda each: math.inf if each.decimals is None else each.decimals)
            # A figure in the text is often a rounded figure of a table ("$383.3 billion").
            if abs(coarse.value - fine.value) <= (0.0 if coarse.decimals is None else 10.0**-coarse.decimals):
                chosen[key] = fine
            else:
                refused[key] = (
                    f"{path.name}: {fact.taxonomy}:{fact.tag} to {fact.end} is both {first.value:.12g} and "
                    f"{fact.value:.12g}; neither is used."
                )
    return tuple(fact for key, fact in chosen.items() if key not in refused), tuple(refused.values())
