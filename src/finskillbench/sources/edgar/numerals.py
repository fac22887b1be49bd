"""Numeric transformations of inline XBRL, and the canonical metrics with their tags (`metrics.json`).

Source: XBRL International, Transformation Registry 1 to 5 (`ixt`), and the SEC's `ixt-sec:numwordsen`. A name means the
same in every version of the registry, with or without hyphens.
"""

import re
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from finskillbench.errors import InternalError

_BLANKS = re.compile(r"\s+")
_DOT = frozenset({"numdotdecimal", "numcommadot", "numspacedot", "numdotdecimalin"})
"""Decimal point, with commas, blanks or apostrophes between thousands."""
_COMMA = frozenset({"numcommadecimal", "numdotcomma", "numspacecomma", "numcomma"})
"""Decimal comma, with dots, blanks or apostrophes between thousands."""
_ZERO = frozenset({"fixedzero", "zerodash", "numdash"})
"""Any text (a dash, "no") means zero."""

# fmt: off
_UNITS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
# fmt: on
_NUMBER_NAMES = {
    **{word: value for value, word in enumerate(_UNITS)},
    **{word: 10 * value for value, word in enumerate(_TENS, start=2)},
    "no": 0,
    "none": 0,
    "a": 1,
    "an": 1,
}
_POWERS = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}


def transformed(text: str, name: str) -> str:
    """Return the digits of a printed figure, with a decimal point and without the sign.

    Raises
    ------
    ValueError : the text does not match the transformation `name`, or that is unknown.
    """
    kind = name.replace("-", "").lower()
    if kind in _ZERO:
        return "0"
    if kind == "numwordsen":
        return str(_parse_number_names(text))
    digits = _BLANKS.sub("", text).replace("'", "").replace("’", "")
    if kind in _DOT:
        digits = digits.replace(",", "")
    elif kind in _COMMA:
        digits = digits.replace(".", "").replace(",", ".")
    elif kind:
        raise ValueError(f"{text!r} has the unknown transformation {name!r}")
    if not re.fullmatch(r"\d+\.?\d*|\.\d+", digits):
        raise ValueError(f"{text!r}" + (f" under the transformation {name!r}" if name else ""))
    return digits


def _parse_number_names(text: str) -> int:
    """Parse a number in English words: "one hundred and twenty-one" is 121."""
    total = group = 0
    tokens = re.findall(r"[a-z]+", text.lower())
    if not tokens:
        raise ValueError(f"{text!r} is not a number in words")
    for word in tokens:
        if word in _NUMBER_NAMES:
            group += _NUMBER_NAMES[word]
        elif word == "hundred":
            group = 100 * (group or 1)
        elif word in _POWERS:
            total, group = total + (group or 1) * _POWERS[word], 0
        elif word != "and":
            raise ValueError(f"{text!r} is not a number in words")
    return total + group


TABLE = Path(__file__).resolve().with_name("metrics.json")


class Alias(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A tag of a metric, with the reason for its place in the order.

    concept, and those in `unless` and `below` : taxonomy and tag, `us-gaap:Revenues`.
    weak : a neighbouring concept; it only fills gaps, and differences with better aliases are not taken.
    unless : concepts whose presence in the filing shows that this one is only a part.
    below : concepts of which a greater figure for the same period and filing shows that this one is only a part.
    line : a term of a sum only as a line of the cash flow statement, which is year to date in interim reports.
    interim : a term of a sum only where interim reports give it for the year to date.
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
        return self.concept.partition(":")[0]

    @property
    def tag(self) -> str:
        return local_name(self.concept)


class Fallback(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A metric as a signed sum of others of the same filing and period.

    optional : terms that are zero if absent. instead : applies only to filings that never state the metric.
    covered : terms that an earlier term includes if filed under these concepts.
    """

    terms: dict[str, int]
    reason: str
    optional: frozenset[str] = frozenset()
    instead: bool = False
    covered: dict[str, tuple[str, ...]] = {}


class Excluded(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Tags (without taxonomy) that match a metric's pattern without measuring it, with the reason."""

    tags: tuple[str, ...]
    reason: str


class Metric(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A canonical metric.

    kind : over a period or at a date. declared_additive : of flows only, see `additive`.
    part : only a term of another metric's fallback; not in the panel.
    pattern : regular expression of us-gaap tags of the metric; each match is an alias or excluded.
    fallbacks : in order of preference.
    """

    kind: Literal["flow", "instant"]
    unit: Literal["USD", "USD/shares", "shares"]
    aliases: Annotated[tuple[Alias, ...], msgspec.Meta(min_length=1)]
    declared_additive: bool = msgspec.field(name="additive", default=True)
    part: bool = False
    pattern: str | None = None
    fallbacks: tuple[Fallback, ...] = ()
    excluded: tuple[Excluded, ...] = ()

    @property
    def additive(self) -> bool:
        """True if a year is the sum of its quarters, so that these follow from year-to-date figures."""
        return self.kind == "flow" and self.declared_additive


class _Table(msgspec.Struct):
    """`witnesses` : concepts that confirm other metrics, with the identity."""

    metrics: dict[str, Metric]
    witnesses: dict[str, str] = {}


def local_name(concept: str) -> str:
    """Return `Revenues` for `us-gaap:Revenues`."""
    return concept.partition(":")[2]


def load_metrics(path: Path = TABLE) -> _Table:
    """Read the table of metrics; InternalError if the file in the package contradicts itself."""
    try:
        table = msgspec.json.decode(path.read_bytes(), type=_Table)
    except msgspec.DecodeError as error:
        raise InternalError(f"{path}: {error}") from error
    metrics = table.metrics
    concepts = [alias.concept for metric in metrics.values() for alias in metric.aliases]
    if twice := [concept for concept in concepts if concepts.count(concept) > 1]:
        raise InternalError(f"{path}: {twice[0]} is an alias of two metrics; list it once")
    for name, metric in metrics.items():
        for term in (term for fallback in metric.fallbacks for term in fallback.terms):
            if term not in metrics or (metrics[term].kind, metrics[term].unit) != (metric.kind, metric.unit):
                raise InternalError(f"{path}: the fallback of {name} has a term of another kind: {term}")
    return table


_LOADED = load_metrics()
METRICS = _LOADED.metrics
"""Metrics by name, including parts of fallbacks."""

CANONICAL = tuple(name for name, metric in METRICS.items() if not metric.part)
"""Names of the panel's metrics, in the order of statements."""

CANONICAL_TAGS = frozenset(
    local_name(concept)
    for metric in METRICS.values()
    for alias in metric.aliases
    for concept in (alias.concept, *alias.unless, *alias.below)
)
"""Tags of all metrics."""

STATEMENT_TAGS = CANONICAL_TAGS | frozenset(map(local_name, _LOADED.witnesses))
"""Tags to read from a company's file: those of metrics and witnesses."""
