"""Every fundamental label of the edition against the oracle, which reads the same raw files in its own way."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.oracles import fundamental as oracle
from tests.subtasks.attacks import scored

from finskillbench.edition import Edition
from finskillbench.episode import Episode
from finskillbench.sources.edgar.metrics import TABLE

Json = dict[str, Any]
REL = 1e-9
"""Relative; labels are sums, differences and ratios of figures that are exact in the files."""
EPISODES = {"normalization": 244, "earnings_quality": 1002, "driver_decomposition": 997}


class Raw:
    """The raw files of a collection by ticker; of two files of one company the one with more tags.

    segments : whether the oracle can read all the instances (plain XBRL in a folder per ticker, no inline XBRL).
    """

    def __init__(self, folder: Path, *, segments: bool) -> None:
        self._folder, self.segments = folder, segments
        self._table = oracle.concepts(TABLE)
        self._filers: dict[str, oracle.Filer] = {}
        self._records: dict[int, Json] = {}
        self._ciks: dict[str, int] = {}
        self._filed: dict[str, str] = {}
        for path in (folder / "submissions").rglob("*.json*"):
            record = oracle.read(path)
            if isinstance(record, dict) and "tickers" in record:
                self._ciks |= dict.fromkeys(record["tickers"], int(record["cik"]))
                recent = record["filings"]["recent"]
                self._filed |= dict(zip(recent["accessionNumber"], recent["filingDate"], strict=True))
        for path in (folder / "companyfacts").rglob("*.json*"):
            record = oracle.read(path)
            cik = int(record["cik"])
            self._ciks |= {record["ticker"]: cik} if "ticker" in record else {}
            if cik not in self._records or _tags(record) > _tags(self._records[cik]):
                self._records[cik] = record

    def filer(self, symbol: str) -> oracle.Filer:
        """One company with its instances."""
        if symbol not in self._filers:
            company = oracle.filer(self._records[self._ciks[symbol]], self._table)
            if self.segments:
                tags = [alias.tag for alias in self._table["revenue"].aliases]
                paths = sorted((self._folder / "xbrl" / symbol).glob("*.xml*"))
                company.instances = [oracle.instance(p, self._filed[p.name.partition(".")[0]], tags) for p in paths]
            self._filers[symbol] = company
        return self._filers[symbol]


def _tags(record: Json) -> int:
    return sum(len(tags) for tags in record["facts"].values())


@pytest.fixture(scope="module")
def raw(edition: Edition, request: pytest.FixtureRequest) -> Raw:
    """The files that the edition was built from."""
    if edition.manifest["source"]["kind"] != "synthetic":
        return Raw(request.getfixturevalue("realdata"), segments=False)
    return Raw(request.getfixturevalue("synthetic_raw"), segments=True)


def differences(expected: Any, found: Any, path: str = "") -> list[str]:
    """Leaves of the label that the oracle has otherwise, or not at all."""
    if isinstance(found, Mapping):
        if not isinstance(expected, Mapping):
            return [f"{path}: the oracle has {expected!r}"]
        keys = {*expected, *found}
        return [
            line for key in sorted(keys) for line in differences(expected.get(key), found.get(key), f"{path}.{key}")
        ]
    if isinstance(found, list):
        if not isinstance(expected, list) or len(expected) != len(found):
            return [f"{path}: oracle {expected!r}, label {found!r}"]
        pairs = enumerate(zip(expected, found, strict=True))
        return [line for i, (one, other) in pairs for line in differences(one, other, f"{path}[{i}]")]
    if _number(expected) and _number(found):
        near = abs(expected - found) <= REL * max(abs(expected), abs(found))
        return [] if near else [f"{path}: oracle {expected!r}, label {found!r}"]
    return [] if expected == found else [f"{path}: oracle {expected!r}, label {found!r}"]


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def normalization_differences(raw: Raw, given: Json, as_of: str, label: Json) -> list[str]:
    company = raw.filer(given["symbol"])
    mine = oracle.normalization(company, given["period_end"], given["form_type"], as_of)
    return differences({"metrics": mine}, label)


def earnings_quality_differences(raw: Raw, given: Json, as_of: str, label: Json) -> list[str]:
    company = raw.filer(given["symbol"])
    mine = oracle.earnings_quality(company, given.get("current_period_end") or given["period_end"], as_of)
    return differences(mine | {"flags": sorted(mine["flags"])}, label | {"flags": sorted(label["flags"])})


def driver_differences(raw: Raw, given: Json, as_of: str, label: Json) -> list[str]:
    """Names by their letters and digits; drivers of equal size may stand in any order."""
    company = raw.filer(given["symbol"])
    mine = oracle.driver_decomposition(company, given["current_period_end"], given["prior_period_end"], as_of)
    if not raw.segments:
        mine["top_revenue_drivers"] = label["top_revenue_drivers"]
    return differences(_ordered(mine), _ordered(label))


def _ordered(answer: Json) -> Json:
    found = dict(answer)
    for key, size in (("top_revenue_drivers", "magnitude_usd"), ("margin_drivers", "delta_pp")):
        rows = [{**row, "driver": re.sub("[^a-z0-9_]", "", row["driver"].lower())} for row in answer[key]]
        found[key] = sorted(rows, key=lambda row: (-round(abs(row[size]), 6), row["driver"]))
    return found


DIFFERENCES = {
    "normalization": normalization_differences,
    "earnings_quality": earnings_quality_differences,
    "driver_decomposition": driver_differences,
}


def compared(edition: Edition, raw: Raw, sub_task: str) -> dict[str, list[str]]:
    """Disagreements by episode."""
    found = {}
    for episode in edition.episodes([sub_task]):
        label = dict(edition.truth(episode.task_id).expected_output)
        lines = DIFFERENCES[sub_task](raw, dict(episode.input), _day(episode), label)
        if lines:
            found[episode.task_id] = lines
    return found


def _day(episode: Episode) -> str:
    return episode.as_of_date.isoformat()


@pytest.mark.parametrize("sub_task", EPISODES)
def test_the_edition_is_whole(edition: Edition, sub_task: str) -> None:
    assert len(edition.episodes([sub_task])) == EPISODES[sub_task]


@pytest.mark.parametrize("sub_task", EPISODES)
def test_every_label_is_what_the_raw_files_say(edition: Edition, raw: Raw, sub_task: str) -> None:
    found = compared(edition, raw, sub_task)
    assert found == {}, f"{len(found)} of {EPISODES[sub_task]}"


@pytest.mark.parametrize("sub_task", EPISODES)
def test_the_day_of_an_episode_is_that_of_its_filing(edition: Edition, raw: Raw, sub_task: str) -> None:
    """The day before, at least one figure that the label rests on was not public."""
    early = []
    for episode in edition.episodes([sub_task])[::4]:
        given = dict(episode.input)
        company = raw.filer(given["symbol"])
        end = given.get("current_period_end") or given["period_end"]
        public = {row.filed for rows in company.rows.values() for row in rows if row.end == end}
        if _day(episode) not in public:
            early.append((episode.task_id, _day(episode), sorted(public)[:3]))
    assert early == []


@pytest.mark.parametrize("sub_task", EPISODES)
def test_the_oracles_own_answer_earns_full_marks(edition: Edition, raw: Raw, sub_task: str) -> None:
    """What somebody with the right method would send, from the raw files; segments under the names as labelled."""
    for episode in edition.episodes([sub_task])[::10]:
        given, label = dict(episode.input), dict(edition.truth(episode.task_id).expected_output)
        company = raw.filer(given["symbol"])
        if sub_task == "normalization":
            mine = oracle.normalization(company, given["period_end"], given["form_type"], _day(episode))
            answer: Json = {"metrics": mine}
        elif sub_task == "earnings_quality":
            end = given.get("current_period_end") or given["period_end"]
            answer = oracle.earnings_quality(company, end, _day(episode))
        else:
            ends = given["current_period_end"], given["prior_period_end"]
            answer = oracle.driver_decomposition(company, *ends, _day(episode))
            if not raw.segments:
                answer["top_revenue_drivers"] = label["top_revenue_drivers"]
            names = {re.sub("[^a-z0-9]", "", r["driver"].lower()): r["driver"] for r in label["top_revenue_drivers"]}
            for row in answer["top_revenue_drivers"]:
                row["driver"] = names.get(row["driver"], row["driver"])
        value = scored(edition, episode, answer).value
        assert value == pytest.approx(1.0, abs=1e-9), episode.task_id
