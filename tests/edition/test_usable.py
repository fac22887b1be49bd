"""Which companies of a collection can be used: `data doctor` and `data build` say the same."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.editions import one_process

from finskillbench import cli
from finskillbench.sources.edgar.numerals import METRICS

pytestmark = pytest.mark.slow

Record = dict[str, Any]
LISTS = ("universe.json", "submissions")
FUNDAMENTAL = ["normalization", "earnings_quality", "driver_decomposition"]


@pytest.fixture(scope="module", autouse=True)
def alone_on_its_core() -> Iterator[None]:
    with one_process():
        yield


class Collection:
    """The filings of a written collection's first companies, whose facts a test alters."""

    def __init__(self, source: Path, folder: Path) -> None:
        self.source, self.raw, self.out = source, folder / "raw", folder / "edition"
        self.raw.mkdir()
        for name in LISTS:
            if (source / name).is_dir():
                shutil.copytree(source / name, self.raw / name, copy_function=os.link)
            else:
                os.link(source / name, self.raw / name)
        (self.raw / "companyfacts").mkdir()

    def add(self, change: Callable[[Record], None]) -> str:
        """Add the next company, altered; return the name of its file."""
        there = list((self.raw / "companyfacts").iterdir())
        path = sorted((self.source / "companyfacts").iterdir())[len(there)]
        record = orjson.loads(path.read_bytes())
        change(record)
        (self.raw / "companyfacts" / path.name).write_bytes(orjson.dumps(record))
        return path.name

    def doctor(self) -> tuple[int, Record]:
        """The exit code of `data doctor`, and its report."""
        report = self.raw.parent / "report.json"
        code = cli.main(["data", "doctor", str(self.raw), "--json", str(report)])
        return code, orjson.loads(report.read_bytes())

    def build(self) -> int:
        """The exit code of `data build`."""
        return cli.main(["data", "build", "--source", "raw-dir", "--raw-dir", str(self.raw), "--out", str(self.out)])

    def counts(self) -> list[str]:
        """The subtasks of the edition that was built."""
        return list(orjson.loads((self.out / "manifest.json").read_bytes())["counts"])


@pytest.fixture
def collection(synthetic_raw: Path, tmp_path: Path) -> Collection:
    return Collection(synthetic_raw, tmp_path)


def _units(record: Record) -> Iterator[tuple[Record, str, list[Record]]]:
    for concepts in record["facts"].values():
        for concept in concepts.values():
            for unit, rows in list(concept["units"].items()):
                yield concept["units"], unit, rows


def unchanged(record: Record) -> None:
    """As written."""


def in_lower_case(record: Record) -> None:
    """Units as some converters write them."""
    for units, unit, rows in _units(record):
        del units[unit]
        units[unit.lower()] = rows


def in_euros(record: Record) -> None:
    """A filer that reports in euros."""
    for units, unit, rows in _units(record):
        del units[unit]
        units[unit.replace("USD", "EUR")] = rows


def under_ifrs(record: Record) -> None:
    """Annual reports of a foreign filer, under the IFRS tags of the table of metrics."""
    tags = {
        alias.tag: other.tag
        for metric in METRICS.values()
        for other in metric.aliases
        for alias in metric.aliases
        if alias.taxonomy == "us-gaap" and other.taxonomy == "ifrs-full"
    }
    concepts = {tags[tag]: concept for tag, concept in record["facts"]["us-gaap"].items() if tag in tags}
    record["facts"] = {"ifrs-full": concepts}
    for _, _, rows in _units(record):
        rows[:] = [row | {"form": row["form"].replace("10-K", "20-F")} for row in rows if "10-K" in row["form"]]


def with_row(**changes: object) -> Callable[[Record], None]:
    """One more row of total assets."""

    def change(record: Record) -> None:
        rows = record["facts"]["us-gaap"]["Assets"]["units"]["USD"]
        rows.append(rows[0] | changes)

    return change


def in_millions(record: Record) -> None:
    """A quarterly report with dollars and shares in millions, which its amendment two weeks later mends."""
    rows = record["facts"]["us-gaap"]["Assets"]["units"]["USD"]
    reports = sorted({(row["filed"], row["accn"]) for row in rows if row["form"] == "10-Q"})
    filed, accession = reports[len(reports) // 2]
    amended = {
        "accn": f"{accession[:-6]}999999",
        "form": "10-Q/A",
        "filed": str(date.fromisoformat(filed) + timedelta(days=14)),
    }
    for _, unit, rows in _units(record):
        mine = [row for row in rows if row["accn"] == accession]
        rows += [row | amended for row in mine]
        for row in mine if unit in ("USD", "shares") else ():
            row["val"] /= 1e6


def _prospect(report: Record) -> Record:
    return next(one for one in report["can_be_built"] if one["domain"] == "fundamental_analysis")


@pytest.mark.parametrize(
    ("change", "subtasks"),
    [
        (in_lower_case, FUNDAMENTAL),
        (under_ifrs, ["normalization"]),
        (with_row(form="DEF 14A", fy=0), FUNDAMENTAL),
        (with_row(form="8-K", val=None), FUNDAMENTAL),
    ],
    ids=["units in lower case", "IFRS", "a proxy statement's row", "an 8-K's row"],
)
def test_a_company_that_can_be_used_is_used_by_both(
    collection: Collection, change: Callable[[Record], None], subtasks: list[str]
) -> None:
    collection.add(change)
    code, report = collection.doctor()
    assert code == 0
    assert _prospect(report)["subtasks"] == subtasks
    assert len(report["companies"]) == 1
    assert report["unusable"] == []
    assert collection.build() == 0
    assert collection.counts() == subtasks


@pytest.mark.parametrize("lists", [True, False])
def test_a_collection_of_which_nothing_can_be_used(
    collection: Collection, capsys: pytest.CaptureFixture[str], lists: bool
) -> None:
    """Figures in euros, or a company that no list names: neither yields an episode, and both commands say why."""
    file = collection.add(in_euros if lists else unchanged)
    if lists:
        why = f"cannot be used: {file} has figures in EUR, EUR/shares, shares where USD is needed; convert them, or"
    else:
        shutil.rmtree(collection.raw / "submissions")
        (collection.raw / "universe.json").unlink()
        why = f"{file} in companyfacts cannot be used: nothing names the ticker; list it with its CIK in universe.json"
    code, report = collection.doctor()
    assert code == 1
    (found,) = [one for kind in report["files"] for one in kind["findings"]]
    assert found["message"].startswith("no episode can be built; ")
    assert why in found["message"]
    assert _prospect(report)["subtasks"] == []
    assert why in _prospect(report)["reason"]
    capsys.readouterr()
    assert collection.build() == 2
    told = capsys.readouterr().err
    assert why in told
    assert "has no company facts" not in told


def test_a_company_that_cannot_be_used_beside_one_that_can_is_named_by_both(
    collection: Collection, capsys: pytest.CaptureFixture[str]
) -> None:
    collection.add(unchanged)
    file = collection.add(in_euros)
    code, report = collection.doctor()
    assert code == 0
    (symbol,) = report["companies"]
    assert set(report["companies"][symbol]) == {"10-K", "10-Q"}
    (unusable,) = report["unusable"]
    assert f"cannot be used: {file} has figures in EUR" in unusable
    assert f"company facts: {unusable}\n" in capsys.readouterr().out
    assert collection.build() == 0
    assert f"note: {unusable}\n" in capsys.readouterr().out


def test_a_report_in_millions_that_its_amendment_mends_is_a_warning(
    collection: Collection, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every check of an edition of untouched files passes or warns: its user cannot mend a filing."""
    collection.add(in_millions)
    assert collection.build() == 0
    capsys.readouterr()
    assert cli.main(["data", "validate", str(collection.out)]) == 0
    shown = capsys.readouterr().out
    assert "WARN  units " in shown
    assert "power of ten of another's, as its filer tagged it; no episode is about the period" in shown


def test_a_bad_row_of_a_report_is_named_by_both(collection: Collection, capsys: pytest.CaptureFixture[str]) -> None:
    """File, concept, accession and field."""
    file = collection.add(with_row(form="10-K", val=None, accn="0000000001-23-000001"))
    code, report = collection.doctor()
    assert code == 1
    (found,) = [one for kind in report["files"] for one in kind["findings"]]
    assert found["where"] == f"companyfacts/{file}"
    assert found["message"].startswith("us-gaap:Assets [USD] row ")
    assert found["message"].endswith("(0000000001-23-000001): val is None, not a finite number; remove the row")
    assert found["message"] in _prospect(report)["reason"]
    capsys.readouterr()
    assert collection.build() == 2
    assert f"{file}: {found['message']}" in capsys.readouterr().err
