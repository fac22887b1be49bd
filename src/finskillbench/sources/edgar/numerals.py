"""Figures as the page prints them: the numeric transformations of the Inline XBRL Transformation Registry.

Source: XBRL International, Transformation Registry 1 to 5 (`ixt`), and the SEC's own `ixt-sec:numwordsen`. A name is
the same transformation in every version of the registry, with or without hyphens.

The canonical metrics and the XBRL tags that stand for them: one table, `metrics.json`, checked here.
"""

import re
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from finskillbench.errors import InternalError

_BLANKS = re.compile(r"\s+")
_DOT = frozenset({"numdotdecimal", "numcommadot", "numspacedot", "numdotdecimalin"})
"""A dot before the decimals; commas, blanks or apostrophes between the thousands."""
_COMMA = frozenset({"numcommadecimal", "numdotcomma", "numspacecomma", "numcomma"})
"""A comma before the decimals; dots, blanks or apostrophes between the thousands."""
_ZERO = frozenset({"fixedzero", "zerodash", "numdash"})
"""Whatever is printed (a dash, "no") is zero."""

# fmt: off
_UNITS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
# fmt: on
_WORDS = {
    **{word: value for value, word in enumerate(_UNITS)},
    **{word: 10 * value for value, word in enumerate(_TENS, start=2)},
    "no": 0,
    "none": 0,
    "a": 1,
    "an": 1,
}
_POWERS = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}


def transformed(text: str, name: str) -> str:
    """The digits, with a dot before the decimals, that a figure stands for.

    Parameters
    ----------
    text : what the page prints, without the sign (an attribute of the element says it).
    name : the transformation without its prefix, empty where the document names none.

    Raises
    ------
    ValueError : the text is not what the transformation reads, or the transformation is not known.
    """
    kind = name.replace("-", "").lower()
    if kind in _ZERO:
        return "0"
    if kind == "numwordsen":
        return str(_words(text))
    digits = _BLANKS.sub("", text).replace("'", "").replace("’", "")
    if kind in _DOT:
        digits = digits.replace(",", "")
    elif kind in _COMMA:
        digits = digits.replace(".", "").replace(",", ".")
    elif kind:
        raise ValueError(f"{text!r} is to be read by the transformation {name!r}, which is not known here")
    if not re.fullmatch(r"\d+\.?\d*|\.\d+", digits):
        raise ValueError(f"{text!r}" + (f" under the transformation {name!r}" if name else ""))
    return digits


def _words(text: str) -> int:
    """The number that English words spell: "one hundred and twenty-one" is 121."""
    total = group = 0
    words = re.findall(r"[a-z]+", text.lower())
    if not words:
        raise ValueError(f"{text!r} is not a number in words")
    for word in words:
        if word in _WORDS:
            group += _WORDS[word]
        elif word == "hundred":
            group = 100 * (group or 1)
        elif word in _POWERS:
            total, group = total + (group or 1) * _POWERS[word], 0
        elif word != "and":
            raise ValueError(f"{text!r} is not a number in words")
    return total + group


TABLE = Path(__file__).resolve().with_name("metrics.json")


class Alias(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A tag that stands for a metric, with the reason of its place in the order.

    concept : taxonomy and tag, `us-gaap:Revenues`, and so are those of `unless` and `below`.
    weak : a neighbouring concept; it fills a gap and never replaces a figure of a better alias, nor is it differenced
        with one.
    unless : concepts whose presence in the same filing shows that this one is only a part.
    below : concepts of which a greater figure for the same period in the same filing shows that this one is only a
        part.
    line : counts as a term of a sum only where it is a line of the cash flow statement, which in interim reports covers
        the year to date alone; notes cover its last quarter too.
    interim : counts as a term of a sum only where interim reports give it for the year to date.
    """

    concept: str = msgspec.field(name="tag")
    reason: str
    weak: bool = False
    unless: tuple[str, ...] = ()
    below: tuple[str, ...] = ()
    line: bool = False
    interim: bool = False

    @property
    def taxonomy(self) -> str:
        """`us-gaap` of `us-gaap:Revenues`."""
        return self.concept.partition(":")[0]

    @property
    def tag(self) -> str:
        """`Revenues` of `us-gaap:Revenues`."""
        return tag_of(self.concept)


class Fallback(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A metric as a signed sum of others of the same filing and period.

    optional : terms that count as zero where they are absent.
    instead : counts only in a filing that states the metric for no period at all: the terms say another thing.
    covered : those of them that another term, named before, already includes where it is filed under these concepts.
    """

    terms: dict[str, int]
    reason: str
    optional: frozenset[str] = frozenset()
    instead: bool = False
    covered: dict[str, tuple[str, ...]] = {}


class Excluded(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Tags, without taxonomy, that match a metric's pattern and do not stand for it, with the reason."""

    tags: tuple[str, ...]
    reason: str


class Metric(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A canonical metric.

    kind : over a period or at a date.
    summed : as the table says; of flows only, see `additive`.
    part : only a term of another metric's fallback; not in the panel.
    pattern : regular expression of the us-gaap tags that may stand for the metric; each is an alias or excluded.
    fallbacks : in order of preference.
    """

    kind: Literal["flow", "instant"]
    unit: Literal["USD", "USD/shares", "shares"]
    aliases: Annotated[tuple[Alias, ...], msgspec.Meta(min_length=1)]
    summed: bool = msgspec.field(name="additive", default=True)
    part: bool = False
    pattern: str | None = None
    fallbacks: tuple[Fallback, ...] = ()
    excluded: tuple[Excluded, ...] = ()

    @property
    def additive(self) -> bool:
        """Whether a year is the sum of its quarters, so that quarters follow from year-to-date figures."""
        return self.kind == "flow" and self.summed


class _Table(msgspec.Struct):
    """witnesses : concepts that stand for no metric and confirm the figures of others, with the identity."""

    metrics: dict[str, Metric]
    witnesses: dict[str, str] = {}


def tag_of(concept: str) -> str:
    """`Revenues` of `us-gaap:Revenues`."""
    return concept.partition(":")[2]


def load_metrics(path: Path = TABLE) -> _Table:
    """Read the table.

    Raises
    ------
    InternalError : the table that ships with the package contradicts itself.
    """
    try:
        table = msgspec.json.decode(path.read_bytes(), type=_Table)
    except msgspec.DecodeError as error:
        raise InternalError(f"{path}: {error}") from error
    metrics = table.metrics
    concepts = [alias.concept for metric in metrics.values() for alias in metric.aliases]
    if twice := [concept for concept in concepts if concepts.count(concept) > 1]:
        raise InternalError(f"{path}: {twice[0]} stands for two metrics; name it once")
    for name, metric in metrics.items():
        for term in (term for fallback in metric.fallbacks for term in fallback.terms):
            if term not in metrics or (metrics[term].kind, metrics[term].unit) != (metric.kind, metric.unit):
                raise InternalError(f"{path}: the fallback of {name} has a term of another kind: {term}")
    return table


_LOADED = load_metrics()
METRICS = _LOADED.metrics
"""Every metric by name, the parts of fallbacks included."""

CANONICAL = tuple(name for name, metric in METRICS.items() if not metric.part)
"""Names of the panel's metrics, in the order of statements."""

CANONICAL_TAGS = frozenset(
    tag_of(concept)
    for metric in METRICS.values()
    for alias in metric.aliases
    for concept in (alias.concept, *alias.unless, *alias.below)
)
"""Tags that may stand for a metric."""

STATEMENT_TAGS = CANONICAL_TAGS | frozenset(map(tag_of, _LOADED.witnesses))
"""Tags worth reading from a company's file: candidates and witnesses."""
