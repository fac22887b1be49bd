"""EDGAR company facts: one JSON file per filer with everything that it tagged without dimensions.

A file is `{"cik", "entityName", "facts": {taxonomy: {tag: {"units": {unit: [row, ...]}}}}}`. A row has `start` (flows
only), `end`, `val`, `accn`, `fy`, `fp`, `form`, `filed` and sometimes `frame`. `fy` and `fp` describe the filing, not
the period of the figure. Additional keys of collectors (`ticker`, `fetched`) are accepted.
"""

import re
from collections.abc import Set
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
import orjson
import polars as pl
from msgspec.structs import astuple

from finskillbench.errors import SourceError
from finskillbench.sources import files
from finskillbench.sources.edgar.numerals import METRICS, STATEMENT_TAGS

FACTS_SCHEMA = {
    "taxonomy": pl.String,
    "tag": pl.String,
    "unit": pl.String,
    "start": pl.Date,
    "end": pl.Date,
    "value": pl.Float64,
    "accession": pl.String,
    "fiscal_year": pl.Int32,
    "fiscal_period": pl.String,
    "form": pl.String,
    "filed": pl.Date,
    "frame": pl.String,
}

PERIODIC_FORMS = tuple(
    form + suffix for form in ("10-Q", "10-K", "10-QT", "10-KT", "20-F", "40-F") for suffix in ("", "/A")
)
"""Forms whose rows are read; others repeat figures (proxy statements) or recast years (8-K)."""


@dataclass(frozen=True, slots=True)
class EdgarFiler:
    """Identity of a filer, with the `ticker` that a collector may have added, and the file of its facts."""

    cik: int
    entity: str
    ticker: str | None
    file: Path


@dataclass(frozen=True, slots=True)
class EdgarFacts(EdgarFiler):
    """One filer's facts as served.

    facts : rows of PERIODIC_FORMS in the file's order (FACTS_SCHEMA); start is null for instants; units are spelt as in
        the table of metrics. notes : omitted rows that cannot be true.
    """

    facts: pl.DataFrame
    notes: tuple[str, ...]


def parse_filer(path: Path) -> EdgarFiler:
    """Read the identity in a plain or gzipped file; SourceError for malformed JSON, no `facts` or no CIK."""
    return _filer(path, _read(path))


def parse_companyfacts(path: Path, *, tags: Set[str] | None = STATEMENT_TAGS) -> EdgarFacts:
    """Read one company's facts, plain or gzipped.

    `tags` are local names to keep, by default those of the primary statements; None keeps all. Rows outside
    PERIODIC_FORMS are skipped unchecked. Rows whose period ends after the filing (a mistyped date) are omitted and
    noted.

    Raises
    ------
    SourceError : malformed JSON, no `facts`, a row without a form, or an invalid periodic row: number, dates,
        accession, order of dates, or two figures for one period and accession.
    """
    record = _read(path)
    filer = _filer(path, record)
    places: list[_Place] = []
    rows: list[_Row] = []
    for taxonomy, concepts in record.facts.items():
        for tag in concepts if tags is None else (tag for tag in concepts if tag in tags):
            for unit, found in _units(path, f"{taxonomy}:{tag}", concepts[tag]).items():
                used = [number for number, row in enumerate(found) if row.form in _FORMS]
                places.append(_Place(len(rows), taxonomy, tag, _UNITS.get(unit.lower(), unit), used))
                rows += [found[number] for number in used]
    facts, notes = _table(path, places, rows)
    return EdgarFacts(filer.cik, filer.entity, filer.ticker, path, facts, notes)


class _Row(msgspec.Struct, gc=False):
    """A row as served; dates and accession are checked for all rows at once."""

    val: float
    accn: Annotated[str, msgspec.Meta(min_length=1)]
    form: Annotated[str, msgspec.Meta(min_length=1)]
    start: str | None = None
    end: str | None = None
    filed: str | None = None
    fy: Annotated[int, msgspec.Meta(ge=1900, le=9999)] | None = None
    fp: object = None
    frame: object = None


class _Concept(msgspec.Struct):
    units: dict[str, list[_Row]] = {}


class _File(msgspec.Struct):
    """A file with undecoded concepts, because most are skipped."""

    facts: dict[str, dict[str, msgspec.Raw]]
    cik: object = None
    entity_name: object = msgspec.field(name="entityName", default=None)
    ticker: object = None


class _Place(msgspec.Struct):
    """First row of a tag in a unit, and the numbers of its rows in the file."""

    first: int
    taxonomy: str
    tag: str
    unit: str
    numbers: list[int]


_FILE, _CONCEPT = msgspec.json.Decoder(_File), msgspec.json.Decoder(_Concept)
_FORMS = frozenset(PERIODIC_FORMS)
_UNITS = {metric.unit.lower(): metric.unit for metric in METRICS.values()}
"""Units of the table of metrics by lower-case name: converters of SEC files also write `usd`."""
_EXPECTED = {"val": ", not a finite number", "fy": ", not a year"}
_PERIOD = ("taxonomy", "tag", "unit", "start", "end", "accession")


def _read(path: Path) -> _File:
    try:
        return _FILE.decode(files.read_text(path))
    except (msgspec.DecodeError, RecursionError):
        raise _why_unreadable(path) from None


def _filer(path: Path, record: _File) -> EdgarFiler:
    ticker = files.symbol_of(record.ticker) if isinstance(record.ticker, str) and record.ticker else None
    return EdgarFiler(files.cik_of(path, record.cik), files.one_line(record.entity_name), ticker, path)


def _why_unreadable(path: Path) -> SourceError:
    record = files.read_json_object(path)
    files.cik_of(path, record.get("cik"))
    facts = files.json_object(record.get("facts"))
    if facts is None:
        return SourceError(path, "no object 'facts'", remedy="expected one company's EDGAR company facts")
    taxonomy = next(name for name, concepts in facts.items() if files.json_object(concepts) is None)
    return SourceError(path, f"facts.{taxonomy} is not an object", remedy="download it again")


def _units(path: Path, concept: str, content: msgspec.Raw) -> dict[str, list[_Row]]:
    """Return the rows of a concept by unit; none for additional keys of collectors (`"_stripped": true`)."""
    try:
        return _CONCEPT.decode(content).units
    except msgspec.DecodeError:
        pass
    files.read_json_object(path)  # finds the line of invalid JSON, such as a number too large for a double
    units = files.json_object((files.json_object(orjson.loads(bytes(content))) or {}).get("units")) or {}
    found: dict[str, list[_Row]] = {}
    for unit, rows in units.items():
        listed = files.json_list(rows)
        if listed is None or any(files.json_object(row) is None for row in listed):
            raise SourceError(path, f"{concept} [{unit}] is not a list of rows", remedy="download it again")
        found[unit] = [
            _row(path, f"{concept} [{unit}] row {i}", files.json_object(row) or {}) for i, row in enumerate(listed)
        ]
    return found


def _row(path: Path, place: str, row: dict[str, object]) -> _Row:
    """Convert a row; rows of unused forms keep the form only."""
    form = row.get("form")
    if isinstance(form, str) and form and form not in _FORMS:
        return _Row(val=0.0, accn="unused", form=form)
    try:
        return msgspec.convert(row, _Row)
    except msgspec.ValidationError as error:
        raise _row_error(path, place, row, str(error)) from None


def _row_error(path: Path, place: str, row: dict[str, object], problem: str) -> SourceError:
    key = next(key for key in re.findall(r"\w+", problem) if key in _Row.__struct_fields__)
    name = {"accn": "accession"}.get(key, key)
    return SourceError(
        path,
        f"{place} ({row.get('accn')}): {name} is {row.get(key)!r}{_EXPECTED.get(key, '')}",
        remedy="remove the row",
    )


def _table(path: Path, places: list[_Place], rows: list[_Row]) -> tuple[pl.DataFrame, tuple[str, ...]]:
    def refuse(row: int, problem: str) -> SourceError:
        place = next(place for place in reversed(places) if place.first <= row)
        number = place.numbers[row - place.first]
        name = f"{place.taxonomy}:{place.tag} [{place.unit}] row {number} ({rows[row].accn})"
        return SourceError(path, f"{name}: {problem}", remedy="remove the row")

    columns = zip(*map(astuple, rows), strict=True) if rows else [()] * len(_Row.__struct_fields__)
    value, accession, form, start, end, filed, fiscal_year, fiscal_period, frame = columns
    counts = [len(place.numbers) for place in places]
    repeated = pl.DataFrame(
        [(place.taxonomy, place.tag, place.unit) for place in places],
        schema=dict.fromkeys(("taxonomy", "tag", "unit"), pl.String),
        orient="row",
    ).select(pl.all().repeat_by(pl.Series(counts, dtype=pl.UInt32)).explode())
    facts = repeated.with_columns(
        files.date_column("start", start, refuse),
        files.date_column("end", end, refuse),
        pl.Series("value", value, dtype=pl.Float64),
        pl.Series("accession", accession, dtype=pl.String),
        pl.Series("fiscal_year", fiscal_year, dtype=pl.Int32),
        pl.Series("fiscal_period", fiscal_period, dtype=pl.String, strict=False),
        pl.Series("form", form, dtype=pl.String),
        files.date_column("filed", filed, refuse),
        pl.Series("frame", frame, dtype=pl.String, strict=False),
    )
    files.refuse_rows(
        refuse,
        (facts["end"].is_null(), "no end"),
        (facts["filed"].is_null(), "no filing date"),
        (~facts["accession"].str.contains(files.ACCESSION), "the accession is not of the form 0000000000-00-000000"),
        ((facts["start"] > facts["end"]).fill_null(False), "the period starts after its end"),
    )
    facts = facts.with_row_index("row")
    twice = facts.filter(pl.struct(_PERIOD).is_duplicated())
    for _, group in twice.group_by(_PERIOD, maintain_order=True):
        if group["value"].n_unique() > 1:
            first, repeated = group["value"][0], group["value"][1]
            raise refuse(group["row"][1], f"{first:.15g} and {repeated:.15g} for one period in one accession")
    facts = facts.unique(_PERIOD, keep="first", maintain_order=True) if not twice.is_empty() else facts
    early = facts.filter(pl.col("filed") < pl.col("end"))
    notes = tuple(
        f"{path.name}: {row['taxonomy']}:{row['tag']} of {row['accession']} ends {row['end']}, after it was filed "
        f"({row['filed']}): left out."
        for row in early.iter_rows(named=True)
    )
    return facts.filter(pl.col("filed") >= pl.col("end")).drop("row"), notes
