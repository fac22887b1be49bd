"""Readable names of XBRL members: documents carry element names, the labels are in a linkbase that few keep."""

import re
from collections.abc import Iterable
from pathlib import Path

import msgspec

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
