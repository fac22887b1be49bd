"""The formats in words are those that the readers read, and the template is made of them."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from finskillbench.sources.companies import constituents
from finskillbench.sources.companies.statements import FIGURES
from finskillbench.sources.companies.universe import SecurityRecord
from finskillbench.sources.edgar import companyfacts, submissions
from finskillbench.sources.files import files_below
from finskillbench.sources.market import collection, prices
from finskillbench.sources.raw import formats
from finskillbench.sources.raw.doctor import write_template

_OTHER_NAMES = {
    "price": "date",
    "adj_close": "adj close",
    "adjclose": "adj close",
    "stockname": "symbol",
    "ticker": "symbol",
}


def _last(names: Iterator[str] | list[str]) -> set[str]:
    return {name.rpartition(".")[2] for name in names}


def test_every_documented_column_is_read_and_every_column_read_is_documented() -> None:
    known = {_OTHER_NAMES.get(name, name) for name in prices._KNOWN}  # pyright: ignore[reportPrivateUsage]
    assert known == {name.lower() for name in formats.PRICES.fields}
    needed = constituents._NEEDED  # pyright: ignore[reportPrivateUsage]
    assert set(needed) == set(formats.CONSTITUENTS.fields)
    factors = collection._NAMES  # pyright: ignore[reportPrivateUsage]
    assert set(factors) == {name.lower() for one in (formats.FIVE_FACTORS, formats.MOMENTUM) for name in one.fields}


def test_every_documented_field_is_read_and_every_field_read_is_documented() -> None:
    rows = companyfacts._Row.__struct_fields__  # pyright: ignore[reportPrivateUsage]
    top = companyfacts._File.__struct_encode_fields__  # pyright: ignore[reportPrivateUsage]
    documented = {name.partition(".")[0] for name in formats.COMPANY_FACTS.fields}
    assert documented == {*rows, *top}
    keys = submissions._KEYS.values()  # pyright: ignore[reportPrivateUsage]
    documented = {name for name in formats.SUBMISSIONS.fields if name.startswith("filings.recent.")}
    assert documented == {f"filings.recent.{key}" for key in keys}
    documented = _last([name for name in formats.UNIVERSE.fields if name.startswith("securities.")])
    assert documented == {field.name for field in fields(SecurityRecord)} - {"symbol"}
    documented = {
        name for name in formats.STATEMENTS.fields if name.partition(".")[0] in ("quarterly", "annual", "balances")
    }
    assert documented == {".".join(place) for place in FIGURES.values()}


def test_the_template_has_a_file_of_every_format_with_every_field(tmp_path: Path) -> None:
    """The optional ones of prices apart, which Yahoo serves in one form or the other."""
    names = write_template(tmp_path / "raw")
    assert "README.md" in names
    raw = tmp_path / "raw"
    for one in formats.FORMATS[2:-1]:
        assert list(raw.glob(f"{one.folder}/**/*.*")), one.path
    listed = csv.DictReader((raw / "constituents/constituents.csv").read_text().splitlines())
    assert set(formats.CONSTITUENTS.fields) <= set(listed.fieldnames or ())
    price = next(files_below(raw / "prices", (".csv",)))
    header = price.read_text().splitlines()[0].split(",")
    assert set(header) <= set(formats.PRICES.fields)
    assert {"Date", "Open", "High", "Low", "Close", "Volume"} <= set(header)
    for one in (formats.STATEMENTS, formats.SUBMISSIONS, formats.UNIVERSE):
        folder = raw / one.folder
        record = json.loads(sorted(folder.glob("*.json"))[0].read_text())
        for name in one.fields:
            assert _holds(record, name.split(".")), (one.path, name)


def _holds(record: object, path: list[str]) -> bool:
    if not path:
        return True
    if path[0] in ("SECTOR", "SYMBOL"):
        assert isinstance(record, dict)
        return all(_holds(part, path[1:]) for part in record.values())
    return isinstance(record, dict) and path[0] in record and _holds(record[path[0]], path[1:])


def test_the_document_is_written_from_the_formats() -> None:
    page = Path(__file__).parents[2] / "docs" / "raw-data.md"
    assert page.read_text(encoding="utf-8").endswith(formats.documentation())


@pytest.mark.parametrize("one", formats.FORMATS, ids=lambda one: one.path)
def test_a_format_says_what_it_is_for(one: formats.RawFormat) -> None:
    assert one.needed
    assert one.header
