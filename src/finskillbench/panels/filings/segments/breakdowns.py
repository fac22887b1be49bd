"""Find the members of an axis that add up to revenue, and label XBRL members by their element names."""

import math
import re
from collections.abc import Iterable, Mapping
from datetime import date
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

TOLERANCE = 0.01
"""Share of total revenue by which the members of an axis may differ from it: hedging, small reconciling items."""

_SEARCHED = 16
"""Maximum number of members for the search for subtotals, which tries all 65,536 subsets."""
_ROUNDING = 1.5
"""Units of rounding by which the members of a table may differ from its total."""


class SegmentFigure(NamedTuple):
    """Value in USD and its rounding unit."""

    value: float
    unit: float


class Breakdown(NamedTuple):
    """Members of an axis in one period; `gap` is the share of revenue they differ by, 0 within rounding."""

    members: Mapping[str, SegmentFigure]
    gap: float


Period = tuple[date, date]
Parts = dict[Period, dict[str, SegmentFigure]]


def subtract_figures(whole: SegmentFigure, less: SegmentFigure) -> SegmentFigure:
    """Subtract figures; the result has the coarser rounding unit."""
    return SegmentFigure(whole.value - less.value, max(whole.unit, less.unit))


def complete_breakdowns(parts: Parts, totals: Mapping[Period, SegmentFigure]) -> dict[Period, Breakdown]:
    """Return the finest members that add up to revenue, for the periods that have some.

    All members within rounding; else a subset, which drops subtotals; else all members within `TOLERANCE`. Prefer the
    subset that adds up in most other periods, since chance matches rarely recur, then the largest.
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
    # Zeros always add up: a period without revenue uses the members of another period of the filing.
    for period, members in parts.items():
        total = totals.get(period)
        if total is not None and not total.value and len(members) > 1 and not any(f.value for f in members.values()):
            similar = [set(found.members) for found in sets.values() if found.members.keys() <= members.keys()]
            names = max(similar, key=len, default=set(members))
            sets[period] = Breakdown({name: figure for name, figure in members.items() if name in names}, 0.0)
    return sets


def _finest(period: Period, parts: Parts, totals: Mapping[Period, SegmentFigure]) -> tuple[str, ...]:
    """Return the names of the subset that adds up within rounding; empty if none has two members."""
    members, total = parts[period], totals[period]
    names = sorted(members)
    if not 2 < len(names) <= _SEARCHED:
        return ()
    values = np.array([members[name].value for name in names])
    masks = (np.arange(1 << len(names))[:, None] >> np.arange(len(names))) & 1
    fitting = masks[np.abs(masks @ values - total.value) <= _slack(members.values(), total)].astype(bool)
    fitting = fitting[(fitting & (values != 0)).sum(axis=1) >= 2]

    def rank(chosen: tuple[str, ...]) -> tuple[int, int]:
        matches = 0
        for other, figures in parts.items():
            if other in totals and all(name in figures for name in chosen):
                matches += _gap(figures, chosen, totals[other]) <= _slack(figures.values(), totals[other])
        return matches, len(chosen)

    subsets = [tuple(name for name, inside in zip(names, mask, strict=True) if inside) for mask in fitting.tolist()]
    return max(subsets, key=rank, default=())


def _gap(figures: Mapping[str, SegmentFigure], names: Iterable[str], total: SegmentFigure) -> float:
    return abs(math.fsum(figures[name].value for name in names) - total.value)


def _slack(figures: Iterable[SegmentFigure], total: SegmentFigure) -> float:
    """Return the difference that rounding explains, at most `TOLERANCE`."""
    rounding = _ROUNDING * max(total.unit, *(figure.unit for figure in figures))
    return min(rounding, TOLERANCE * abs(total.value))


_COUNTRIES = msgspec.json.decode(Path(__file__).with_name("countries.json").read_bytes(), type=dict[str, str])
"""Codes used in the `country` taxonomy (ISO 3166) -> English short names."""

_TOKENS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_SMALL = frozenset({"and", "of", "the", "for", "in", "to", "or"})
_JOINED = re.compile(r"(?<=[a-z])(?:and|of)$")
"""Small word joined to an element name: "Homeand"."""
_WHOLE = re.compile(r"land$|^(?:hand|band|sand|stand|strand|grand|brand|demand|command|thousand|proof|roof)$", re.I)
"""Whole words with such an ending."""
_KNOWN = {"NonUs": "Non-US", "US": "United States", "CorporateNonSegment": "Corporate"}


def member_key(member: str) -> str:
    """Return the key of a member over the years: its local name, because prefixes change (`us-gaap` to `srt`)."""
    prefix, _, local = member.rpartition(":")
    return member if prefix == "country" else local


def labels_of(members: Iterable[str]) -> dict[str, str]:
    """Map keys (`member_key`) to readable names that differ within one axis."""
    keys = list(members)
    labels = {key: _label(key, short=True) for key in keys}
    if len(set(labels.values())) < len(keys):
        labels = {key: _label(key, short=False) for key in keys}
    return labels if len(set(labels.values())) == len(keys) else {key: key for key in keys}


def _label(key: str, *, short: bool) -> str:
    """Label `GreaterChinaSegmentMember` as `Greater China`, with the word "Segment" unless `short`."""
    if key.startswith("country:"):
        code = key.partition(":")[2]
        return _COUNTRIES.get(code, code)
    name = key.removesuffix("Member").removesuffix("Domain")
    if name in _KNOWN and short:
        return _KNOWN[name]
    if short:
        name = name.removesuffix("Segments").removesuffix("Segment") or name
    tokens = _split(_TOKENS.findall(name))
    label = " ".join(word.lower() if place and word.lower() in _SMALL else word for place, word in enumerate(tokens))
    # Element names start with a capital, which trade names with a small i lose.
    return re.sub(r"\bI (?=(?:Phone|Pad|Pod|Mac|Cloud|Tunes)\b)", "i", label) or key


def _split(tokens: list[str]) -> list[str]:
    """Split a small word off the end of tokens: `WearablesHomeandAccessories` gives Home and Accessories."""
    found: list[str] = []
    for word in tokens[:-1]:
        joiner = None if _WHOLE.search(word) else _JOINED.search(word)
        found += [word] if joiner is None else [word[: joiner.start()], joiner.group()]
    return [*found, *tokens[-1:]]
