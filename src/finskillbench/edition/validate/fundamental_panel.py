"""Checks of the fundamental panels: restatements, derived quarters, balance sheets, segments.

Every derived row is computed again from the rows that it says it comes from.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from itertools import pairwise
from typing import Any, NamedTuple

import polars as pl

from finskillbench.edition.validate.fundamental_data import period_end, tell
from finskillbench.edition.validate.fundamental_measures import APART, AXES, SEGMENT_GAP, kind_of
from finskillbench.edition.validate.report import Findings
from finskillbench.edition.validate.subject import Subject, examining
from finskillbench.errors import InputError

PER_SHARE = ("eps_diluted", "diluted_shares")
"""Ratios and averages: a year is not the sum of its quarters."""
_SHORTER = {"half": "quarterly", "nine_months": "half", "annual": "nine_months"}
_SAME = 1e-9
_ASKED = 200
"""Restated figures that are asked for before and after."""
_IDENTITY = 0.01
"""Share of total assets by which liabilities and equity may exceed them (rounding, figures of other dates)."""
_REDEEMABLE = 0.05
"""Share of total assets that may lie between liabilities and equity (redeemable interests) without a warning."""
_TERM = re.compile(r"(?:^| ([+-]) )(\S+) (\w+) (?:(\d{4}-\d\d-\d\d)\.\.)?(\d{4}-\d\d-\d\d)")

Period = tuple[str, date | None, date]
"""Metric, first and last day."""


class Row(NamedTuple):
    """A figure of one company."""

    metric: str
    start: date | None
    end: date
    filed: date
    value: float
    tag: str
    accession: str
    derived: bool
    parents: str

    @property
    def period(self) -> Period:
        """What the row is about."""
        return self.metric, self.start, self.end

    @property
    def where(self) -> str:
        """The row as a finding names it."""
        return f"{self.metric} {self.start or ''}..{self.end} {self.filed}"


class Term(NamedTuple):
    """One of the figures that a derived row says it comes from."""

    sign: int
    accession: str
    period: Period


def terms_of(parents: str) -> list[Term]:
    """The figures that a text of parents names; ValueError where it cannot be read."""
    found, place = list[Term](), 0
    for match in _TERM.finditer(parents):
        if match.start() != place:
            break
        sign, accession, metric, start, end = match.groups()
        first = None if start is None else date.fromisoformat(start)
        found.append(Term(-1 if sign == "-" else 1, accession, (metric, first, date.fromisoformat(end))))
        place = match.end()
    if place != len(parents) or not found:
        raise ValueError(f"parents {parents[:60]!r} cannot be read")
    return found


class Company:
    """The figures of one company: those that filings state or sum up, and the quarters that are differences."""

    def __init__(self, symbol: str, rows: Iterable[Row]) -> None:
        self.symbol = symbol
        self.filed: dict[Period, list[Row]] = defaultdict(list)
        self.differences: dict[Period, list[Row]] = defaultdict(list)
        self.sums: list[tuple[Row, list[Term]]] = []
        for row in sorted(rows, key=lambda row: row.filed):
            terms = terms_of(row.parents) if row.derived else []
            if terms and all(term.period[0] == row.metric for term in terms):
                self.differences[row.period].append(row)
                continue
            self.filed[row.period].append(row)
            if terms:
                self.sums.append((row, terms))

    def on(self, period: Period, day: date) -> Row | None:
        """The figure of a period that filings had stated by a day."""
        return _on(self.filed.get(period, ()), day)


def _on(rows: Sequence[Row], day: date) -> Row | None:
    place = bisect_right(rows, day, key=lambda row: row.filed)
    return rows[place - 1] if place else None


def _companies(facts: pl.DataFrame, findings: Findings) -> Iterator[Company]:
    fields = facts.drop_nulls(["symbol", "metric", "end", "filed", "value"]).select("symbol", *Row._fields)
    found: dict[str, list[Row]] = defaultdict(list)
    for symbol, *row in fields.iter_rows():
        found[symbol].append(Row(*row))
    for symbol, rows in found.items():
        with examining(symbol, findings):
            yield Company(symbol, rows)


def restatements(subject: Subject, findings: Findings) -> None:
    """A figure is new whenever it is there again; before that day the old one is served, from then on the new one."""
    panels = subject.panels(findings)
    if panels is None:
        return
    twice = panels.facts.filter(pl.struct("symbol", "metric", "start", "end", "filed").is_duplicated())
    tell(twice, "facts: two figures of one period were filed on one day", findings)
    restated: list[tuple[str, Row, Row]] = []
    for company in _companies(panels.facts, findings):
        for table in (company.filed, company.differences):
            for rows in table.values():
                for before, after in pairwise(rows):
                    changed = before.value != after.value
                    where = f"{company.symbol} {after.where}"
                    findings.expect(changed, where, f"repeats what was filed on {before.filed}")
                    if changed and not before.derived and not after.derived:
                        restated.append((company.symbol, before, after))
    findings.figures["restated"] = len(restated)
    filings = subject.edition.filings
    if filings is None:
        return
    store = filings.references.facts
    step = max(1, len(restated) // _ASKED)
    for symbol, before, after in restated[::step][:_ASKED]:
        where = f"{symbol} {after.where}"
        with examining(where, findings):
            for row, day in ((before, after.filed - timedelta(days=1)), (after, after.filed)):
                served = _served(store, symbol, row, day)
                findings.expect(
                    served == row.value, where, f"is served as {served} on {day}, where {row.value:.12g} was current"
                )
            findings.add("asked")


def _served(store: Any, symbol: str, row: Row, day: date) -> float | None:
    """What the store that answers `query_xbrl` says of a period on a day."""
    try:
        answer = store.query(symbol, day, period=str(row.end), metrics=[row.metric])
    except InputError:
        return None
    start = None if row.start is None else str(row.start)
    return next((fact["value"] for fact in answer["facts"] if fact["start"] == start), None)


def derived_quarters(subject: Subject, findings: Findings) -> None:
    """Quarters that nobody states are differences on their dates, remade when both parents are; sums are their terms'.

    One restated parent less one that is not would put the restatement of a year into one quarter.
    """
    panels = subject.panels(findings)
    if panels is None:
        return
    for company in _companies(panels.facts, findings):
        for rows in company.differences.values():
            for row in rows:
                with examining(f"{company.symbol} {row.where}", findings):
                    _check_difference(company, row, findings)
        with examining(company.symbol, findings):
            _check_complete(company, findings)
        _check_sums(company, findings, instant=False)


def _check_difference(company: Company, row: Row, findings: Findings) -> None:
    """One derived row against its two parents, as they stood on the day it was filed."""
    where = f"{company.symbol} {row.where}"
    findings.expect(row.metric not in PER_SHARE, where, "is no sum of quarters and cannot be a difference")
    terms = terms_of(row.parents)
    if [term.sign for term in terms] != [1, -1]:
        findings.fail(where, "is no difference of two figures")
        return
    (_, _, (_, start, end)), (_, _, (_, other, stop)) = terms
    least, most, _ = APART["quarter"]
    on_dates = (
        start is not None
        and start == other
        and end == row.end
        and row.start == stop + timedelta(days=1)
        and least <= (end - stop).days <= most
        and _SHORTER.get(kind_of(start, end)) == kind_of(start, stop)
    )
    findings.expect(on_dates, where, "its parents do not differ by this quarter")
    known = [company.on(term.period, row.filed) for term in terms]
    if known[0] is None or known[1] is None:
        findings.fail(where, "a parent is not in the panel by then")
        return
    long, short = known[0], known[1]
    findings.expect(
        (long.accession, short.accession) == (terms[0].accession, terms[1].accession),
        where,
        "a parent is of another filing than it says",
    )
    findings.expect(max(long.filed, short.filed) == row.filed, where, "was not filed when its last parent was")
    findings.expect(long.tag == short.tag, where, f"subtracts {short.tag} from {long.tag}")
    apart = abs(long.value - short.value - row.value)
    findings.widest("greatest_difference", apart / max(1.0, abs(row.value)))
    findings.expect(
        apart <= _SAME * max(1.0, abs(long.value)),
        where,
        f"is {row.value:.12g}, its parents leave {long.value - short.value:.12g}",
    )
    findings.add("differences")


def _check_complete(company: Company, findings: Findings) -> None:
    """On every day on which a parent was filed, the quarter that was current is what the parents left.

    They left it when both were first known, and again when both had been restated since.
    """
    reported: dict[tuple[str, date], date] = {}
    by_start: dict[tuple[str, date], list[date]] = defaultdict(list)
    for (metric, start, end), rows in company.filed.items():
        if start is not None and metric not in PER_SHARE:
            by_start[metric, start].append(end)
            if kind_of(start, end) == "quarterly":
                key = metric, end
                reported[key] = min(reported.get(key, date.max), rows[0].filed)
    pairs: dict[Period, list[tuple[Period, Period]]] = defaultdict(list)
    least, most, _ = APART["quarter"]
    for (metric, start), ends in by_start.items():
        for end in ends:
            shorter = _SHORTER.get(kind_of(start, end))
            for stop in ends:
                if least <= (end - stop).days <= most and kind_of(start, stop) == shorter:
                    quarter = metric, stop + timedelta(days=1), end
                    pairs[quarter].append(((metric, start, end), (metric, start, stop)))
    for quarter, parents in pairs.items():
        if len(parents) > 1:  # two calendars meet: which of them is the fiscal year's is the panel's choice
            findings.add("quarters_of_two_calendars")
            continue
        long, short = (company.filed[period] for period in parents[0])
        made, left_over, scale = date.min, math.nan, 1.0
        for day in sorted({row.filed for row in (*long, *short)}):
            left, right = _on(long, day), _on(short, day)
            if (
                left is None
                or right is None
                or left.tag != right.tag
                or day >= reported.get((quarter[0], quarter[2]), date.max)
            ):
                continue
            if min(left.filed, right.filed) > made:
                made, left_over, scale = day, left.value - right.value, max(1.0, abs(left.value))
            current = _on(company.differences.get(quarter, ()), day)
            apart = math.inf if current is None else abs(left_over - current.value)
            findings.add("days_examined")
            if apart <= _SAME * scale:
                continue
            if current is not None and current.value == _of_terms(company, quarter, day):
                # Stated since as revenue less the other part: the same value again is no new row, but it holds.
                findings.add("quarters_that_sums_confirm")
            else:
                stated = "missing" if current is None else f"{current.value:.12g}"
                where = f"{company.symbol} {quarter[0]} {quarter[1]}..{quarter[2]} {day}"
                findings.fail(where, f"the quarter is {stated}, its parents left {left_over:.12g} on {made}")


def _of_terms(company: Company, quarter: Period, day: date) -> float:
    """Cost of a quarter, or its gross profit, as what filings by a day state revenue and the other to be, else NaN."""
    other = {"cost_of_revenue": "gross_profit", "gross_profit": "cost_of_revenue"}.get(quarter[0], "")
    revenue, part = (company.on((metric, *quarter[1:]), day) for metric in ("revenue", other))
    return math.nan if revenue is None or part is None else revenue.value - part.value


def _check_sums(company: Company, findings: Findings, *, instant: bool) -> None:
    """Figures that a filing does not state but whose terms it does."""
    for row, terms in company.sums:
        if (row.start is None) is not instant:
            continue
        where = f"{company.symbol} {row.where}"
        with examining(where, findings):
            same = all(term.period[1:] == (row.start, row.end) for term in terms)
            findings.expect(same, where, "its terms are of another period")
            known = [company.on(term.period, row.filed) for term in terms]
            stated = [one for one, term in zip(known, terms, strict=True) if one and one.accession == term.accession]
            if len(stated) < len(terms):  # a term that repeats an older filing, or is no metric of its own
                findings.add("sums_of_repeated_figures")
                continue
            total = math.fsum(term.sign * one.value for term, one in zip(terms, stated, strict=True))
            apart = abs(total - row.value)
            findings.expect(
                apart <= _SAME * max(1.0, *(abs(one.value) for one in stated)),
                where,
                f"is {row.value:.12g}, its terms make {total:.12g}",
            )
            findings.add("sums")


def balance_sheet(subject: Subject, findings: Findings) -> None:
    """Assets are liabilities and equity; parts are not greater than what they are part of.

    Filers contradict themselves now and then: in a real collection it is a warning, unless an episode sees it.
    """
    panels = subject.panels(findings)
    if panels is None:
        return
    known = subject.edition.manifest["source"].get("kind") == "synthetic"
    seen: dict[tuple[str, date], date] = {}
    for episode in subject.episodes:
        with examining(episode.task_id, findings):
            key = episode.input["symbol"], period_end(episode)
            seen[key] = max(seen.get(key, date.min), episode.as_of_date)
    for company in _companies(panels.facts, findings):
        _check_sums(company, findings, instant=True)
        for (metric, _, end), rows in company.filed.items():
            if metric == "total_assets":
                for row in rows:
                    with examining(f"{company.symbol} {row.where}", findings):
                        told = known or row.filed <= seen.get((company.symbol, end), date.min)
                        add = findings.fail if told else findings.warn
                        _check_identity(company, row, add, findings)
    examined = findings.figures.get("identities", 0)
    findings.figures["exact"] = f"{findings.figures.pop('exact', 0)} of {examined}"


def _check_identity(company: Company, assets: Row, add: Callable[[object, str], None], findings: Findings) -> None:
    """The balance sheet of a day as the filing of its total assets left it; `add` takes what contradicts it."""
    end = assets.end
    where = f"{company.symbol} {end} {assets.filed}"
    total = assets.value
    if total <= 0:
        findings.fail(where, f"total assets are {total:.12g}")
        return
    found = {
        name: row
        for name in (
            *("total_liabilities", "stockholders_equity", "minority_interest"),
            *("current_assets", "current_liabilities", "receivables", "inventory", "ppe_net", "cash"),
        )
        if (row := company.on((name, None, end), assets.filed)) is not None
    }
    slack = _IDENTITY * abs(total)
    for part in ("current_assets", "ppe_net", "cash", "inventory"):
        if part in found and found[part].value > total + slack:
            add(where, f"{part} exceeds total assets")
    liabilities, equity = found.get("total_liabilities"), found.get("stockholders_equity")
    if liabilities is None or equity is None:
        findings.add("without_both_sides")
        return
    minority = found["minority_interest"].value if "minority_interest" in found else 0.0
    # A filer that states only one equity may include the minority interest in it.
    left = total - liabilities.value - equity.value
    gap = min((left, left - minority), key=abs)
    findings.add("identities")
    findings.add("exact", int(abs(gap) <= 1e-6 * abs(total)))
    if gap < -slack:
        add(where, f"liabilities and equity exceed total assets by {-gap:.12g}, {-gap / total:.1%} of them")
    if gap > _REDEEMABLE * abs(total):
        findings.add("wide_mezzanines")
    if "current_liabilities" in found and found["current_liabilities"].value > liabilities.value + slack:
        add(where, "current_liabilities exceed total_liabilities")


def segments(subject: Subject, findings: Findings) -> None:
    """Each breakdown has members of one axis that add up to the revenue of its period, as it was known by then."""
    panels = subject.panels(findings)
    if panels is None:
        return
    table = panels.segments
    tell(table.filter(~pl.col("axis").is_in(AXES)), "segments: of an unknown axis", findings)
    tell(table.filter(pl.col("segment").fill_null("").str.strip_chars() == ""), "segments: has no name", findings)
    key = ["symbol", "axis", "start", "end", "accession"]
    twice = table.filter(pl.struct(*key, "segment").is_duplicated())
    tell(twice, "segments: a member is there twice", findings)
    companies = {company.symbol: company for company in _companies(panels.facts, Findings())}
    for symbol, axis, start, end, accession, filed, members, total in (
        table.group_by(*key, maintain_order=True)
        .agg(pl.col("filed").first(), members=pl.len(), total=pl.col("value").sum())
        .select(*key, "filed", "members", "total")
        .iter_rows()
    ):
        where = f"{symbol} {axis} {start}..{end} {accession}"
        findings.expect(members > 1, where, "has one member only")
        company = companies.get(symbol)
        period = ("revenue", start, end)
        known = None if company is None else company.on(period, filed)
        if company is not None and known is None:
            known = _on(company.differences.get(period, ()), filed)
        if known is None:
            findings.add("without_total")
            continue
        gap = abs(total - known.value)
        findings.expect(
            gap <= SEGMENT_GAP * abs(known.value) + _SAME,
            where,
            f"its {members} members make {total:.12g}, revenue is {known.value:.12g}",
        )
        findings.add("breakdowns")
        findings.add("to_rounding", int(gap <= 1e-5 * abs(known.value)))
    _check_derived(table, findings)
    findings.figures["axes"] = dict(sorted(Counter(table["axis"]).items()))


def _check_derived(table: pl.DataFrame, findings: Findings) -> None:
    """A derived breakdown against year-to-date ones that start together, where the panel has both."""
    sets: dict[tuple[str, str, date], list[tuple[date, date, dict[str, float]]]] = defaultdict(list)
    derived: list[tuple[str, str, date, date, date, dict[str, float]]] = []
    grouped: Mapping[tuple[Any, ...], dict[str, float]] = defaultdict(dict)
    columns = ("symbol", "axis", "start", "end", "filed", "accession", "derived", "segment", "value")
    for *source, name, value in table.select(columns).drop_nulls().iter_rows():
        grouped[tuple(source)][name] = value
    for (symbol, axis, start, end, filed, _, computed), members in grouped.items():
        if computed:
            derived.append((symbol, axis, start, end, filed, members))
        else:
            sets[symbol, axis, start].append((end, filed, members))
    by_company: dict[tuple[str, str], list[date]] = defaultdict(list)
    for symbol, axis, start in sets:
        by_company[symbol, axis].append(start)
    for symbol, axis, start, end, filed, members in derived:
        left = [
            {name: whole[name] - less[name] for name in members}
            for first in by_company[symbol, axis]
            for stop, day, whole in sets[symbol, axis, first]
            for until, on, less in sets[symbol, axis, first]
            if stop == end and until == start - timedelta(days=1) and max(day, on) <= filed
            if members.keys() <= whole.keys() and members.keys() <= less.keys()
        ]
        if not left:  # a parent did not add up by itself, or names its members otherwise
            findings.add("derived_without_parents")
            continue
        agrees = any(
            all(abs(parts[name] - value) <= _SAME * max(1.0, abs(value)) + 0.5 for name, value in members.items())
            for parts in left
        )
        findings.expect(agrees, f"{symbol} {axis} {start}..{end} {filed}", "is not the difference of its years to date")
        findings.add("derived")
