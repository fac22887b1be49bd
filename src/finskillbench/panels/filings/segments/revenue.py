"""Revenue by product and by geography from XBRL dimensions, limited to breakdowns of total revenue.

The rows of one (symbol, axis, start, end, accession) are a complete set within `TOLERANCE` of revenue; later sets
replace earlier ones as a whole.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import NamedTuple

import polars as pl

from finskillbench.engines.accounting.periods import DAYS, QUARTER_APART, Duration, classify_period
from finskillbench.panels import columns
from finskillbench.panels.filings.quarters import build_filings
from finskillbench.panels.filings.segments.breakdowns import (
    TOLERANCE,
    Breakdown,
    Parts,
    Period,
    SegmentFigure,
    complete_breakdowns,
    labels_of,
    member_key,
    subtract_figures,
)
from finskillbench.sources.edgar.instance import Instance
from finskillbench.sources.edgar.instance_reader import Dimensions
from finskillbench.sources.edgar.numerals import METRICS
from finskillbench.sums import exact_sum

COLUMNS: Mapping[str, columns.PanelColumn] = {
    "symbol": columns.SYMBOL,
    "axis": columns.PanelColumn("category", "the period", "product_segment or geographic_segment", pl.String),
    "segment": columns.PanelColumn("identifier", "the period", "label of the member", pl.String),
    "start": columns.START,
    "end": columns.END,
    "duration": columns.DURATION,
    "value": columns.PanelColumn("USD", "start to end", "revenue of the member"),
    "accession": columns.ACCESSION,
    "filed": columns.FILED,
    "derived": columns.DERIVED,
}
SEGMENTS_SCHEMA = columns.table_schema(COLUMNS)

PRODUCT, GEOGRAPHIC = "product_segment", "geographic_segment"
_AXES = {PRODUCT: ("ProductOrServiceAxis", "StatementBusinessSegmentsAxis"), GEOGRAPHIC: ("StatementGeographicalAxis",)}
"""XBRL axes by local name, in order of preference; in `us-gaap` until 2018, then partly in `srt`."""
_CONSOLIDATION, _OPERATING = "ConsolidationItemsAxis", "OperatingSegmentsMember"
_UNQUALIFIED, _QUALIFIED_OPERATING = (0, ""), (1, "")

_SAME_PERIOD_DAYS = 10
"""Tolerance because cover pages may round the end of a 52/53-week period to the month's end."""
_SAME_VINTAGE_DAYS = 200
"""Maximum days between the filings of a difference's parents; later comparatives may be recast."""
_DAY = timedelta(days=1)
_TAGS = tuple(alias.tag for alias in METRICS["revenue"].aliases)
REVENUE_TAGS = frozenset(_TAGS)


class _Source(NamedTuple):
    """Kind of breakdown in a filing; fields order the sources of one panel axis by preference.

    place : of the XBRL axis in `_AXES`. qualifier : rank and text of a constant second dimension. reconciled : includes
    corporate and elimination items. tag : place in the alias table; `len(_TAGS)` takes the first tag of each member.
    """

    place: int
    qualifier: tuple[int, str]
    reconciled: bool
    tag: int


class _Filing(NamedTuple):
    filed: date
    accession: str


@dataclass(frozen=True, slots=True, eq=False)
class SegmentsPanel:
    """`frame` has SEGMENTS_SCHEMA, sorted by symbol, axis, end, start and filed; `notes` one sentence each."""

    frame: pl.DataFrame
    notes: tuple[str, ...]


def build_segments(
    instances: Mapping[str, Sequence[Instance]], facts: pl.DataFrame, filings: pl.DataFrame | None = None
) -> SegmentsPanel:
    """Return revenue by member of an axis for all quarters, halves, nine months and years with a breakdown.

    Unprinted quarters are differences, marked `derived`, of two years to date, or of a half and its second quarter in
    one filing. No difference spans filings if the later one recasts an earlier breakdown. Subtotals and repetitions
    are dropped.

    instances : parsed with `REVENUE_TAGS` or all tags. facts : total revenue where an instance states none. filings :
    accession numbers and filing dates; None takes them from `facts`.
    """
    known = _by_symbol(build_filings({}, facts) if filings is None else filings)
    revenue = _revenue(facts)
    rows: list[tuple[object, ...]] = []
    notes: list[str] = []
    for symbol in sorted(instances):
        company = _Company(symbol, revenue.get(symbol, {}))
        dated: dict[_Filing, Instance] = {}
        for instance in instances[symbol]:
            filing = _filing_of(instance, known.get(symbol, ()))
            if filing is None:
                notes.append(
                    f"{symbol}: {instance.path.name} ({instance.form or 'no form'} to {instance.period_end}) is of no "
                    "filing in the company's facts or submissions; its segments are left out."
                )
            else:
                dated.setdefault(filing, instance)
        for filing in sorted(dated):
            company.take(filing, dated[filing])
        rows += company.rows
        notes += company.notes
    frame = pl.DataFrame(rows, schema=SEGMENTS_SCHEMA, orient="row")
    return SegmentsPanel(frame.sort("symbol", "axis", "end", "start", "filed", "accession", "segment"), tuple(notes))


class _Company:
    """Breakdowns of one company, added in order of filing."""

    def __init__(self, symbol: str, revenue: Mapping[Period, Sequence[tuple[date, float]]]) -> None:
        self.symbol = symbol
        self.rows: list[tuple[object, ...]] = []
        self.notes: list[str] = []
        self._revenue = revenue
        self._seen: dict[str, dict[_Source, dict[Period, tuple[_Filing, dict[str, SegmentFigure]]]]] = {
            axis: defaultdict(dict) for axis in _AXES
        }
        self._totals: dict[Period, tuple[_Filing, SegmentFigure]] = {}
        self._last: dict[tuple[str, Period], tuple[dict[str, float], bool]] = {}

    def take(self, filing: _Filing, instance: Instance) -> None:
        self.notes += [f"{self.symbol}: {message}" for message in instance.notes]
        foreign = sorted({fact.unit for fact in instance.facts if fact.tag in REVENUE_TAGS and fact.unit != "USD"})
        if foreign:
            self.notes.append(
                f"{self.symbol}: {filing.accession} states revenue in {', '.join(foreign)}; only USD is used."
            )
        totals, parts = _read(instance)
        for axis, sources in parts.items():
            for periods in sources.values():
                for period in periods:
                    total = totals.get(period) or self._total(period, filing)
                    if total is not None:
                        totals[period] = total
            best = self._best(axis, sources, totals, filing)
            for source, periods in sources.items():
                self._seen[axis][source].update({period: (filing, members) for period, members in periods.items()})
            for period, (found, derived) in best.items():
                self._add(axis, period, found, filing, derived)
        self._totals.update({period: (filing, total) for period, total in totals.items()})

    def _total(self, period: Period, filing: _Filing) -> SegmentFigure | None:
        """Return revenue in the facts panel as of the filing date, to the dollar."""
        known = [value for filed, value in self._revenue.get(period, ()) if filed <= filing.filed]
        return SegmentFigure(known[-1], 1.0) if known else None

    def _best(
        self, axis: str, sources: Mapping[_Source, Parts], totals: Mapping[Period, SegmentFigure], filing: _Filing
    ) -> dict[Period, tuple[Breakdown, bool]]:
        """Return the breakdowns, each with a derived flag, of the source with most periods in the filing.

        One source per filing keeps names consistent between quarters. Ties prefer the first axis, then the smallest
        gap.
        """
        best: dict[Period, tuple[Breakdown, bool]] = {}
        rank: tuple[int, int, float] | None = None
        for source in sorted(sources):
            reported = sources[source]
            derived, derived_totals = self._differences(axis, source, reported, totals, filing)
            sets = complete_breakdowns({**reported, **derived}, {**totals, **derived_totals})
            score = (len(sets), -source.place, -exact_sum(found.gap for found in sets.values()))
            if sets and (rank is None or score > rank):
                rank, best = score, {period: (found, period in derived) for period, found in sets.items()}
        return best

    def _differences(
        self, axis: str, source: _Source, reported: Parts, totals: Mapping[Period, SegmentFigure], filing: _Filing
    ) -> tuple[Parts, dict[Period, SegmentFigure]]:
        """Derive quarters from year-to-date figures: members, and the revenue they must add up to."""
        earlier = self._seen[axis][source]
        printed = {end for start, end in (*reported, *earlier) if classify_period(start, end) is Duration.QUARTERLY}
        recast = any(
            _differ(members, known[period][1])
            for other, known in self._seen[axis].items()
            if other._replace(tag=source.tag) == source  # standards change the tag of a line
            for period, members in reported.items()
            if period in known
        )
        parts: Parts = {}
        revenue: dict[Period, SegmentFigure] = {}
        for (start, end), members in reported.items():
            if classify_period(start, end) is Duration.QUARTERLY or (start, end) not in totals:
                continue
            whole = totals[start, end]
            for less in _leaving_a_quarter((start, end), {**earlier, **reported}):
                quarter = (less[1] + _DAY, end) if less[0] == start else (start, less[0] - _DAY)
                if quarter[1] in printed:
                    continue
                if less in reported and less in totals:
                    shorter, shorter_total = reported[less], totals[less]
                elif less in earlier and less in self._totals and less[0] == start and not recast:
                    parent, shorter = earlier[less]
                    other, shorter_total = self._totals[less]
                    if (filing.filed - min(parent, other).filed).days > _SAME_VINTAGE_DAYS:
                        continue
                else:
                    continue
                over = subtract_figures(whole, shorter_total)
                stated = totals.get(quarter) or self._total(quarter, filing)
                if stated is not None and abs(over.value - stated.value) > TOLERANCE * abs(stated.value):
                    continue  # revenue is stated on two bases
                parts[quarter] = {
                    name: subtract_figures(figure, shorter[name]) for name, figure in members.items() if name in shorter
                }
                revenue[quarter] = over
        return parts, revenue

    def _add(self, axis: str, period: Period, found: Breakdown, filing: _Filing, derived: bool) -> None:
        """Add a set of rows unless it repeats known values."""
        labels = labels_of(found.members)
        values = {labels[name]: figure.value for name, figure in found.members.items()}
        before = self._last.get((axis, period))
        if before is not None and (before[0] == values or (derived and not before[1])):
            return
        self._last[axis, period] = (values, derived)
        start, end = period
        duration = str(classify_period(start, end))
        for segment, value in values.items():
            self.rows.append(
                (self.symbol, axis, segment, start, end, duration, value, filing.accession, filing.filed, derived)
            )


def _leaving_a_quarter(period: Period, known: Iterable[Period]) -> Iterator[Period]:
    """Yield periods whose removal leaves a quarter: those with the same start, and those with the same end."""
    start, end = period
    least, most = QUARTER_APART
    for first, last in known:
        succeeds = first == start and least <= (end - last).days <= most
        if succeeds or (last == end and first > start and classify_period(start, first - _DAY) is Duration.QUARTERLY):
            yield first, last


def _differ(members: Mapping[str, SegmentFigure], before: Mapping[str, SegmentFigure]) -> bool:
    """Return True if shared members differ from earlier figures of the period by more than rounding."""
    shared = members.keys() & before.keys()
    return any(abs(subtract_figures(members[name], before[name]).value) > members[name].unit for name in shared)


def _read(instance: Instance) -> tuple[dict[Period, SegmentFigure], dict[str, dict[_Source, Parts]]]:
    """Return total revenue by period, and the figures of every source by panel axis."""
    by_tag: dict[Period, dict[int, SegmentFigure]] = defaultdict(dict)
    found: dict[str, dict[_Source, Parts]] = {axis: {} for axis in _AXES}
    items: dict[int, Parts] = {}
    for fact in instance.facts:
        if fact.tag not in REVENUE_TAGS or fact.unit != "USD" or fact.start is None or fact.end is None:
            continue
        if classify_period(fact.start, fact.end) not in DAYS:
            continue
        period, tag = (fact.start, fact.end), _TAGS.index(fact.tag)
        figure = SegmentFigure(fact.value, 1.0 if fact.decimals is None else 10.0**-fact.decimals)
        if not fact.dimensions:
            by_tag[period][tag] = figure
            continue
        for axis, member, qualifier in _views(fact.dimensions):
            if axis == _CONSOLIDATION and qualifier == _UNQUALIFIED and not member.endswith(f":{_OPERATING}"):
                items.setdefault(tag, {}).setdefault(period, {})[member_key(member)] = figure
            for name, axes in _AXES.items():
                if axis in axes:
                    source = _Source(axes.index(axis), qualifier, False, tag)
                    members = found[name].setdefault(source, {}).setdefault(period, {})
                    members.setdefault(member_key(member), figure)
    for sources in found.values():
        _add_reconciled(sources, items)
        _add_joined(sources)
    return {period: figures[min(figures)] for period, figures in by_tag.items()}, found


def _views(dimensions: Dimensions) -> Iterator[tuple[str, str, tuple[int, str]]]:
    """Yield (local name of the axis, member, qualifier) for each of one or two dimensions."""
    if len(dimensions) == 1:
        yield dimensions[0][0].rpartition(":")[2], dimensions[0][1], _UNQUALIFIED
    elif len(dimensions) == 2:
        for (axis, member), (other, constant) in (dimensions, dimensions[::-1]):
            operating = constant.endswith(f":{_OPERATING}")
            name = axis.rpartition(":")[2]
            yield name, member, _QUALIFIED_OPERATING if operating else (2, f"{other}={constant}")


def _add_reconciled(sources: dict[_Source, Parts], items: Mapping[int, Parts]) -> None:
    """Add sources that combine business segments with reconciling items (corporate, eliminations)."""
    for source, periods in list(sources.items()):
        if source.place == 1 and source.qualifier in (_UNQUALIFIED, _QUALIFIED_OPERATING):
            added = items.get(source.tag, {})
            joined = {period: {**added[period], **members} for period, members in periods.items() if period in added}
            if joined:
                sources[source._replace(reconciled=True)] = {**periods, **joined}


def _add_joined(sources: dict[_Source, Parts]) -> None:
    """Add sources that take each member from the first tag that has it: leases are not contract revenue."""
    tags: dict[_Source, list[_Source]] = defaultdict(list)
    for source in sorted(sources):
        tags[source._replace(tag=len(_TAGS))].append(source)
    for joined, each in tags.items():
        if len(each) > 1:
            periods: Parts = {}
            for source in each:
                for period, members in sources[source].items():
                    periods[period] = {**members, **periods.get(period, {})}
            sources[joined] = periods


_Listed = tuple[str, str, date | None, date]


def _by_symbol(filings: pl.DataFrame) -> dict[str, list[_Listed]]:
    found: dict[str, list[_Listed]] = defaultdict(list)
    columns = filings.select("symbol", "accession", "form", "period_end", "filed").sort("filed", "accession")
    for symbol, *filing in columns.iter_rows():
        found[symbol].append(tuple(filing))
    return found


def _filing_of(instance: Instance, filings: Sequence[_Listed]) -> _Filing | None:
    """Return the filing of an instance: by accession number in its name, else by form and nearest period."""
    if instance.accession is not None:
        return next((_Filing(filed, number) for number, _, _, filed in filings if number == instance.accession), None)
    end = instance.period_end
    near = [
        (abs((period_end - end).days), filed, number)
        for number, form, period_end, filed in filings
        if end is not None and form == instance.form and period_end is not None
    ]
    distance, filed, number = min(near, default=(_SAME_PERIOD_DAYS + 1, date.max, ""))
    return _Filing(filed, number) if distance <= _SAME_PERIOD_DAYS else None


def _revenue(facts: pl.DataFrame) -> dict[str, dict[Period, list[tuple[date, float]]]]:
    """Return reported revenue by symbol and period: (filed, value) in order of filing."""
    found: dict[str, dict[Period, list[tuple[date, float]]]] = defaultdict(lambda: defaultdict(list))
    reported = facts.filter((pl.col("metric") == "revenue") & ~pl.col("derived") & pl.col("start").is_not_null())
    for symbol, start, end, filed, value in (
        reported.select("symbol", "start", "end", "filed", "value").sort("filed").iter_rows()
    ):
        found[symbol][start, end].append((filed, value))
    return found
