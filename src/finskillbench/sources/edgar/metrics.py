"""The canonical metrics and the XBRL tags that stand for them: one table, `metrics.json`, checked here."""

from pathlib import Path
from typing import Annotated, Literal

import msgspec

from finskillbench.errors import InternalError

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
