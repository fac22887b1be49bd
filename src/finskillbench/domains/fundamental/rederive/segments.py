"""Revenue by segment for the independent derivation, from XBRL instances, with its own choice of tags and axes."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, timedelta
from itertools import islice, product
from math import fsum
from typing import Any

from finskillbench.domains.fundamental.rederive import definitions
from finskillbench.domains.fundamental.rederive.answers import SegmentChange
from finskillbench.sources.edgar.instance import Instance
from finskillbench.sources.edgar.instance_reader import InstanceFact

_REVENUE = re.compile(r"(?:Sales)?Revenues?(?!.*(?:Percent|Obligation|Related|Tax$))|RevenueFromContractWithCustomer")
_XBRL_AXES = {
    "product_segment": ("ProductOrServiceAxis", "StatementBusinessSegmentsAxis"),
    "geographic_segment": ("StatementGeographicalAxis",),
}
_ITEMS, _OPERATING = "ConsolidationItemsAxis", "OperatingSegmentsMember"
_DAY = timedelta(days=1)
_TRIED = 4096
"""Maximum combinations tried where several tags state a segment."""

_Span = tuple[date, date]
_Dimensions = tuple[tuple[str, str], ...]
"""Axes and members by local name; axes moved from `us-gaap` to `srt`."""
_Versions = dict[_Span, list[tuple[date, float]]]
"""Period -> (filing date, value) of each version."""
_Pair = tuple[float, float]
"""Revenue of the quarter and of the quarter before."""


class RawSegments:
    """Revenue breakdowns of one company from its instances and the rows of its company facts."""

    def __init__(self, instances: Iterable[Instance], rows: Iterable[Mapping[str, Any]]) -> None:
        self._cells: dict[_Dimensions, dict[str, _Versions]] = defaultdict(lambda: defaultdict(dict))
        self._latest: dict[tuple[_Dimensions, _Span], tuple[date, float]] = {}
        self._recast: set[tuple[date, frozenset[str]]] = set()
        for filed, instance in sorted(_dated(list(instances), list(rows)), key=lambda each: each[0]):
            for fact in instance.facts:
                if _REVENUE.match(fact.tag) and fact.unit == "USD" and fact.start and fact.end:
                    self._take(filed, fact, (fact.start, fact.end))

    def _take(self, filed: date, fact: InstanceFact, span: _Span) -> None:
        """Add a figure; a value that differs from an earlier filing marks the breakdown as recast."""
        dimensions = tuple((_local(axis), _key(member)) for axis, member in fact.dimensions)
        self._cells[dimensions][fact.tag].setdefault(span, []).append((filed, fact.value))
        day, value = self._latest.get((dimensions, span), (filed, fact.value))
        rounding = 0.0 if fact.decimals is None else 10.0**-fact.decimals
        if day < filed and abs(value - fact.value) > rounding:
            self._recast.add((filed, frozenset(axis for axis, _ in dimensions)))
        self._latest[dimensions, span] = filed, fact.value

    def explaining(
        self, axis: str | None, shown: Mapping[str, float], end: date, prior_end: date, day: date
    ) -> list[SegmentChange]:
        """Return the largest segment changes that explain the change of revenue between two quarters.

        axis, shown : axis and segment labels of the panel derivation, to be matched to members. A breakdown on an
            earlier axis
        wins, under the members' own names.
        """
        for kind in definitions.AXES:
            if kind == axis:
                found = self._named(kind, shown, end, prior_end, day)
            else:
                found = self._whole(kind, end, prior_end, day)
            if found or kind == axis:
                moved = {name: now - before for name, (now, before) in found.items() if now != before}
                largest = sorted(moved, key=lambda name: (-abs(moved[name]), name))[: definitions.MOST_SEGMENTS]
                return [SegmentChange(name, kind, moved[name]) for name in largest]
        return []

    def _named(self, kind: str, shown: Mapping[str, float], end: date, prior_end: date, day: date) -> dict[str, _Pair]:
        """Return both quarters of each segment from members on one axis that add up to revenue, else {}."""
        totals = self._totals(end, prior_end, day)
        for members in self._tables(kind, end, prior_end, day).values():
            columns = [_candidates(name, value, members) for name, value in shown.items()]
            for chosen in islice(product(*columns), _TRIED):
                if _makes_up(chosen, totals):
                    return dict(zip(shown, chosen, strict=True))
        return {}

    def _whole(self, kind: str, end: date, prior_end: date, day: date) -> dict[str, _Pair]:
        """Return a breakdown under one tag and axis whose members all add up to revenue in both quarters, else {}."""
        totals = self._totals(end, prior_end, day)
        by_tag: dict[tuple[str, str], dict[str, list[float | None]]] = defaultdict(dict)
        for dimensions, tags in self._cells.items():
            if len(dimensions) == 1 and dimensions[0][0] in _XBRL_AXES[kind]:
                for tag in tags:
                    quarters = [self._quarter(dimensions, tag, last, day) for last in (end, prior_end)]
                    if quarters != [None, None]:
                        by_tag[dimensions[0][0], tag][dimensions[0][1]] = quarters
        for members in by_tag.values():
            known = {
                name: (now, before) for name, (now, before) in members.items() if now is not None and before is not None
            }
            if len(known) == len(members) > 1 and _makes_up(known.values(), totals):
                return known
        return {}

    def _tables(
        self, kind: str, end: date, prior_end: date, day: date
    ) -> dict[tuple[str, _Dimensions], dict[str, list[_Pair]]]:
        """Return members, with reconciling items, by XBRL axis and constant other dimension, with both quarters'
        values.
        """
        tables: dict[tuple[str, _Dimensions], dict[str, list[_Pair]]] = defaultdict(dict)
        reconciling: dict[str, list[_Pair]] = {}
        for dimensions in self._cells:
            names = {axis for axis, _ in dimensions}
            if not 1 <= len(dimensions) <= 2 or names.isdisjoint((*_XBRL_AXES[kind], _ITEMS)):
                continue
            pairs = self._pairs(dimensions, end, prior_end, day)
            if names == {_ITEMS} and dimensions[0][1] != _OPERATING:
                reconciling[dimensions[0][1]] = pairs
            for axis, member in dimensions:
                if axis in _XBRL_AXES[kind] and pairs:
                    constant = tuple(other for other in dimensions if other != (axis, member))
                    tables[axis, constant][member] = pairs
        for (_, constant), members in tables.items():
            if constant in ((), ((_ITEMS, _OPERATING),)):
                members |= {name: pairs for name, pairs in reconciling.items() if pairs and name not in members}
        return tables

    def _totals(self, end: date, prior_end: date, day: date) -> list[_Pair]:
        return self._pairs((), end, prior_end, day)

    def _pairs(self, dimensions: _Dimensions, end: date, prior_end: date, day: date) -> list[_Pair]:
        """Return values of both quarters under each pair of tags: standards change the tag of a line."""
        columns = [
            dict.fromkeys(
                value
                for tag in self._cells.get(dimensions, ())
                if (value := self._quarter(dimensions, tag, last, day)) is not None
            )
            for last in (end, prior_end)
        ]
        return [(now, before) for now in columns[0] for before in columns[1]]

    def _quarter(self, dimensions: _Dimensions, tag: str, end: date, day: date) -> float | None:
        """Return the quarter ending on a day as last filed, else as derived by the last filing that allows it."""
        spans = self._cells[dimensions][tag]
        stated = [
            version
            for span, versions in spans.items()
            if span[1] == end and definitions.kind_of(*span) == "quarterly"
            for version in versions
            if version[0] <= day
        ]
        if stated:
            return max(stated)[1]
        axes = frozenset(axis for axis, _ in dimensions)
        recast = {filed for filed, recast_axes in self._recast if recast_axes == axes}
        left = [(filed, value) for filed, value in _differences(spans, end, recast) if filed <= day]
        return max(left)[1] if left else None


def _differences(spans: _Versions, end: date, recast: set[date]) -> Iterator[tuple[date, float]]:
    """Yield (filing date, value) of quarters derived from years to date, or from a half and its second quarter.

    recast : dates of filings whose figures are not combined with others.
    """
    least, most, _ = definitions.QUARTER_APART
    for (start, last), versions in spans.items():
        if last == end:
            shorter_kind = definitions.SHORTER.get(definitions.kind_of(start, end))
            shorter_spans = [
                (first, stop)
                for first, stop in spans
                if first == start
                and least <= (end - stop).days <= most
                and definitions.kind_of(first, stop) == shorter_kind
            ]
        else:
            later_quarter = (end + _DAY, last)
            shorter_spans = (
                [later_quarter]
                if later_quarter in spans
                and definitions.kind_of(start, end) == definitions.kind_of(*later_quarter) == "quarterly"
                else []
            )
        for other in shorter_spans:
            for filed, value in versions:
                public = [version for version in spans[other] if version[0] <= filed]
                if public and (public[-1][0] == filed or (last == end and filed not in recast)):
                    yield filed, value - public[-1][1]


def _dated(instances: list[Instance], rows: list[Mapping[str, Any]]) -> Iterator[tuple[date, Instance]]:
    """Yield each filing's first document with the filing date; skip documents of unknown filings."""
    filed = {row["accession"]: row["filed"] for row in rows}
    holders: dict[tuple[Any, ...], set[str]] = defaultdict(set)
    forms = {row["accession"]: row["form"] for row in rows}
    for row in rows:
        holders[row["tag"], row["start"], row["end"], row["value"]].add(row["accession"])
    taken: set[str] = set()
    for instance in instances:
        accession = instance.accession
        if accession is None:
            repeats = Counter(
                holder
                for fact in instance.facts
                if not fact.dimensions
                for holder in holders.get((fact.tag, fact.start, fact.end, fact.value), ())
                if forms[holder] == instance.form
            )
            accession = max(repeats, key=lambda holder: (repeats[holder], -filed[holder].toordinal()), default="")
        if accession in filed and accession not in taken:
            taken.add(accession)
            yield filed[accession], instance


def _candidates(name: str, value: float, members: Mapping[str, list[_Pair]]) -> list[_Pair]:
    """Return the values of the member that a label names.

    Labels shorten names ("Corporate" is CorporateNonSegmentMember); country codes are matched by the nearest revenue.
    """
    plain = _plain(name)
    shortened = [member for member in members if _plain(member).startswith(plain)]
    same = [member for member in shortened if _plain(member) == plain]
    if shortened:
        return [pair for member in same or shortened for pair in members[member]]
    coded = [pair for member, pairs in members.items() if member.startswith("country:") for pair in pairs]
    return sorted(coded, key=lambda pair: abs(pair[0] - value))[:1]


def _makes_up(parts: Iterable[_Pair], totals: Iterable[_Pair]) -> bool:
    sums = [fsum(column) for column in zip(*parts, strict=True)]
    return bool(sums) and any(
        all(abs(part - whole) <= definitions.SEGMENT_GAP * abs(whole) for part, whole in zip(sums, total, strict=True))
        for total in totals
    )


def _local(name: str) -> str:
    return name.rpartition(":")[2]


def _key(member: str) -> str:
    return member if member.startswith("country:") else _local(member)


def _plain(name: str) -> str:
    """Normalise a member's name or label to its alphanumeric characters, without taxonomy suffixes."""
    plain = re.sub(r"[^a-z0-9]", "", name.lower())
    for suffix in ("domain", "member", "segment", "segments"):
        plain = plain.removesuffix(suffix) or plain
    return plain
