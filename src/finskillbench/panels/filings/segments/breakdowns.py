"""Which members of an axis add up to revenue: subtotals and totals among them fall out.

Readable names of XBRL members: documents carry element names, the labels are in a linkbase that few keep.
"""

import math
import re
from collections.abc import Iterable, Mapping
from datetime import date
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

TOLERANCE = 0.01
"""Share of total revenue by which the members of an axis may miss it (hedging results, small reconciling items)."""

_SEARCHED = 16
"""Members among which subtotals are looked for: all 65,536 subsets are tried."""
_ROUNDING = 1.5
"""Units of rounding that the members of a table may miss its total by."""


class Figure(NamedTuple):
    """Value in USD and the unit it is rounded to."""

    value: float
    unit: float


class Breakdown(NamedTuple):
    """The members of an axis in one period; `gap` is the share of revenue they miss it by, 0 if only by rounding."""

    members: Mapping[str, Figure]
    gap: float


Period = tuple[date, date]
Parts = dict[Period, dict[str, Figure]]
"""Figures by period and member."""


def difference(whole: Figure, less: Figure) -> Figure:
    """One figure less another, rounded as the coarser of them."""
    return Figure(whole.value - less.value, max(whole.unit, less.unit))


def complete(parts: Parts, totals: Mapping[Period, Figure]) -> dict[Period, Breakdown]:
    """The finest members that add up to revenue, for the periods in which some do.

    All members where they add up to rounding; else a subset that does, so that subtotals and totals fall out; else all
    members where they come within `TOLERANCE`. Of several subsets the one that also adds up in most other periods of
    the filing (what adds up by chance does so once), then the one with most members.
    """
    sets: dict[Period, Breakdown] = {}
    for period, members in parts.items():
        total = totals.get(period)
        if total is None or sum(figure.value != 0 for figure in members.values()) < 2:
            continue
        gap = _gap(members, members, total)
        if gap <= _slack(members.values(), total):
            sets[period] = Breakdown(members, 0.0)
            continue
        names = _finest(period, parts, totals)
        if names:
            sets[period] = Breakdown({name: members[name] for name in names}, 0.0)
        elif gap <= TOLERANCE * abs(total.value):
            sets[period] = Breakdown(members, gap / abs(total.value))
    # Zeros add up whichever are taken: a period without any revenue is broken down as another of the filing is.
    for period, members in parts.items():
        total = totals.get(period)
        if total is not None and not total.value and len(members) > 1 and not any(f.value for f in members.values()):
            others = [set(found.members) for found in sets.values() if found.members.keys() <= members.keys()]
            names = max(others, key=len, default=set(members))
            sets[period] = Breakdown({name: figure for name, figure in members.items() if name in names}, 0.0)
    return sets


def _finest(period: Period, parts: Parts, totals: Mapping[Period, Figure]) -> tuple[str, ...]:
    """Names of the subset that adds up to rounding, empty where none of at least two members does."""
    members, total = parts[period], totals[period]
    names = sorted(members)
    if not 2 < len(names) <= _SEARCHED:
        return ()
    values = np.array([members[name].value for name in names])
    masks = (np.arange(1 << len(names))[:, None] >> np.arange(len(names))) & 1
    fitting = masks[np.abs(masks @ values - total.value) <= _slack(members.values(), total)].astype(bool)
    fitting = fitting[(fitting & (values != 0)).sum(axis=1) >= 2]

    def rank(chosen: tuple[str, ...]) -> tuple[int, int]:
        others = 0
        for other, figures in parts.items():
            if other in totals and all(name in figures for name in chosen):
                others += _gap(figures, chosen, totals[other]) <= _slack(figures.values(), totals[other])
        return others, len(chosen)

    subsets = [tuple(name for name, inside in zip(names, mask, strict=True) if inside) for mask in fitting.tolist()]
    return max(subsets, key=rank, default=())


def _gap(figures: Mapping[str, Figure], names: Iterable[str], total: Figure) -> float:
    return abs(math.fsum(figures[name].value for name in names) - total.value)


def _slack(figures: Iterable[Figure], total: Figure) -> float:
    """How far rounding explains that figures miss their total, never more than `TOLERANCE`."""
    rounding = _ROUNDING * max(total.unit, *(figure.unit for figure in figures))
    return min(rounding, TOLERANCE * abs(total.value))


_COUNTRIES = msgspec.json.decode(Path(__file__).with_name("countries.json").read_bytes(), type=dict[str, str])
"""ISO 3166 codes that filers use in `country`, by their English short names."""

_WORDS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_SMALL = frozenset({"and", "of", "the", "for", "in", "to", "or"})
_JOINED = re.compile(r"(?<=[a-z])(?:and|of)$")
"""A small word that the element name does not set off: "Homeand"."""
_WHOLE = re.compile(r"land$|^(?:hand|band|sand|stand|strand|grand|brand|demand|command|thousand|proof|roof)$", re.I)
"""Words that end like one of them and are whole."""
_KNOWN = {"NonUs": "Non-US", "US": "United States", "CorporateNonSegment": "Corporate"}


def member_key(member: str) -> str:
    """What identifies a member over the years: its local name, since prefixes move (`us-gaap` to `srt`)."""
    prefix, _, local = member.rpartition(":")
    return member if prefix == "country" else local


def labels_of(members: Iterable[str]) -> dict[str, str]:
    """Key (`member_key`) -> readable name, different for each of the members of one axis."""
    keys = list(members)
    labels = {key: _label(key, short=True) for key in keys}
    if len(set(labels.values())) < len(keys):
        labels = {key: _label(key, short=False) for key in keys}
    return labels if len(set(labels.values())) == len(keys) else {key: key for key in keys}


def _label(key: str, *, short: bool) -> str:
    """`GreaterChinaSegmentMember` -> `Greater China`, with the word "Segment" unless `short`."""
    if key.startswith("country:"):
        code = key.partition(":")[2]
        return _COUNTRIES.get(code, code)
    name = key.removesuffix("Member").removesuffix("Domain")
    if name in _KNOWN and short:
        return _KNOWN[name]
    if short:
        name = name.removesuffix("Segments").removesuffix("Segment") or name
    words = _split(_WORDS.findall(name))
    label = " ".join(word.lower() if place and word.lower() in _SMALL else word for place, word in enumerate(words))
    # An element name starts with a capital, so that trade names with a small i lose it.
    return re.sub(r"\bI (?=(?:Phone|Pad|Pod|Mac|Cloud|Tunes)\b)", "i", label) or key


def _split(words: list[str]) -> list[str]:
    """Words with a joiner at their end apart from it: `WearablesHomeandAccessories` is Home and Accessories.

    A joiner is followed by what it joins, so that the last word has none.
    """
    found: list[str] = []
    for word in words[:-1]:
        joiner = None if _WHOLE.search(word) else _JOINED.search(word)
        found += [word] if joiner is None else [word[: joiner.start()], joiner.group()]
    return [*found, *words[-1:]]
