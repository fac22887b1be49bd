"""Read contexts, units, figures and cover page of an XBRL document in one pass of expat.

An instance (`*_htm.xml`, XBRL 2.1) has an element per fact. An inline document (`*.htm`, Inline XBRL 1.1) marks the
figures in the page, to be transformed, scaled and signed.
"""

import math
import re
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import NamedTuple
from xml.parsers import expat

from finskillbench.errors import SourceError
from finskillbench.sources.edgar.numerals import transformed

Dimensions = tuple[tuple[str, str], ...]
"""(axis, member) pairs in order, each `prefix:LocalName`; the member of a typed dimension is its text."""


class Context(NamedTuple):
    """Period (inclusive) and dimensions; `start` is None for an instant, both are None for "forever"."""

    start: date | None
    end: date | None
    dimensions: Dimensions


class InstanceFact(NamedTuple):
    """One figure in whole units (`USD`, `shares`, `USD/shares`); `decimals` is its rounding, None if exact."""

    taxonomy: str
    tag: str
    unit: str
    start: date | None
    end: date | None
    value: float
    dimensions: Dimensions
    decimals: int | None


_XBRLI = "http://www.xbrl.org/2003/instance"
_XBRLDI = "http://xbrl.org/2006/xbrldi"
_IDENTIFIER = f"{_XBRLI} identifier"
_TEXTS = ("measure", "identifier", "startDate", "endDate", "instant")
"""Elements whose text is read."""
_MIDNIGHT = re.compile(r"T00:00(:00)?")
_INLINE = ("http://www.xbrl.org/2013/inlineXBRL", "http://www.xbrl.org/2008/inlineXBRL")
_NIL = "http://www.w3.org/2001/XMLSchema-instance nil"
_COVER = frozenset(
    {
        "AmendmentFlag",
        "DocumentFiscalPeriodFocus",
        "DocumentFiscalYearFocus",
        "DocumentPeriodEndDate",
        "DocumentType",
        "EntityCentralIndexKey",
        "EntityRegistrantName",
        "TradingSymbol",
    }
)
_STANDARD = re.compile(r"(?:fasb\.org|xbrl\.us|xbrl\.sec\.gov)/([a-z-]+)/\d{4}")
"""Namespaces that change with the year, identified by this name under any prefix."""


class _Open(NamedTuple):
    """A fact whose end tag has not been read yet, with its text so far in `parts`."""

    qname: tuple[str, str]
    attributes: dict[str, str]
    parts: list[str]
    line: int
    inline: bool
    numeric: bool


class InstanceReader:
    """State of one pass over a document; `tags` are local names of the figures to keep, None for all.

    `read` sets `identifier`, the CIK; `cover` sets `document_context`, the context of the document type.
    """

    def __init__(self, path: Path, tags: frozenset[str] | None) -> None:
        self.path = path
        self.tags = tags
        self.identifier = ""
        self.document_context = ""
        self._prefixes: dict[str, list[str]] = {}
        self._canonical: dict[str, str] = {}
        self._open: list[_Open | None] = []
        self._wanted = 0
        self._text: list[str] | None = None
        self._numbers: list[tuple[_Open, str]] = []
        self._covers: list[tuple[str, str, str]] = []
        self._references: dict[str, tuple[str, int]] = {}
        self._contexts: dict[str, Context] = {}
        self._units: dict[str, str] = {}
        self._context = ""
        self._period: dict[str, date | None] = {}
        self._dimensions: list[tuple[str, str]] = []
        self._axis = ""
        self._unit = ""
        self._measures: tuple[list[str], list[str]] = ([], [])
        self._divided = False
        self._root = ""
        self._parser = expat.ParserCreate(namespace_separator=" ")
        self._starts: dict[str, Callable[[dict[str, str]], None]] = {
            f"{_XBRLI} context": self._start_context,
            f"{_XBRLI} unit": self._start_unit,
            f"{_XBRLI} unitDenominator": self._start_denominator,
            f"{_XBRLDI} explicitMember": self._start_member,
            f"{_XBRLDI} typedMember": self._start_member,
            **{f"{_XBRLI} {name}": self._start_text for name in _TEXTS},
        }
        self._ends: dict[str, Callable[[], None]] = {
            f"{_XBRLI} context": self._end_context,
            f"{_XBRLI} unit": self._end_unit,
            f"{_XBRLI} measure": lambda: self._measures[self._divided].append(self._end_text().rpartition(":")[2]),
            _IDENTIFIER: self._end_identifier,
            f"{_XBRLI} forever": lambda: self._period.update(start=None, end=None),
            f"{_XBRLI} startDate": lambda: self._end_date("start"),
            f"{_XBRLI} endDate": lambda: self._end_date("end"),
            f"{_XBRLI} instant": lambda: self._end_date("end"),
            f"{_XBRLDI} explicitMember": lambda: self._dimensions.append(
                (self._axis, ":".join(self._qname(self._end_text())))
            ),
            f"{_XBRLDI} typedMember": lambda: self._dimensions.append((self._axis, self._end_text())),
        }
        self._figures = {f"{uri} {name}" for uri in _INLINE for name in ("nonFraction", "fraction")}
        self._marked = self._figures | {f"{uri} nonNumeric" for uri in _INLINE}

    def read(self, data: bytes) -> None:
        parser = self._parser
        parser.buffer_text = True
        parser.StartElementHandler = self._start_root
        parser.EndElementHandler = self._end
        parser.StartNamespaceDeclHandler = lambda prefix, uri: self._prefixes.setdefault(prefix or "", []).append(uri)
        parser.EndNamespaceDeclHandler = lambda prefix: self._prefixes[prefix or ""].pop()
        parser.EntityDeclHandler = self._refuse_entity
        try:
            parser.Parse(data, True)
        except (LookupError, ValueError) as error:
            raise SourceError(self.path, f"an encoding that is not known ({error})", line=1) from None
        except expat.ExpatError as error:
            problem = f"not well-formed XML ({expat.ErrorString(error.code)})"
            raise SourceError(
                self.path, problem, line=error.lineno, remedy="download it again; only XBRL and inline XBRL can be read"
            ) from None
        if not self._contexts:
            raise SourceError(
                self.path,
                f"the root element is {self._root.rpartition(' ')[2]!r} and there is no XBRL context",
                remedy="give the filing's instance (_htm.xml) or its inline document",
            )

    def contexts(self) -> dict[str, Context]:
        """Return all contexts; SourceError if a fact refers to another one."""
        for reference, (name, line) in self._references.items():
            if reference not in self._contexts:
                raise SourceError(
                    self.path,
                    f"{name} refers to the context {reference!r}, which is not in the document",
                    line=line,
                    remedy="give the filing's extracted instance (_htm.xml), or download it again",
                )
        return self._contexts

    def facts(self, contexts: dict[str, Context]) -> list[InstanceFact]:
        """Return the figures in document order; SourceError for a missing unit or an invalid number."""
        facts: list[InstanceFact] = []
        for opened, text in self._numbers:
            taxonomy, tag = opened.qname
            attributes = opened.attributes
            reference = attributes.get("unitRef", "")
            if reference not in self._units:
                raise self._error(
                    f"{taxonomy}:{tag} refers to the unit {reference!r}, which is not in the document", opened.line
                )
            try:
                value = self._value(opened, text)
            except ValueError as error:
                raise self._error(f"{taxonomy}:{tag} is not a number: {error}", opened.line) from None
            context = contexts[attributes["contextRef"]]
            decimals = attributes.get("decimals", "")
            facts.append(
                InstanceFact(
                    taxonomy,
                    tag,
                    self._units[reference],
                    context.start,
                    context.end,
                    value,
                    context.dimensions,
                    int(decimals) if re.fullmatch(r"[+-]?\d{1,3}", decimals) else None,
                )
            )
        return facts

    def cover(self, contexts: dict[str, Context]) -> dict[str, str]:
        """Return the cover page; entries of the whole company take precedence over those of a share class."""
        cover: dict[str, str] = {}
        for dimensional in (False, True):
            for tag, reference, text in self._covers:
                if text and bool(contexts[reference].dimensions) == dimensional:
                    cover.setdefault(tag, text)
                    if tag == "DocumentType" and not self.document_context:
                        self.document_context = reference
        return cover

    @staticmethod
    def _value(opened: _Open, text: str) -> float:
        attributes = opened.attributes
        if opened.inline:
            # The year of the registry's namespace does not change a transformation.
            digits = transformed(text, attributes.get("format", "").rpartition(":")[2])
            sign = "-" if attributes.get("sign") == "-" else ""
            value = float(f"{sign}{digits}e{attributes.get('scale') or 0}")
        else:
            value = float(text)
        if not math.isfinite(value):
            raise ValueError(f"{text!r} is not finite")
        return value

    def _start_root(self, name: str, attributes: dict[str, str]) -> None:
        self._root = name
        self._parser.StartElementHandler = self._start
        self._start(name, attributes)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        handler = self._starts.get(name)
        if handler is not None:
            handler(attributes)
        elif "contextRef" in attributes or name in self._marked:
            self._start_fact(name, attributes)

    def _end(self, name: str) -> None:
        handler = self._ends.get(name)
        if handler is not None:
            handler()
        elif self._open and (name in self._marked or name == self._element):
            self._end_fact()

    def _start_text(self, _: dict[str, str]) -> None:
        self._text = []
        self._parser.CharacterDataHandler = self._characters

    def _end_text(self) -> str:
        text = "".join(self._text or ()).strip()
        self._text = None
        self._parser.CharacterDataHandler = self._characters if self._wanted else None
        return text

    def _characters(self, text: str) -> None:
        if self._text is not None:
            self._text.append(text)
        for opened in self._open:
            if opened is not None:
                opened.parts.append(text)

    _element = ""
    """Open fact of an instance, whose elements do not contain others."""

    def _start_fact(self, name: str, attributes: dict[str, str]) -> None:
        inline = name in self._marked
        if inline:
            qname = self._qname(attributes.get("name", ""))
        else:
            uri, _, local = name.rpartition(" ")
            qname = (self._taxonomy(uri), local)
            self._element = name
        line = self._parser.CurrentLineNumber
        if (reference := attributes.setdefault("contextRef", "")) not in self._references:
            self._references[reference] = ":".join(qname), line
        numeric = name in self._figures or "unitRef" in attributes
        if numeric:
            # A fraction has two numbers, and no statement uses one.
            wanted = (self.tags is None or qname[1] in self.tags) and not name.endswith(" fraction")
        else:
            wanted = qname[0] == "dei" and qname[1] in _COVER
        if not wanted or attributes.get(_NIL) in ("true", "1"):
            self._open.append(None)
            return
        self._open.append(_Open(qname, attributes, [], line, inline, numeric))
        self._wanted += 1
        self._parser.CharacterDataHandler = self._characters

    def _end_fact(self) -> None:
        self._element = ""
        opened = self._open.pop()
        if opened is None:
            return
        self._wanted -= 1
        if not self._wanted:
            self._parser.CharacterDataHandler = None
        text = " ".join("".join(opened.parts).split())
        if opened.numeric:
            self._numbers.append((opened, text))
        else:
            self._covers.append((opened.qname[1], opened.attributes["contextRef"], text))

    def _start_context(self, attributes: dict[str, str]) -> None:
        self._context = attributes.get("id", "")
        self._period = {}
        self._dimensions = []

    def _end_context(self) -> None:
        start, end = self._period.get("start"), self._period.get("end")
        line = self._parser.CurrentLineNumber
        if not self._period:
            raise self._error(f"the context {self._context!r} has no period", line)
        if start is not None and (end is None or start > end):
            raise self._error(f"the context {self._context!r} starts on {start} and ends on {end}", line)
        self._contexts[self._context] = Context(start, end, tuple(sorted(self._dimensions)))

    def _end_date(self, name: str) -> None:
        text = self._end_text()
        try:
            day = date.fromisoformat(text[:10])
        except ValueError:
            raise self._error(f"unreadable date {text!r}", self._parser.CurrentLineNumber) from None
        # XBRL 2.1, 4.7.2: an end without a time means the following midnight, so an explicit midnight ends the day
        # before.
        if name == "end" and _MIDNIGHT.match(text, 10):
            day -= timedelta(days=1)
        self._period[name] = day

    def _end_identifier(self) -> None:
        self.identifier = self._end_text()
        if self.identifier:  # every context repeats it
            del self._starts[_IDENTIFIER], self._ends[_IDENTIFIER]

    def _start_member(self, attributes: dict[str, str]) -> None:
        self._axis = ":".join(self._qname(attributes.get("dimension", "")))
        self._start_text(attributes)

    def _start_unit(self, attributes: dict[str, str]) -> None:
        self._unit = attributes.get("id", "")
        self._measures = ([], [])
        self._divided = False

    def _start_denominator(self, _: dict[str, str]) -> None:
        self._divided = True

    def _end_unit(self) -> None:
        above, below = ("*".join(part) for part in self._measures)
        self._units[self._unit] = f"{above}/{below}" if below else above

    def _qname(self, text: str) -> tuple[str, str]:
        """Resolve a prefixed name to taxonomy and local name."""
        prefix, _, local = text.strip().rpartition(":")
        uris = self._prefixes.get(prefix)
        if not uris:
            raise self._error(f"the prefix of {text!r} is not declared", self._parser.CurrentLineNumber)
        return self._taxonomy(uris[-1]), local

    def _taxonomy(self, uri: str) -> str:
        """Return `us-gaap`, `srt`, `dei`, `country`, ... for standard taxonomies, else the document's prefix."""
        known = self._canonical.get(uri)
        if known is None:
            standard = _STANDARD.search(uri)
            declared = (prefix for prefix, uris in self._prefixes.items() if uris and uris[-1] == uri)
            known = self._canonical[uri] = standard.group(1) if standard else next(declared, "")
        return known

    def _refuse_entity(self, name: str, *_: object) -> None:
        raise self._error(f"declares the entity {name!r}", self._parser.CurrentLineNumber)

    def _error(self, problem: str, line: int) -> SourceError:
        return SourceError(self.path, problem, line=line, remedy="download it again, or leave the filing out")
