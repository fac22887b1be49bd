"""What each filing states of each metric, in units, in plain Python."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from statistics import median

from finskillbench.domains.fundamental.second.choice import Filing, Period, chosen
from finskillbench.domains.fundamental.second.concepts import CONCEPTS, NOT_NEGATIVE, Concept
from finskillbench.sums import summed

COMPUTED = 1000
"""The rank of a figure that its filing does not state but whose parts it does: behind every element."""
_LEAST_EPS = 0.05
"""Smaller earnings per share have too few digits to tell a scale."""
_DEAREST = 750.0
"""Dollars earned a share beyond which only the filing's own earnings per share are believed."""
_LAST_FILINGS = 8
"""As many filings before tell how many shares there were."""

Key = tuple[Period, str]
"""Period and accession."""


@dataclass(frozen=True, slots=True)
class FiledFigure:
    """The figure of one period in one filing.

    tag : the element, or those of its parts joined by their signs. rank : its place among those of the metric, 0 first.
    stated : whether a filing gives it, or its parts, for this very period.
    new : the day on which the value was first filed, which is that of the filing unless it repeats another.
    """

    filed: date
    new: date
    accession: str
    rank: int
    weak: bool
    value: float
    tag: str
    stated: bool = True


Stated = dict[Key, FiledFigure]
"""What filings state of one metric."""


def stated(reports: Iterable[Filing], concepts: Mapping[str, Concept] = CONCEPTS) -> dict[str, Stated]:
    """Metric to what each filing states of it: scaled to units, sums of parts included."""
    found: dict[str, Stated] = {metric: {} for metric in concepts}
    for filing, metric, choice in chosen(reports, concepts):
        weak = choice.tag in concepts[metric].neighbours
        for period, value in choice.said.items():
            found[metric][period, filing.accession] = FiledFigure(
                filing.filed, filing.filed, filing.accession, choice.order, weak, value, choice.tag
            )
    found = in_units(found, concepts)
    return {
        metric: found[metric] | computed(metric, found, concept) if concept.terms else found[metric]
        for metric, concept in concepts.items()
        if not concept.helper
    }


def in_units(filings: Mapping[str, Stated], concepts: Mapping[str, Concept]) -> dict[str, Stated]:
    """What filings state of each metric, without what one of them tags in thousands or millions as if they were units.

    - A figure is amiss that an earlier filing gives as a thousand or a million times as great.
    - Net income is earnings per share x diluted shares: where it is greater by such a factor in a filing, its diluted
      shares are amiss, where it is smaller its dollars.
    - Diluted shares are amiss that would earn more than 750 dollars each, and any number of shares that is some
      thousand or million times smaller than it used to be - unless the filing's earnings per share agree with it.
    - Where one number of shares is amiss, so are all that its filing gives under the same tag.
    """
    times = _times_of_product(filings)
    in_scale: dict[str, Stated] = {}
    for metric, figures in filings.items():
        wrong = set(_shrunk(figures))
        unit = concepts[metric].unit
        for key in figures:
            off = times.get(key[1], 1.0)
            if any(_about(off, scale, 0.2) for scale in (1e3, 1e6, 1e-3, 1e-6)) and (
                metric == "diluted_shares" if off > 1 else unit == "USD"
            ):
                wrong.add(key)
        if unit == "shares":
            agreed = set[str]()
            if metric == "diluted_shares":
                agreed = {accession for accession, off in times.items() if _about(off, 1.0, 0.2)}
                earned = filings.get("net_income", {})
                wrong |= {
                    key
                    for key, figure in figures.items()
                    if key in earned and abs(earned[key].value) > _DEAREST * figure.value and key[1] not in agreed
                }
            wrong |= _of_scaled_tags(figures, wrong, agreed)
        in_scale[metric] = {key: figure for key, figure in figures.items() if key not in wrong}
    return in_scale


def _about(value: float, scale: float, within: float) -> bool:
    return abs(value / scale - 1) < within


def _times_of_product(filings: Mapping[str, Stated]) -> dict[str, float]:
    """Accession to net income over earnings per share x diluted shares: the median of its periods."""
    income, per_share, shares = (filings.get(name, {}) for name in ("net_income", "eps_diluted", "diluted_shares"))
    factors: dict[str, list[float]] = defaultdict(list)
    for key, earned in per_share.items():
        if key in income and key in shares and abs(earned.value) >= _LEAST_EPS:
            factors[key[1]].append(abs(income[key].value / (earned.value * shares[key].value)))
    return {accession: median(seen) for accession, seen in factors.items()}


def _shrunk(figures: Stated) -> Iterator[Key]:
    """Figures that are a thousandth or a millionth of what an earlier filing gives for the period."""
    by_period: dict[Period, list[FiledFigure]] = defaultdict(list)
    for (period, _), figure in figures.items():
        by_period[period].append(figure)
    for key, figure in figures.items():
        earlier = [other.value for other in by_period[key[0]] if other.filed < figure.filed]
        if figure.value != 0 and any(
            _about(value / figure.value, scale, 0.005) for value in earlier for scale in (1e3, 1e6)
        ):
            yield key


def _of_scaled_tags(shares: Stated, wrong: set[Key], agreed: set[str]) -> set[Key]:
    """Numbers of shares under tags that are out of scale in their filing, judged by the filings of the days before.

    shares : numbers of shares of one metric.
    wrong : those known to be amiss; agreed : filings whose earnings per share agree with their shares.
    """
    groups: dict[tuple[date, str, int], list[Key]] = defaultdict(list)
    for key, figure in shares.items():
        groups[figure.filed, figure.accession, figure.rank].append(key)
    found: set[Key] = set()
    usual: list[tuple[date, float]] = []
    for (filed, accession, _), keys in sorted(groups.items()):
        counts = [shares[key].value for key in keys]
        before = [count for day, count in usual if day < filed][-_LAST_FILINGS:]
        drop = median(before) / min(counts) if before else 1.0
        fewer = (300 <= drop <= 3e3 or 3e5 <= drop <= 3e6) and accession not in agreed
        if fewer or not wrong.isdisjoint(keys):
            found |= set(keys)
        else:
            usual.append((filed, median(counts)))
    return found


def computed(metric: str, filings: Mapping[str, Stated], concept: Concept) -> Stated:
    """What filings that do not state a metric state the parts of."""
    needed = [filings[term] for term in concept.terms if term not in concept.optional]
    found: Stated = {}
    for key, first in needed[0].items():
        if key in filings[metric] or not all(key in others for others in needed):
            continue
        wide = any(others[key].weak for others in needed)
        parts = [
            (sign, filings[term][key])
            for term, sign in concept.terms.items()
            if key in filings[term] and not (wide and term in concept.inside)
        ]
        value = summed(sign * part.value for sign, part in parts)
        if value >= 0 or metric not in NOT_NEGATIVE:
            tag = "".join(f"{'+' if sign > 0 else '-'}{part.tag}" for sign, part in parts)
            found[key] = FiledFigure(first.filed, first.filed, first.accession, COMPUTED, True, value, tag)
    return found
