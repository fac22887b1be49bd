"""EDGAR company facts: everything that one filer tagged without dimensions, one JSON file per company.

A file is `{"cik", "entityName", "facts": {taxonomy: {tag: {"units": {unit: [row, ...]}}}}}`; a row has `start` (flows
only), `end`, `val`, `accn`, `fy`, `fp`, `form`, `filed` and sometimes `frame`. `fy` and `fp` describe the filing that
the row comes from, not the period of the figure. Wrapper keys (`ticker`, `fetched`) of collectors are tolerated.
"""

import math
from collections.abc import Set
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from finskillbench.errors import SourceError
from finskillbench.sources.edgar.metrics import CANONICAL_TAGS
from finskillbench.sources.edgar.records import ACCESSION, cik_of, date_column, read_record, text_column

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


@dataclass(frozen=True, slots=True)
class CompanyFacts:
    """One filer's facts as served.

    cik, entity : who it is; ticker : the collector's, where the file is wrapped with one.
    facts : rows in the file's order (FACTS_SCHEMA); start is null for instants.
    notes : rows that were left out because they cannot be true, one sentence each.
    file : where they come from.
    """

    cik: int
    entity: str
    ticker: str | None
    facts: pl.DataFrame
    notes: tuple[str, ...]
    file: Path


def parse_companyfacts(path: Path, *, tags: Set[str] | None = CANONICAL_TAGS) -> CompanyFacts:
    """Read one company's facts, plain or gzipped.

    tags : names of the tags to keep, without taxonomy; by default those of the canonical metrics; None keeps all.

    Real filers report figures of periods that end after the filing (a mistyped date): such rows are left out and noted.

    Raises
    ------
    SourceError : truncated or malformed JSON, no `facts`, a row without a finite number, end, form, filing date or
        well-formed accession, a period that starts after its end, two figures for one period in one accession.
    """
    record = read_record(path)
    cik = cik_of(path, record)
    taxonomies = record.get("facts")
    if not isinstance(taxonomies, dict):
        raise SourceError(path, "no object 'facts'", remedy="expected one company's EDGAR company facts")
    columns: dict[str, list] = {name: [] for name in FACTS_SCHEMA}
    places: list[tuple[int, str]] = []
    for taxonomy, concepts in taxonomies.items():
        if not isinstance(concepts, dict):
            raise SourceError(path, f"facts.{taxonomy} is not an object", remedy="download it again")
        for tag in concepts if tags is None else (tag for tag in concepts if tag in tags):
            # Collectors leave marks beside the concepts (`"_stripped": true`).
            units = concepts[tag].get("units") if isinstance(concepts[tag], dict) else None
            for unit, rows in units.items() if isinstance(units, dict) else ():
                name = f"{taxonomy}:{tag} [{unit}]"
                if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
                    raise SourceError(path, f"{name} is not a list of rows", remedy="download it again")
                places.append((len(columns["tag"]), name))
                columns["taxonomy"] += [taxonomy] * len(rows)
                columns["tag"] += [tag] * len(rows)
                columns["unit"] += [unit] * len(rows)
                for column, key in _KEYS.items():
                    columns[column] += [row.get(key) for row in rows]
    facts, notes = _checked(path, columns, places)
    ticker = record.get("ticker")
    return CompanyFacts(
        cik=cik,
        entity=" ".join(str(record.get("entityName") or "").split()),
        ticker=ticker.upper().replace(".", "-") if isinstance(ticker, str) and ticker else None,
        facts=facts,
        notes=notes,
        file=path,
    )


_KEYS = {
    "start": "start",
    "end": "end",
    "value": "val",
    "accession": "accn",
    "fiscal_year": "fy",
    "fiscal_period": "fp",
    "form": "form",
    "filed": "filed",
    "frame": "frame",
}

_PERIOD = ("taxonomy", "tag", "unit", "start", "end", "accession")


def _checked(
    path: Path, columns: dict[str, list], places: list[tuple[int, str]]
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    def refuse(row: int, problem: str) -> SourceError:
        first, name = max(place for place in places if place[0] <= row)
        accession = columns["accession"][row]
        return SourceError(path, f"{name} row {row - first} ({accession}): {problem}", remedy="remove the row")

    values = columns["value"]
    if not set(map(type, values)) <= {int, float} or not all(map(math.isfinite, values)):
        for i, value in enumerate(values):
            if type(value) not in (int, float) or not math.isfinite(value):
                raise refuse(i, f"val is {value!r}, not a finite number")
    for i, year in enumerate(columns["fiscal_year"]):
        if year is not None and (type(year) is not int or not 1900 <= year <= 9999):
            raise refuse(i, f"fy is {year!r}, not a year")
    facts = pl.DataFrame(
        [
            *(pl.Series(name, columns[name], dtype=pl.String) for name in ("taxonomy", "tag", "unit")),
            date_column(columns["start"], refuse, name="start"),
            date_column(columns["end"], refuse, name="end"),
            pl.Series("value", [float(value) for value in values], dtype=pl.Float64),
            text_column(columns["accession"], refuse, name="accession"),
            pl.Series("fiscal_year", columns["fiscal_year"], dtype=pl.Int32),
            pl.Series("fiscal_period", columns["fiscal_period"], dtype=pl.String, strict=False),
            text_column(columns["form"], refuse, name="form"),
            date_column(columns["filed"], refuse, name="filed"),
            pl.Series("frame", columns["frame"], dtype=pl.String, strict=False),
        ],
    )
    for mask, problem in (
        (facts["end"].is_null(), "no end"),
        (facts["filed"].is_null(), "no filing date"),
        (~facts["accession"].str.contains(ACCESSION), "the accession is not of the form 0000000000-00-000000"),
        ((facts["start"] > facts["end"]).fill_null(False), "the period starts after its end"),
    ):
        if mask.any():
            raise refuse(mask.arg_max() or 0, problem)
    facts = facts.with_row_index("row")
    twice = facts.filter(pl.struct(_PERIOD).is_duplicated())
    for _, group in twice.group_by(_PERIOD, maintain_order=True):
        if group["value"].n_unique() > 1:
            first, second = group["value"][0], group["value"][1]
            raise refuse(group["row"][1], f"{first:.15g} and {second:.15g} for one period in one accession")
    facts = facts.unique(_PERIOD, keep="first", maintain_order=True) if not twice.is_empty() else facts
    early = facts.filter(pl.col("filed") < pl.col("end"))
    notes = tuple(
        f"{path.name}: {row['taxonomy']}:{row['tag']} of {row['accession']} ends {row['end']}, after it was filed "
        f"({row['filed']}): left out."
        for row in early.iter_rows(named=True)
    )
    return facts.filter(pl.col("filed") >= pl.col("end")).drop("row"), notes
