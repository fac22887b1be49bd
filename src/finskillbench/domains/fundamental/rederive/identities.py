"""Accounting identities of statements, restatements between filings, and a `FigureSource` on the panels' figures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from statistics import median
from typing import NamedTuple, Protocol, Self

from finskillbench.domains.fundamental.rederive import definitions
from finskillbench.domains.fundamental.rederive.answers import Figures
from finskillbench.engines.accounting.periods import Duration
from finskillbench.engines.accounting.statements import CompanyFacts, Statement
from finskillbench.sums import exact_sum


class FiledFigure(Protocol):
    @property
    def value(self) -> float: ...
    @property
    def accession(self) -> str: ...


Restated = Mapping[str, set[tuple[str, date]]]
"""Accession -> kinds and last days of the periods for which the filing changes an earlier figure."""


def restatements_of(versions: Iterable[tuple[date | None, date, Sequence[FiledFigure]]]) -> Restated:
    """Return the restatements of one metric from its versions by period, in order of filing."""
    found: dict[str, set[tuple[str, date]]] = defaultdict(set)
    for start, end, figures in versions:
        for before, after in pairwise(figures):
            if differs_beyond_rounding(after.value, before.value):
                found[after.accession].add((definitions.kind_of(start, end), end))
    return found


def restates_prior_year(restated: Restated, accession: str, start: date | None, end: date) -> bool:
    """Return True if a filing restates the same period of the year before."""
    least, most, _ = definitions.YEAR_APART
    kind = definitions.kind_of(start, end)
    return any(kind == other and least <= (end - before).days <= most for other, before in restated.get(accession, ()))


def differs_beyond_rounding(value: float, before: float) -> bool:
    """Return True if figures differ by more than rounding: 0.05 %, or a unit of the last place up to 1 %."""
    return abs(value - before) > max(1.0, 0.0005 * abs(before), min(rounding_unit(value), 0.01 * abs(before)))


def _slack(*figures: float) -> float:
    """Return the tolerance of a sum of rounded figures: 2.5 units of the last place common to all."""
    return 2.5 * min(map(rounding_unit, figures))


def rounding_unit(value: float) -> float:
    """Return the unit a figure is rounded to: a million, a hundred thousand, a thousand or one."""
    return next((unit for unit in (1e6, 1e5, 1e3) if value % unit == 0), 1.0)


class Fault(NamedTuple):
    identity: str
    message: str


NOT_NEGATIVE = frozenset(
    {*("cost_of_revenue", "sga", "rnd", "depreciation_amortization", "interest_expense", "capex"), "operating_expenses"}
)
IDENTITIES = (
    *("gross_profit", "operating_income", "balance_sheet", "cash_flow", "quarters", "sign", "pattern"),
    *("filed", "witness", "null"),
)
"""Revenue less cost is gross profit; that less operating expenses operating income; assets are liabilities and equity;
the sections of the cash flow statement are the change in cash; quarters are what the year to date leaves; no expense is
negative and no margin above 1; nothing is ten times the quarters before; every figure is filed, no other fact refutes
it, and no null is on file.
"""
_BALANCE = 0.01
"""Share of total assets by which liabilities and equity may differ from them: rounding, other dates."""
_CASH = 0.1
"""Share of the largest section by which cash flows may differ from the change in cash: cash held for sale."""
_OTHER_ITEMS = 0.02
"""Share of revenue for operating items outside the expenses filed."""
_TIMES, _LEAST = 10.0, 4
"""Multiple of the median of preceding quarters that breaks the pattern, and the minimum number of these."""
_MOVED = 2.0
"""Multiple in the same direction by which another line counts as changed too."""
_SCALED = 100.0
"""Multiple that indicates a wrong scale of a whole filing; acquisitions are smaller."""
PATTERN = frozenset({"revenue", "cost_of_revenue", "depreciation_amortization", "sga"})


def faults(source: definitions.FigureSource, periods: Iterable[tuple[date, definitions.Kind]]) -> Iterator[Fault]:
    """Yield the identities broken by the known statements of some periods; patterns of the first period only."""
    for place, (end, kind) in enumerate(periods):
        figures = source.figures(end, kind)
        for fault in broken_identities(figures):
            yield fault._replace(message=f"{kind} to {end}: {fault.message}")
        if place or kind != "quarterly":
            continue
        times = {
            metric: multiple_of_median(value, source.quarters_before(metric, end))
            for metric in sorted(PATTERN)
            if (value := figures.get(metric)) is not None
        }
        for metric, one in times.items():
            # An acquisition or sale changes the other lines as well.
            other_times = [other for name, other in times.items() if name != metric and other is not None]
            moved = [other for other in other_times if (other > _MOVED if (one or 1.0) > 1 else other < 1 / _MOVED)]
            alone = 2 * len(moved) < max(1, len(other_times))
            if one is not None and max(one, 1 / one) > (_TIMES if alone else _SCALED):
                message = f"{kind} to {end}: {metric} {figures[metric]:.12g} is out of its pattern"
                yield Fault("pattern", message)


def broken_identities(figures: Figures) -> Iterator[Fault]:
    """Yield the identities broken by the figures of one period."""
    known = {name: value for name, value in figures.items() if value is not None}
    yield from _income(known)
    yield from _sheet(known)
    yield from _cash(known)
    for name in sorted(known.keys() & NOT_NEGATIVE):
        if known[name] < 0:
            yield Fault("sign", f"{name} is {known[name]:.12g}")
    revenue, gross = known.get("revenue"), known.get("gross_profit")
    if revenue is not None and gross is not None and gross > revenue + _slack(revenue):
        yield Fault("sign", f"gross profit {gross:.12g} exceeds revenue {revenue:.12g}")


def _income(known: Mapping[str, float]) -> Iterator[Fault]:
    revenue, cost, gross = (known.get(name) for name in ("revenue", "cost_of_revenue", "gross_profit"))
    if (
        revenue is not None
        and cost is not None
        and gross is not None
        and abs(revenue - cost - gross) > _slack(revenue, cost, gross)
    ):
        yield Fault("gross_profit", f"{revenue:.12g} - {cost:.12g} is not {gross:.12g}")
    spent, income = known.get("operating_expenses"), known.get("operating_income")
    if spent is None or income is None or revenue is None:
        return
    left = [whole - spent - income for whole in (revenue, gross) if whole is not None]
    if cost is not None:
        left.append(revenue - cost - spent - income)
    if min(map(abs, left)) > _OTHER_ITEMS * abs(revenue):
        yield Fault("operating_income", f"revenue {revenue:.12g}, expenses {spent:.12g} do not leave {income:.12g}")


def _sheet(known: Mapping[str, float]) -> Iterator[Fault]:
    total, owed, equity = (known.get(name) for name in ("total_assets", "total_liabilities", "stockholders_equity"))
    if total is None:
        return
    for part in ("current_assets", "cash", "inventory", "ppe_net", "receivables"):
        if part in known and known[part] > total * (1 + _BALANCE):
            yield Fault("balance_sheet", f"{part} {known[part]:.12g} exceeds total assets {total:.12g}")
    if owed is not None and "current_liabilities" in known and known["current_liabilities"] > owed + _BALANCE * total:
        yield Fault("balance_sheet", "current liabilities exceed total liabilities")
    if owed is None or equity is None:
        return
    left = total - owed - equity
    gap = min((left, left - known.get("minority_interest", 0.0)), key=abs)
    turned = min((left + 2.0 * equity, gap + 2.0 * equity), key=abs)
    mirrored = equity < 0 and abs(turned) <= _BALANCE * total
    if gap < -_BALANCE * total or mirrored:  # `witness` checks items between liabilities and equity
        yield Fault("balance_sheet", f"{total:.12g} - {owed:.12g} - {equity:.12g} leaves {gap:.12g}")


def _cash(known: Mapping[str, float]) -> Iterator[Fault]:
    parts = [known.get(f"{name}_cash_flow") for name in ("operating", "investing", "financing")]
    change = known.get("cash_change")
    if change is None or None in parts:
        return
    sections = [part for part in parts if part is not None]
    rates = known.get("exchange_rate_effect", 0.0)
    gap = min((exact_sum(sections) - change, exact_sum(sections) + rates - change), key=abs)
    if abs(gap) > max(4.0 * _slack(max(map(abs, sections))), _CASH * max(map(abs, sections))):
        yield Fault("cash_flow", f"the sections miss the change in cash by {gap:.12g}")


def multiple_of_median(value: float, before: Iterable[float]) -> float | None:
    """Return a figure as a multiple of the median of preceding quarters; None with too few of them."""
    sizes = [abs(other) for other in before if other]
    return abs(value) / median(sizes) if len(sizes) >= _LEAST and value else None


def contradicts_remainder(quarter: float, left: float) -> bool:
    """Return True if a quarter differs from the remainder of the year to date."""
    return abs(quarter - left) > max(2.0 * _slack(quarter, left), 0.005 * abs(quarter))


@dataclass(frozen=True, slots=True)
class LedgerSource:
    """Figures of one company public on one day, for the periods of a label; a `FigureSource`.

    lately : metrics of `PATTERN` -> quarters of the year before.
    """

    statements: Mapping[tuple[str, date], Statement]
    ends: tuple[date, ...]
    lately: Mapping[str, list[float]]

    @classmethod
    def of(cls, ledger: CompanyFacts, end: date, other_ends: Iterable[date], years: Iterable[date] = ()) -> Self:
        least, most = definitions.LATELY
        ends = ledger.ends(Duration.QUARTERLY)
        lately: dict[str, list[float]] = {}
        for day in (day for day in ends if least <= (end - day).days <= most):
            rows = ledger.rows[Duration.QUARTERLY, day]
            for metric in PATTERN & rows.keys():
                lately.setdefault(metric, []).append(float(rows[metric]["value"]))
        wanted = [
            *((Duration.QUARTERLY, day) for day in (end, *other_ends)),
            *((Duration.ANNUAL, day) for day in (end, *years)),
        ]
        statements = {(str(kind), day): ledger.statement(day, kind) for kind, day in wanted}
        return cls(statements, ends, lately)

    def figures(self, end: date, kind: definitions.Kind) -> Figures:
        return self.statements[kind, end].values

    def tags(self, end: date, kind: definitions.Kind) -> Mapping[str, str]:
        return self.statements[kind, end].tags

    def quarters_before(self, metric: str, end: date) -> list[float]:
        """See `FigureSource.quarters_before`; only for the period of the label."""
        del end
        return self.lately.get(metric, [])

    def preceding(self, end: date, distance: tuple[int, int, int]) -> date | None:
        return next(iter(definitions.nearest_first(end, self.ends, distance)), None)
