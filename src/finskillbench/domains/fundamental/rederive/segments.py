"""Revenue by segment of the second derivation, straight from the XBRL instances with all their dimensions.

Plain Python, with its own choice of tags and axes. A document belongs to the filing that its name says, else to the one
whose company facts repeat its figures. A quarter is looked up when it is asked for.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, timedelta
from itertools import islice, product
from math import fsum
from typing import Any

from finskillbench.domains.fundamental.rederive.answers import SegmentChange
from finskillbench.domains.fundamental.rederive.definitions import (
    AXES,
    MOST_SEGMENTS,
    QUARTER_APART,
    SEGMENT_GAP,
    SHORTER,
    kind_of,
)
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
"""Choices of a tag for each segment that are tried, where several tags state one."""

_Span = tuple[date, date]
_Dimensions = tuple[tuple[str, str], ...]
"""Axes and members by their local names: `us-gaap` held most axes before `srt` did."""
_Versions = dict[_Span, list[tuple[date, float]]]
"""What was filed of each period, and when."""
_Pair = tuple[float, float]
"""Revenue of the quarter and of the quarter before."""


class RawSegments:
    """One company's revenue as its instances break it down.

    Parameters
    ----------
    instances : its documents, in any order.
    rows : mappings with tag, start, end, value, accession, form and filed: the company's facts.
    """

    def __init__(self, instances: Iterable[Instance], rows: Iterable[Mapping[str, Any]]) -> None:
        self._cells: dict[_Dimensions, dict[str, _Versions]] = defaultdict(lambda: defaultdict(dict))
        self._latest: dict[tuple[_Dimensions, _Span], tuple[date, float]] = {}
        self._recast: set[tuple[date, frozenset[str]]] = set()
        for filed, instance in sorted(_dated(list(instances), list(rows)), key=lambda each: each[0]):
            for fact in instance.facts:
                if _REVENUE.match(fact.tag) and fact.unit == "USD" and fact.start and fact.end:
                    self._take(filed, fact, (fact.start, fact.end))

    def _take(self, filed: date, fact: InstanceFact, span: _Span) -> None:
        """One figure; a filing that says another thing than an earlier one recasts its breakdown."""
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
        """The largest changes of the segments that explain the change of revenue from a quarter to the next.

        axis, shown : the axis of the other derivation and the segments that it shows of the quarter; their names are
        labels, so that each is looked for among the members. A breakdown of an earlier axis that it passed over is
        given instead, under the members' own names.
        """
        for kind in AXES:
            if kind == axis:
                found = self._named(kind, shown, end, prior_end, day)
            else:
                found = self._whole(kind, end, prior_end, day)
            if found or kind == axis:
                moved = {name: now - before for name, (now, before) in found.items() if now != before}
                largest = sorted(moved, key=lambda name: (-abs(moved[name]), name))[:MOST_SEGMENTS]
                return [SegmentChange(name, kind, moved[name]) for name in largest]
        return []

    def _named(self, kind: str, shown: Mapping[str, float], end: date, prior_end: date, day: date) -> dict[str, _Pair]:
        """Both quarters of each segment, from members on one axis that together make revenue; {} where none do."""
        totals = self._totals(end, prior_end, day)
        for members in self._tables(kind, end, prior_end, day).values():
            columns = [_candidates(name, value, members) for name, value in shown.items()]
            for chosen in islice(product(*columns), _TRIED):
                if _makes_up(chosen, totals):
                    return dict(zip(shown, chosen, strict=True))
        return {}

    def _whole(self, kind: str, end: date, prior_end: date, day: date) -> dict[str, _Pair]:
        """A breakdown under one tag whose members, all of them, make revenue in both quarters; {} where there is none.

        Nothing is held constant beside its axis: a part of revenue can add up to it by chance.
        """
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
        """Members by XBRL axis and by what is held constant beside it, with what tags say of both quarters.

        What reconciles segments to the total stands with them; its own axis is that of consolidation items alone.
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
        """What tags say of both quarters, one tag each: standards change the tag of a line."""
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
        """The quarter that ends on a day as last filed, else as the last filing that allows it leaves it."""
        spans = self._cells[dimensions][tag]
        stated = [
            version
            for span, versions in spans.items()
            if span[1] == end and kind_of(*span) == "quarterly"
            for version in versions
            if version[0] <= day
        ]
        if stated:
            return max(stated)[1]
        axes = frozenset(axis for axis, _ in dimensions)
        recast = {filed for filed, others in self._recast if others == axes}
        left = [(filed, value) for filed, value in _differences(spans, end, recast) if filed <= day]
        return max(left)[1] if left else None


def _differences(spans: _Versions, end: date, recast: set[date]) -> Iterator[tuple[date, float]]:
    """What a year to date leaves when a shorter one is taken from it, or a half its second quarter; and when.

    recast : days of filings that say another thing of the breakdown than was filed before: theirs mix with no other.
    """
    least, most, _ = QUARTER_APART
    for (start, last), versions in spans.items():
        if last == end:
            shorter_kind = SHORTER.get(kind_of(start, end))
            others = [
                (first, stop)
                for first, stop in spans
                if first == start and least <= (end - stop).days <= most and kind_of(first, stop) == shorter_kind
            ]
        else:
            second = (end + _DAY, last)
            others = [second] if second in spans and kind_of(start, end) == kind_of(*second) == "quarterly" else []
        for other in others:
            for filed, value in versions:
                public = [version for version in spans[other] if version[0] <= filed]
                if public and (public[-1][0] == filed or (last == end and filed not in recast)):
                    yield filed, value - public[-1][1]


def _dated(instances: list[Instance], rows: list[Mapping[str, Any]]) -> Iterator[tuple[date, Instance]]:
    """Each filing's first document with the day of the filing; documents of unknown filings are left out."""
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
    """What tags say of the member that a label names.

    Labels shorten ("Corporate" is CorporateNonSegmentMember) and spell countries out; of countries it is the one whose
    revenue is nearest, since their codes say no name.
    """
    plain = _plain(name)
    shortened = [member for member in members if _plain(member).startswith(plain)]
    same = [member for member in shortened if _plain(member) == plain]
    if shortened:
        return [pair for member in same or shortened for pair in members[member]]
    coded = [pair for member, pairs in members.items() if member.startswith("country:") for pair in pairs]
    return sorted(coded, key=lambda pair: abs(pair[0] - value))[:1]


def _makes_up(parts: Iterable[_Pair], totals: Iterable[_Pair]) -> bool:
    """Whether parts add up to one of the totals in both quarters."""
    sums = [fsum(column) for column in zip(*parts, strict=True)]
    return bool(sums) and any(
        all(abs(part - whole) <= SEGMENT_GAP * abs(whole) for part, whole in zip(sums, total, strict=True))
        for total in totals
    )


def _local(name: str) -> str:
    return name.rpartition(":")[2]


def _key(member: str) -> str:
    return member if member.startswith("country:") else _local(member)


def _plain(name: str) -> str:
    """Letters and digits of a member's name or label, without what taxonomies append."""
    plain = re.sub(r"[^a-z0-9]", "", name.lower())
    for suffix in ("domain", "member", "segment", "segments"):
        plain = plain.removesuffix(suffix) or plain
    return plain
