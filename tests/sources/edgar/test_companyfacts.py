"""Company facts as the SEC serves them: what is read, what is noted, what is refused and with which words."""

import gzip
import json
import re
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from finskillbench.errors import InternalError, SourceError
from finskillbench.sources.edgar.companyfacts import FACTS_SCHEMA, PERIODIC_FORMS, parse_companyfacts
from finskillbench.sources.edgar.numerals import CANONICAL, CANONICAL_TAGS, METRICS, TABLE, load_metrics


def row(**changes: Any) -> dict[str, Any]:
    fact = {
        "start": "2023-01-01",
        "end": "2023-03-31",
        "val": 100,
        "accn": "0000000001-23-000001",
        "fy": 2023,
        "fp": "Q1",
        "form": "10-Q",
        "filed": "2023-05-01",
    }
    return {key: value for key, value in (fact | changes).items() if value is not ...}


def written(folder: Path, rows: list[dict[str, Any]], **wrapper: Any) -> Path:
    record = {"cik": 1, "entityName": "One\u00a0Inc.", "facts": {"us-gaap": {"Revenues": {"units": {"USD": rows}}}}}
    path = folder / "CIK0000000001.json"
    path.write_text(json.dumps(record | wrapper))
    return path


def test_rows_come_out_as_served(tmp_path: Path) -> None:
    path = written(tmp_path, [row(frame="CY2023Q1"), row(start=..., val=2.5, fy=None, fp=None)], ticker="ONE.A")
    company = parse_companyfacts(path)
    assert (company.cik, company.entity, company.ticker, company.notes) == (1, "One Inc.", "ONE-A", ())
    assert dict(company.facts.schema) == FACTS_SCHEMA
    first, second = company.facts.iter_rows(named=True)
    assert first["start"] == date(2023, 1, 1)
    assert (first["value"], first["frame"], first["fiscal_period"]) == (100.0, "CY2023Q1", "Q1")
    assert (second["start"], second["value"], second["fiscal_year"]) == (None, 2.5, None)


def test_gzip_is_read_and_only_wanted_tags_are_kept(tmp_path: Path) -> None:
    facts = {
        "us-gaap": {"Revenues": {"units": {"USD": [row()]}}, "Goodwill": {"units": {"USD": [row(start=...)]}}},
        "invest": {},
        "ifrs-full": {"_stripped": True},
    }
    path = tmp_path / "ONE.json.gz"
    path.write_bytes(gzip.compress(json.dumps({"cik": "0000000001", "entityName": "One", "facts": facts}).encode()))
    assert parse_companyfacts(path).facts["tag"].to_list() == ["Revenues"]
    assert parse_companyfacts(path, tags={"Goodwill"}).facts["tag"].to_list() == ["Goodwill"]
    assert parse_companyfacts(path, tags=None).facts.height == 2
    assert parse_companyfacts(path).cik == 1


def test_a_figure_of_the_future_is_left_out_and_noted(tmp_path: Path) -> None:
    company = parse_companyfacts(written(tmp_path, [row(), row(end="2023-12-31")]))
    assert company.facts.height == 1
    assert "Revenues of 0000000001-23-000001 ends 2023-12-31, after it was filed (2023-05-01)" in company.notes[0]


@pytest.mark.parametrize(
    "changes",
    [
        {"form": "DEF 14A", "fy": 0},
        {"form": "8-K", "val": None},
        {"form": "8-K", "filed": ""},
        {"form": "S-4", "accn": "none", "start": "2024-01-01"},
        {"form": "DEF 14A", "val": 101},
    ],
)
def test_a_row_of_a_form_that_is_not_used_is_skipped_unchecked(tmp_path: Path, changes: dict[str, Any]) -> None:
    company = parse_companyfacts(written(tmp_path, [row(**changes), row(), row(**changes)]))
    assert company.facts["form"].to_list() == ["10-Q"]
    assert company.notes == ()


def test_errors_number_rows_as_the_file_does(tmp_path: Path) -> None:
    """Rows that are skipped count: the first of a used form that is wrong is the third of the file."""
    skipped = row(form="8-K", val=None)
    for wrong in (row(filed=""), row(val=None)):
        with pytest.raises(SourceError, match=r"us-gaap:Revenues \[USD\] row 2 \(0000000001-23-000001\)"):
            parse_companyfacts(written(tmp_path, [skipped, row(), wrong]))


def test_units_are_known_whatever_their_case(tmp_path: Path) -> None:
    """`usd` is USD; two figures for one period under two spellings are as wrong as under one."""
    share = row(val=1.5, start=...)
    units = {"usd": [row()], "USD/Shares": [share], "SHARES": [share], "EUR": [share]}
    path = written(tmp_path, [], facts={"us-gaap": {"Revenues": {"units": units}}})
    assert parse_companyfacts(path).facts["unit"].to_list() == ["USD", "USD/shares", "shares", "EUR"]
    units = {"usd": [row()], "USD": [row(val=101)]}
    with pytest.raises(SourceError, match=r"\[USD\] row 0 \(.*\): 100 and 101 for one period"):
        parse_companyfacts(written(tmp_path, [], facts={"us-gaap": {"Revenues": {"units": units}}}))


def test_a_repeated_row_counts_once(tmp_path: Path) -> None:
    assert parse_companyfacts(written(tmp_path, [row(), row()])).facts.height == 1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"start": "2023-04-01"}, "the period starts after its end"),
        ({"val": None}, "val is None, not a finite number"),
        ({"val": "100"}, "val is '100', not a finite number"),
        ({"val": True}, "val is True, not a finite number"),
        ({"end": ...}, "no end"),
        ({"end": "2023-02-30"}, "end is '2023-02-30', not YYYY-MM-DD"),
        ({"end": 20230331}, "end is 20230331"),
        ({"filed": ""}, "no filing date"),
        ({"form": None}, "form is None"),
        ({"accn": "0000000001-23-1"}, "the accession is not of the form"),
        ({"fy": "2023"}, "fy is '2023', not a year"),
        ({"val": 101}, "100 and 101 for one period in one accession"),
    ],
)
def test_a_row_that_would_corrupt_a_label_is_refused_by_name(
    tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    path = written(tmp_path, [row(), row(**changes)])
    with pytest.raises(SourceError) as caught:
        parse_companyfacts(path)
    message = str(caught.value)
    assert words in message
    assert str(path) in message
    assert "us-gaap:Revenues [USD] row 1" in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"cik": 1, "entityName": "One", "facts": {"us-gaap": {"Reve', "not valid JSON"),
        ('{"cik": 1, "facts": {"us-gaap": {"Revenues": {"units": {"USD": [{"val": NaN}]}}}}}', "not valid JSON"),
        ("[1]", "not a JSON object"),
        ('{"cik": 1, "entityName": "One"}', "no object 'facts'"),
        ('{"entityName": "One", "facts": {}}', "no central index key"),
        ('{"cik": -1, "facts": {}}', "no central index key"),
        ('{"cik": 1, "facts": {"us-gaap": []}}', "facts.us-gaap is not an object"),
        ('{"cik": 1, "facts": {"us-gaap": {"Revenues": {"units": {"USD": {}}}}}}', "is not a list of rows"),
        ("", "the file is empty"),
    ],
)
def test_a_file_that_is_no_company_facts_is_refused(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "CIK0000000001.json"
    path.write_text(text)
    with pytest.raises(SourceError, match=words):
        parse_companyfacts(path)


def test_a_company_without_facts_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "CIK0000000001.json"
    path.write_text('{"cik": 1, "entityName": "One", "facts": {}}')
    assert parse_companyfacts(path).facts.is_empty()


def test_the_table_of_metrics_agrees_with_itself(tmp_path: Path) -> None:
    assert set(CANONICAL) < set(METRICS)
    assert {METRICS[name].unit for name in ("eps_diluted", "diluted_shares")} == {"USD/shares", "shares"}
    assert not METRICS["eps_diluted"].additive
    assert not METRICS["total_assets"].additive
    assert all(alias.reason.endswith(".") for metric in METRICS.values() for alias in metric.aliases)
    assert {"Revenues", "CostOfServices", "EntityCommonStockSharesOutstanding"} <= CANONICAL_TAGS
    table = json.loads(TABLE.read_text())
    table["metrics"]["gross_profit"]["aliases"].append({"tag": "us-gaap:Revenues", "reason": "Twice."})
    path = tmp_path / "metrics.json"
    path.write_text(json.dumps(table))
    with pytest.raises(InternalError, match="us-gaap:Revenues is an alias of two metrics"):
        load_metrics(path)
    table["metrics"]["gross_profit"]["aliases"].pop()
    table["metrics"]["gross_profit"]["fallbacks"][0]["terms"] = {"total_assets": 1}
    path.write_text(json.dumps(table))
    with pytest.raises(InternalError, match="a term of another kind: total_assets"):
        load_metrics(path)


def _unlisted(tags: Iterable[tuple[str, str, bool]]) -> set[tuple[str, str]]:
    """Metrics and us-gaap tags that match a pattern of the table and are neither a candidate nor excluded.

    tags : name, unit and whether the figures are of one day.
    """
    listed = {alias.tag for metric in METRICS.values() for alias in metric.aliases}
    return {
        (name, tag)
        for name, metric in METRICS.items()
        if metric.pattern
        for tag, unit, instant in tags
        if (unit, "instant" if instant else "flow") == (metric.unit, metric.kind) and re.search(metric.pattern, tag)
        if tag not in listed and not any(tag in some.tags for some in metric.excluded)
    }


def test_every_concept_that_may_stand_for_a_metric_is_judged(realdata: Path) -> None:
    """All us-gaap concepts of periodic reports in any file: each match of a pattern has a rank or a reason."""
    seen = set[tuple[str, str, bool]]()
    for path in sorted(realdata.glob("companyfacts/*/*.gz")):
        concepts = json.loads(gzip.decompress(path.read_bytes()))["facts"].get("us-gaap", {})
        for tag, concept in concepts.items():
            for unit, rows in concept.get("units", {}).items():
                used = [row for row in rows if row.get("form") in PERIODIC_FORMS]
                seen |= {(tag, unit, "start" not in row) for row in used}
    assert len(seen) > 2_000
    assert not _unlisted(seen)
    assert _unlisted([("DepreciationOfRailcars", "USD", False), ("DepreciationOfRailcars", "USD", True)]) == {
        ("depreciation_amortization", "DepreciationOfRailcars")
    }
    assert all(metric.pattern for metric in METRICS.values() if not metric.part and metric.unit == "USD/shares")


def test_real_files_are_read_whole(realdata: Path) -> None:
    folder = realdata / "companyfacts"
    apple = parse_companyfacts(folder / "full_2026-07" / "CIK0000320193.json.gz")
    assert (apple.cik, apple.entity, apple.ticker) == (320193, "Apple Inc.", None)
    assert apple.notes == ()
    walmart = parse_companyfacts(folder / "filtered_tags_2026-07" / "WMT.json.gz")
    assert walmart.ticker == "WMT"
    assert [note for note in walmart.notes if "0001193125-12-134679 ends 2012-12-31" in note]
    everything = parse_companyfacts(folder / "full_other" / "CIK0001640147.json.gz", tags=None)
    assert everything.facts["tag"].n_unique() > 200
