"""Which element states a metric in a filing, found by adding the statement up, in plain Python."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from finskillbench.domains.fundamental.second.basis import slack
from finskillbench.domains.fundamental.second.concepts import (
    ALL_COSTS,
    ALL_WORN,
    AMORTISED,
    BANK_REVENUE,
    BEFORE_TAX,
    CASH,
    CONCEPTS,
    EXPENSES,
    GOODS_AND_SERVICES,
    GROSS,
    GROSS_OF_TAX,
    NOT_NEGATIVE,
    ONE_LINE,
    OPERATING,
    TOTAL_ASSETS,
    WORN,
    Concept,
)
from finskillbench.domains.fundamental.second.definitions import kind_of

Period = tuple[date | None, date]
"""First and last day; no first day for an instant."""
Said = dict[Period, float]
_FORMS = frozenset({"10-Q", "10-K", "10-QT", "10-KT", "20-F", "40-F"})
_WORN_METRIC = "depreciation_amortization"


@dataclass(slots=True)
class Filing:
    """What one periodic report says: element and unit to its figures by period."""

    accession: str
    filed: date
    said: dict[tuple[str, str], Said] = field(default_factory=dict[tuple[str, str], Said])

    def of(self, tag: str, unit: str = "USD") -> Said:
        """The figures of an element."""
        return self.said.get((tag, unit), {})


def filings(rows: Iterable[Mapping[str, Any]]) -> list[Filing]:
    """The periodic reports that rows of company facts come from, amendments included, in order of filing."""
    found: dict[tuple[date, str], Filing] = {}
    for row in rows:
        if row["form"].removesuffix("/A") in _FORMS:
            key = row["filed"], row["accession"]
            filing = found.setdefault(key, Filing(row["accession"], row["filed"]))
            tag = f"{row['taxonomy']}:{row['tag']}"
            filing.said.setdefault((tag, row["unit"]), {}).setdefault((row["start"], row["end"]), row["value"])
    return [found[key] for key in sorted(found)]


@dataclass(frozen=True, slots=True)
class Choice:
    """The element of a metric in a filing with its figures; `order` is its place among the metric's."""

    tag: str
    order: int
    said: Said


def chosen(
    reports: Iterable[Filing], concepts: Mapping[str, Concept] = CONCEPTS
) -> Iterator[tuple[Filing, str, Choice]]:
    """Each filing, metric and its element, in order of filing."""
    lines = _Lines()
    for filing in reports:
        lines.read(filing)
        for metric, concept in concepts.items():
            found = _choose(filing, metric, concept, lines)
            if found is not None:
                yield filing, metric, found


class _Lines:
    """What a company's filings have shown so far of its depreciation and amortisation."""

    def __init__(self) -> None:
        self.elsewhere: set[str] = set()
        self.interim: set[str] = set()
        self.without_amortisation = False
        self._told: dict[Period, list[tuple[date, float]]] = {}

    def read(self, filing: Filing) -> None:
        """Take note of a filing, before its elements are chosen."""
        cash = filing.of(CASH)
        for tag in (*ONE_LINE, WORN, AMORTISED):
            said = filing.of(tag)
            longer = {end for start, end in said if kind_of(start, end) in ("half", "nine_months", "annual")}
            if any(kind_of(*period) in ("half", "nine_months") for period in said):
                self.interim.add(tag)
            if any(kind_of(*p) == "quarterly" and p[1] in longer and p not in cash for p in said):
                self.elsewhere.add(tag)
        amortised = filing.of(AMORTISED)
        for period, value in filing.of(ALL_WORN).items():
            for day, before in self._told.get(period, ()):
                left_out = before - value
                if day < filing.filed and period in amortised and left_out > 0.02 * before:
                    self.without_amortisation |= abs(left_out - amortised[period]) <= slack(value)
            self._told.setdefault(period, []).append((filing.filed, value))


def _choose(filing: Filing, metric: str, concept: Concept, lines: _Lines) -> Choice | None:
    """The element that states a metric, None where none does as a whole."""
    stated: dict[str, Said] = {}
    for tag in concept.tags:
        said = {
            period: value
            for period, value in filing.of(tag, concept.unit).items()
            if (period[0] is None) == concept.instant
            and not (value <= 0 and (concept.unit == "shares" or tag in TOTAL_ASSETS))
            and not (value < 0 and metric in NOT_NEGATIVE)
        }
        if said:
            stated[tag] = said
    if metric in (_WORN_METRIC, "depreciation", "amortization"):
        stated = _whole_lines(filing, metric, stated, lines)
    if not stated:
        return None
    ends = {end for said in stated.values() for _, end in said}
    sheets = [end for tag in TOTAL_ASSETS for _, end in filing.of(tag)]
    day = max(sheets) if sheets and not concept.instant and max(sheets) in ends else max(ends)
    covering = {tag: said for tag, said in stated.items() if any(end == day for _, end in said)}
    best = _total(filing, metric, covering or stated, day)
    if best is None:
        return None
    order = concept.tags.index(best) if best in concept.tags else 0
    return Choice(best, order, stated[best])


def _total(filing: Filing, metric: str, stated: Mapping[str, Said], day: date) -> str | None:
    """Of several elements the one that the statement adds up with, else the greatest revenue, else the first."""
    if metric == "revenue":
        costs = [filing.of(tag) for tag in CONCEPTS["cost_of_revenue"].tags]
        tied = [tag for tag, said in stated.items() if _adds_up(filing, said, costs) or _used_up(filing, said)]
    elif metric == "cost_of_revenue":
        revenues = [filing.of(tag) for tag in CONCEPTS["revenue"].tags]
        tied = [tag for tag, said in stated.items() if any(_adds_up(filing, one, [said]) for one in revenues)]
    else:
        return next(iter(stated))
    for pair in GOODS_AND_SERVICES:
        if all(filing.of(tag) for tag in pair):
            stated = {tag: said for tag, said in stated.items() if tag not in pair or tag in tied}
    candidates = tied or list(stated)
    if metric != "revenue" or len(candidates) < 2:
        return next(iter(candidates), None)
    if BANK_REVENUE in candidates:
        return BANK_REVENUE
    totals = [tag for tag in candidates if tag != GROSS_OF_TAX] or candidates
    return max(totals, key=lambda tag: _largest(stated[tag], day))


def _largest(said: Said, day: date) -> float:
    """The figure of the longest period that ends on a day."""
    spans = [(end - (start or end), value) for (start, end), value in said.items() if end == day]
    return max(spans)[1] if spans else max(said.values())


def _adds_up(filing: Filing, revenue: Said, costs: Iterable[Said]) -> bool:
    """Whether in some period revenue less costs leaves what the filing states as profit."""
    profits = [filing.of(tag) for tag in GROSS]
    after = [filing.of(tag) for tag in OPERATING]
    expenses, listed = filing.of(EXPENSES), list(costs)
    for period, total in revenue.items():
        near = slack(total)
        for cost in (one[period] for one in listed if period in one):
            if any(abs(total - cost - one[period]) <= near for one in profits if period in one):
                return True
            spent = expenses.get(period)
            if spent is not None and any(
                abs(total - cost - spent - one[period]) <= near for one in after if period in one
            ):
                return True
    return False


def _used_up(filing: Filing, revenue: Said) -> bool:
    """Whether in some period revenue less all costs and expenses is operating income or income before tax."""
    profits = [filing.of(tag) for tag in (*OPERATING, *BEFORE_TAX)]
    return any(
        abs(revenue[period] - spent - one[period]) <= slack(revenue[period])
        for tag in (ALL_COSTS, EXPENSES)
        for period, spent in filing.of(tag).items()
        if period in revenue
        for one in profits
        if period in one
    )


def _whole_lines(filing: Filing, metric: str, stated: Mapping[str, Said], lines: _Lines) -> dict[str, Said]:
    """Of elements of depreciation and amortisation those that are the whole line of the cash flow statement."""
    if metric != _WORN_METRIC:
        return {tag: said for tag, said in stated.items() if tag in lines.interim and tag not in lines.elsewhere}
    whole: dict[str, Said] = {}
    for tag, said in stated.items():
        if tag == ALL_WORN and lines.without_amortisation:
            extra = filing.of(AMORTISED)
            added = {period: value + extra[period] for period, value in said.items() if period in extra}
            if added:
                whole[f"{tag}+{AMORTISED}"] = added
        else:
            whole[tag] = said
    worn = filing.of(WORN)
    exceeded = {
        tag
        for tag, said in whole.items()
        for period, value in said.items()
        if any(other.get(period, value) > value for other in whole.values()) or worn.get(period, 0.0) > 1.001 * value
    }
    return {
        tag: said
        for tag, said in whole.items()
        if tag not in exceeded and not (tag in ONE_LINE and tag in lines.elsewhere)
    }
