"""The canonical metrics and the XBRL tags that stand for them: one table, `catalog/metrics.json`, checked here."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import orjson

from finskillbench.errors import InternalError

TABLE = Path(__file__).resolve().with_name("metrics.json")

FLOW, INSTANT = "flow", "instant"
UNITS = ("USD", "USD/shares", "shares")


@dataclass(frozen=True, slots=True)
class Alias:
    """A tag that stands for a metric, with the reason of its place in the order.

    weak : a neighbouring concept; it fills a gap and never replaces a figure of a better alias, nor is it differenced
        with one.
    unless : tags whose presence in the same filing shows that this one is only a part.
    below : tags of which a greater figure for the same period in the same filing shows that this one is only a part.
    """

    taxonomy: str
    tag: str
    reason: str
    weak: bool
    unless: tuple[str, ...]
    below: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Fallback:
    """A metric as a signed sum of others of the same filing and period.

    optional : terms that count as zero where they are absent.
    inside_weak : those of them that a weak figure of another term already includes (equity with minority interest).
    """

    terms: Mapping[str, int]
    optional: frozenset[str]
    inside_weak: frozenset[str]
    reason: str


@dataclass(frozen=True, slots=True)
class Metric:
    """A canonical metric.

    kind : "flow" (over a period) or "instant" (at a date).
    unit : "USD", "USD/shares" or "shares".
    additive : a year is the sum of its quarters, so that quarters follow from year-to-date figures.
    part : only a term of another metric's fallback; not in the panel.
    """

    name: str
    kind: str
    unit: str
    additive: bool
    part: bool
    aliases: tuple[Alias, ...]
    fallback: Fallback | None


def load_metrics(path: Path = TABLE) -> dict[str, Metric]:
    """The table, in its order.

    Raises
    ------
    InternalError : the table that ships with the package contradicts itself.
    """
    record = orjson.loads(path.read_bytes())["metrics"]
    metrics: dict[str, Metric] = {}
    seen: set[tuple[str, str]] = set()
    for name, entry in record.items():
        aliases = []
        for one in entry["aliases"]:
            taxonomy, tag = one["tag"].split(":")
            if (taxonomy, tag) in seen:
                raise InternalError(f"{path}: {one['tag']} stands for two metrics; name it once")
            seen.add((taxonomy, tag))
            unless, below = (
                tuple(other.split(":")[1] for other in one.get(field, ())) for field in ("unless", "below")
            )
            aliases.append(Alias(taxonomy, tag, one["reason"], one.get("weak", False), unless, below))
        if entry["kind"] not in (FLOW, INSTANT) or entry["unit"] not in UNITS or not aliases:
            raise InternalError(f"{path}: {name} needs a kind, a unit and at least one alias")
        given = entry.get("fallback")
        metrics[name] = Metric(
            name=name,
            kind=entry["kind"],
            unit=entry["unit"],
            additive=entry.get("additive", entry["kind"] == FLOW),
            part=entry.get("part", False),
            aliases=tuple(aliases),
            fallback=given
            and Fallback(
                given["terms"],
                frozenset(given.get("optional", ())),
                frozenset(given.get("inside_weak", ())),
                given["reason"],
            ),
        )
    for metric in metrics.values():
        for term in metric.fallback.terms if metric.fallback else ():
            if term not in metrics or (metrics[term].kind, metrics[term].unit) != (metric.kind, metric.unit):
                raise InternalError(f"{path}: the fallback of {metric.name} has a term of another kind: {term}")
    return metrics


METRICS = load_metrics()
"""Every metric by name, the parts of fallbacks included."""

CANONICAL = tuple(name for name, metric in METRICS.items() if not metric.part)
"""Names of the panel's metrics, in the order of statements."""

CANONICAL_TAGS = frozenset(
    tag for metric in METRICS.values() for alias in metric.aliases for tag in (alias.tag, *alias.unless, *alias.below)
)
"""Tags worth reading from a company's file."""
