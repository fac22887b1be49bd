"""Check statement identities, point-in-time facts of episodes, and restatements."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from datetime import date, timedelta
from functools import lru_cache
from itertools import pairwise
from typing import Any, cast

import polars as pl

from finskillbench.domains.checks.examination import Subject, examining
from finskillbench.domains.fundamental.checks.rows import PanelRow, by_company, fail_rows, period_end
from finskillbench.domains.fundamental.inputs import FundamentalInput, filing_facts
from finskillbench.domains.fundamental.objects.pools import METRICS_OF
from finskillbench.domains.fundamental.rederive.definitions import YEAR_APART, Kind, VisibleFacts, periods_of
from finskillbench.domains.fundamental.rederive.filed import AsFiled, FiledRow
from finskillbench.domains.fundamental.rederive.identities import IDENTITIES
from finskillbench.domains.fundamental.rederive.witness import Witnesses, refuted
from finskillbench.episode import Episode
from finskillbench.errors import InputError
from finskillbench.findings import Findings
from finskillbench.panels import Panels
from finskillbench.panels.filings.query import FactStore
from finskillbench.scoring.values import as_object


def check_identities(subject: Subject, findings: Findings) -> None:
    """Check the identities and witnesses of each label's periods; count excluded labels by broken identity."""
    if subject.episodes and not any("filing_facts" in episode.input for episode in subject.episodes):
        findings.skip("the episodes contain no filing_facts")
        return
    panels = subject.panels(findings)
    if panels is None:
        return
    rows = panels.tables["filed"].select("symbol", *FiledRow._fields)

    @lru_cache(maxsize=32)
    def filed(symbol: str) -> AsFiled:
        return AsFiled(rows.filter(pl.col("symbol") == symbol).drop("symbol").iter_rows())

    for episode in sorted(subject.episodes, key=lambda one: str(one.input.get("symbol"))):
        with examining(episode.task_id, findings):
            facts = VisibleFacts(filing_facts(cast("FundamentalInput", subject.input_of(episode)))[0])
            spans = label_periods(episode, facts)
            findings.add("statements", len(spans))
            witnesses = Witnesses(filed(str(episode.input["symbol"])), episode.as_of_date)
            broken = list(refuted(facts, witnesses, METRICS_OF[episode.sub_task], spans))
            for fault in broken:
                findings.fail(episode.task_id, f"{fault.identity}: {fault.message}")
            findings.expectations += 1
    findings.figures["companies"] = len({episode.input.get("symbol") for episode in subject.episodes})
    left_out: dict[str, int] = dict.fromkeys(IDENTITIES, 0)
    for pool in as_object(subject.edition.manifest["parameters"].get("fundamental_pools")).values():
        for name, count in as_object(as_object(pool).get("faults")).items():
            left_out[name] = left_out.get(name, 0) + count
    findings.figures["left_out"] = {name: count for name, count in left_out.items() if count}


def label_periods(episode: Episode, facts: VisibleFacts) -> list[tuple[date, Kind]]:
    """Return the periods behind the label of an episode."""
    end, prior_end = period_end(episode), None
    if episode.sub_task == "driver_decomposition":
        prior_end = date.fromisoformat(episode.input["prior_period_end"])
    elif episode.sub_task == "earnings_quality":
        prior_end = facts.preceding(end, YEAR_APART)
    return periods_of(episode.sub_task, episode.input["form_type"], end, prior_end)


REFERENCE = "panels/facts.parquet"

Visible = Mapping[tuple[Any, ...], object]


def check_facts_point_in_time(subject: Subject, findings: Findings) -> None:
    """Check that filings follow their periods, and that episodes hold the facts current on their date."""
    panels = subject.panels(findings)
    if panels is not None:
        for name, frame in (("facts", panels.facts), ("segments", panels.segments)):
            fail_rows(frame.filter(pl.col("filed") < pl.col("end")), f"{name}: filed before its period ended", findings)
    history = None if panels is None else _PanelHistory(panels)
    for episode in subject.episodes:
        with examining(episode.task_id, findings, fatal=subject.built):
            _check_task_facts(subject, episode, history, findings)


def _check_task_facts(subject: Subject, episode: Episode, history: _PanelHistory | None, findings: Findings) -> None:
    where, source = episode.task_id, episode.input["filing_facts"]
    symbol, as_of, end = episode.input["symbol"], episode.as_of_date, period_end(episode)
    since = date.fromisoformat(source["since"])
    findings.expect(source.get("ref") == REFERENCE, where, f"filing_facts refers to {source.get('ref')}")
    findings.expect(source["symbol"] == symbol, where, f"filing_facts are of {source['symbol']}, the task of {symbol}")
    findings.expect(source["as_of"] == str(as_of), where, f"filing_facts are as of {source['as_of']}, not of {as_of}")
    # Covers the same quarter a year before, and the nine months and year it may be derived from.
    enough = (end - since).days >= YEAR_APART[1]
    findings.expect(enough, where, f"filing_facts begin with {since}, too late for the quarter a year before {end}")
    task_facts = subject.input_of(episode)["filing_facts"]
    days = {row["filed"] for table in ("facts", "segments") for row in task_facts[table]}
    late = sorted(day for day in days if day > str(as_of))
    findings.expect(not late, where, f"contains facts filed on {', '.join(late[:3])}, after {as_of}")
    if history is None:
        return
    findings.expect(as_of in history.filed(symbol, end), where, f"no report to {end} was filed on {as_of}")
    facts: Visible = {
        (row["metric"], row["start"], row["end"]): (row["value"], row["filed"], row["derived"])
        for row in task_facts["facts"]
    }
    segments: Visible = {
        (row["axis"], row["start"], row["end"], row["segment"]): (row["value"], row["filed"])
        for row in task_facts["segments"]
    }
    visible = symbol, source["as_of"], source["since"]
    known = history.facts(*visible), history.segments(*visible)
    for name, expected, actual in (("facts", known[0], facts), ("segments", known[1], segments)):
        wrong = sorted(str(key) for key in {*expected, *actual} if expected.get(key) != actual.get(key))
        message = f"{name} differ from the panel on {as_of} in {len(wrong)} rows, first {''.join(wrong[:1])}"
        findings.expect(not wrong, where, message)
    findings.add("episodes")
    findings.add("facts", len(facts))
    findings.add("segments", len(segments))


class _PanelHistory:
    """Panel contents as of a day, found by scanning all rows of a company."""

    def __init__(self, panels: Panels) -> None:
        self._facts = _by_company(
            panels.facts, ("metric", "start", "end", "filed", "derived", "value"), lambda row: (not row[4], row[3])
        )
        self._segments = _by_company(
            panels.segments, ("axis", "start", "end", "filed", "accession", "segment", "value"), lambda row: row[3:5]
        )
        self._filed: dict[tuple[str, date], set[date]] = defaultdict(set)
        for symbol, end, filed in panels.filings.select("symbol", "period_end", "filed").iter_rows():
            self._filed[symbol, end].add(filed)

    def filed(self, symbol: str, end: date) -> set[date]:
        return self._filed.get((symbol, end), set())

    def facts(self, symbol: str, as_of: str, since: str) -> Visible:
        """Map (metric, start, end) to value, filing date and derived; reported figures, then later ones, win."""
        found: dict[tuple[Any, ...], object] = {}
        for metric, start, end, filed, derived, value in self._facts.get(symbol, ()):
            if filed <= as_of and end >= since:
                found[metric, start, end] = value, filed, derived
        return found

    def segments(self, symbol: str, as_of: str, since: str) -> Visible:
        """Map (axis, start, end, segment) to value and filing date, from the latest filing of each period."""
        last: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        found: dict[tuple[Any, ...], dict[str, object]] = {}
        for axis, start, end, filed, accession, segment, value in self._segments.get(symbol, ()):
            if filed <= as_of and end >= since:
                period, source = (axis, start, end), (filed, accession)
                if last.get(period) != source:
                    last[period], found[period] = source, {}
                found[period][segment] = value, filed
        return {(*period, name): value for period, parts in found.items() for name, value in parts.items()}


def _by_company(
    frame: pl.DataFrame, fields: Iterable[str], order: Callable[[tuple[Any, ...]], Any]
) -> dict[str, list[tuple[Any, ...]]]:
    """Return the rows of each company with ISO dates, sorted so that the last row of a key is current."""
    days = [pl.col(name).cast(pl.String) for name in ("start", "end", "filed")]
    found: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for symbol, *row in frame.with_columns(days).select("symbol", *fields).iter_rows():
        found[symbol].append(tuple(row))
    return {symbol: sorted(rows, key=order) for symbol, rows in found.items()}


_MAX_LOOKUPS = 200
"""Maximum number of restated figures looked up before and after."""


def check_restatements(subject: Subject, findings: Findings) -> None:
    """Check that repeated rows carry a new value or tag, and that queries switch values on the filing date."""
    panels = subject.panels(findings)
    if panels is None:
        return
    twice = panels.facts.filter(pl.struct("symbol", "metric", "start", "end", "filed").is_duplicated())
    fail_rows(twice, "facts: two figures of one period were filed on one day", findings)
    restated: list[tuple[str, PanelRow, PanelRow]] = []
    for company in by_company(panels.facts, findings):
        for table in (company.filed, company.differences):
            for rows in table.values():
                for before, after in pairwise(rows):
                    changed = before.value != after.value
                    where = f"{company.symbol} {after.where}"
                    new = changed or before.tag != after.tag
                    findings.expect(new, where, f"repeats the value and tag filed on {before.filed}")
                    if changed and not before.derived and not after.derived:
                        restated.append((company.symbol, before, after))
    findings.figures["restated"] = len(restated)
    filings = subject.edition.filings
    if filings is None:
        return
    store = filings.references.facts
    step = max(1, len(restated) // _MAX_LOOKUPS)
    for symbol, before, after in restated[::step][:_MAX_LOOKUPS]:
        where = f"{symbol} {after.where}"
        with examining(where, findings):
            for row, day in ((before, after.filed - timedelta(days=1)), (after, after.filed)):
                served = _served(store, symbol, row, day)
                findings.expect(
                    served == row.value, where, f"the query on {day} returns {served}, expected {row.value:.12g}"
                )
            findings.add("asked")


def _served(store: FactStore, symbol: str, row: PanelRow, day: date) -> float | None:
    try:
        facts = store.visible(symbol, day, row.end)["facts"]
    except InputError:
        return None
    subject = row.metric, None if row.start is None else str(row.start), str(row.end)
    return next((fact["value"] for fact in facts if (fact["metric"], fact["start"], fact["end"]) == subject), None)
