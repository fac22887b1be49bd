"""What later filings change in a filer's statements: corrections, reclassifications, businesses that leave, splits."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from finskillbench.arrays import Integers
from finskillbench.sources.synthetic.calendar import business_day, on_grid, session_ordinals, sessions
from finskillbench.sources.synthetic.filers.figures import GEOGRAPHY, PRODUCT, Figures, Whole
from finskillbench.sources.synthetic.filers.filer import Quirks, Vintage


@dataclass(slots=True)
class _Change:
    """Amounts by which statements differed before a filing, over some quarters."""

    since: date
    before: dict[str, Whole]


class Plan:
    """When statements change, by how much, and in which extra filings.

    ends, days : (Q,) last day and filing day of each quarter's report. split : day and ratio of a share split.
    amended : (form, quarter, filed) of the amendments. restated : (form, quarter) of a filing -> the quarters that it
    prints again in full.
    """

    def __init__(
        self,
        quirks: Quirks,
        figures: Figures,
        ends: tuple[date, ...],
        days: tuple[date, ...],
        split: tuple[date, float] | None,
        products: int,
        rng: np.random.Generator,
    ) -> None:
        self.figures, self.days, self.split = figures, days, split
        self.split_since: date | None = None
        self.changes: list[_Change] = []
        self.amended: list[tuple[str, int, date]] = []
        self.restated: dict[tuple[str, int], tuple[int, ...]] = {}
        self.old: dict[str, Whole] = {}  # differences of quarters that are never restated
        # In this order, which is that of the draws.
        if quirks.overstated is not None:
            self._correct_revenue(quirks.overstated, rng)
        if quirks.impaired is not None:
            self._take_back_charge(quirks.impaired, rng)
        if quirks.reclassified is not None:
            self._reclassify(quirks.reclassified)
        for year in quirks.recast:
            self._recast(year)
        if quirks.spun_off is not None:
            self._spin_off(quirks.spun_off, f"{PRODUCT}:{products - 1}")
        if split is not None and (after := [i for i, end in enumerate(ends) if end >= split[0]]):
            # A split shows from the first report whose period ends after it; the 10-K repeats two years' quarters.
            self.split_since = days[after[0]]
            opening = after[0] - after[0] % 4
            key = ("10-K", opening + 3)
            repeated = set(range(max(0, opening - 4), min(opening + 4, len(ends))))
            self.restated[key] = tuple(sorted(repeated.union(self.restated.get(key, ()))))

    def _correct_revenue(self, year: int, rng: np.random.Generator) -> None:
        """A 10-K/A takes back revenue of the year's fourth quarter."""
        rows = np.flatnonzero(self.figures.fiscal == year)[3:]
        extra = _thousands(self.figures.money["revenue"][rows] * on_grid(rng.uniform(0.05, 0.11), 4))
        cost = _thousands(extra * 0.4)
        tax = _thousands((extra - cost) * 0.21)
        net, owed = extra - cost - tax, cost + tax
        day = business_day(self.days[int(rows[0])] + timedelta(days=int(rng.integers(20, 28))))
        income = {"cost_of_revenue": cost, "income_tax": tax, "net_income": net}
        income |= dict.fromkeys(("gross_profit", "operating_income"), extra - cost)
        sales = dict.fromkeys(("revenue", f"{PRODUCT}:0", f"{GEOGRAPHY}:0"), extra)
        balance = dict.fromkeys(("total_assets", "current_assets", "receivables"), extra)
        balance |= dict.fromkeys(("total_liabilities", "current_liabilities"), owed)
        self._change(day, rows, income | sales | balance | {"stockholders_equity": net})
        self._amend("10-K/A", int(rows[0]), day, range(int(rows[0]) - 3, int(rows[0]) + 1))

    def _take_back_charge(self, year: int, rng: np.random.Generator) -> None:
        """A 10-Q/A takes back a charge of the year's second quarter."""
        rows = np.flatnonzero(self.figures.fiscal == year)[1:2]
        charge = _thousands(self.figures.money["net_income"][rows] * on_grid(rng.uniform(1.6, 2.4), 4))
        tax = _thousands(charge * 0.21)
        day = business_day(self.days[int(rows[0])] + timedelta(days=int(rng.integers(20, 40))))
        change: dict[str, Whole] = dict.fromkeys(("operating_income", "total_assets"), -charge)
        change |= dict.fromkeys(("income_tax", "total_liabilities"), -tax)
        change |= dict.fromkeys(("net_income", "stockholders_equity"), tax - charge)
        self._change(day, rows, change)
        self._amend("10-Q/A", int(rows[0]), day, ())

    def _reclassify(self, year: int) -> None:
        """The year's 10-K moves selling expense into cost, with the year before."""
        years = self.figures.fiscal
        rows = np.flatnonzero(years <= year)
        moved = _thousands(self.figures.money["sga"] * 0.12)
        recent = np.flatnonzero((years == year) | (years == year - 1))
        for quarters, since in ((recent, self.days[int(rows[-1])]), (np.setdiff1d(rows, recent), None)):
            part = moved[quarters]
            self._change(since, quarters, {"cost_of_revenue": -part, "gross_profit": part, "sga": part})
        self.restated["10-K", int(rows[-1])] = tuple(recent.tolist())

    def _recast(self, year: int) -> None:
        """The year's 10-K takes a discontinued business out of its three years; their quarters are not told anew."""
        years = self.figures.fiscal
        rows = np.flatnonzero(years <= year)
        sold = _thousands(
            self.figures.money["revenue"] * 0.11 * np.round(1 + 0.1 * np.cos(np.arange(len(years)) / 3), 6)
        )
        recent = np.flatnonzero((years <= year) & (years > year - 3))
        for quarters, since in ((recent, self.days[int(rows[-1])]), (np.setdiff1d(rows, recent), None)):
            self._change(since, quarters, _business(sold[quarters], f"{PRODUCT}:0"))

    def _spin_off(self, year: int, product: str) -> None:
        """A business leaves in the year's first quarter; a 10-K/A restates the two years before."""
        last = int(np.flatnonzero(self.figures.fiscal == year)[0]) - 1  # the last quarter with the business
        revenue = self.figures.money["revenue"]
        sold = _thousands(revenue * 0.18 * np.round(1 + 0.1 * np.sin(np.arange(len(revenue)) / 3), 6))
        day = sessions()[int(np.searchsorted(session_ordinals(), self.days[last + 1].toordinal())) - 1]
        rows = np.arange(last + 1)
        for quarters, since in ((rows[-8:], day), (rows[:-8], None)):
            self._change(since, quarters, _business(sold[quarters], product))
        self._amend("10-K/A", last, day, rows[-8:].tolist())

    def _change(self, since: date | None, rows: Integers, parts: Mapping[str, Whole]) -> None:
        """Amounts by which some quarters differed before a day; None stands for quarters never restated."""
        before = {name: np.zeros(len(self.figures.fiscal), dtype=np.int64) for name in parts}
        for name, values in parts.items():
            before[name][rows] = values
        if since is not None:
            self.changes.append(_Change(since, before))
            return
        for name, values in before.items():
            self.old[name] = self.old.get(name, np.zeros_like(values)) + values

    def _amend(self, form: str, quarter: int, day: date, reprinted: Iterable[int]) -> None:
        self.amended.append((form, quarter, day))
        self.restated[form, quarter] = tuple(reprinted)

    def vintages(self) -> tuple[Vintage, ...]:
        """The statements of each stretch between two changes, oldest first."""
        figures = self.figures
        days = {change.since for change in self.changes} | {day for day in (self.split_since,) if day is not None}
        latest = {name: values + self.old.get(name, 0) for name, values in figures.money.items()}
        out: list[Vintage] = []
        for since in (date.min, *sorted(days)):
            money = dict(latest)
            for change in self.changes:
                if change.since > since:
                    for name, values in change.before.items():
                        money[name] = money[name] + values
            ratio = 1.0
            if self.split is not None and (self.split_since is None or since < self.split_since):
                ratio = self.split[1]
            out.append(Vintage(since, money, ratio))
        return tuple(out)


def _business(sales: Whole, product: str) -> dict[str, Whole]:
    """What a business that leaves takes out of the income statement; its profit stays in net income."""
    cost, selling = _thousands(sales * 0.6), _thousands(sales * 0.15)
    profit = sales - cost - selling
    income = {"cost_of_revenue": cost, "gross_profit": sales - cost, "sga": selling}
    income |= {"operating_income": profit, "income_tax": _thousands(profit * 0.21)}
    return income | dict.fromkeys(("revenue", product, f"{GEOGRAPHY}:0"), sales)


def _thousands(amounts: NDArray[Any]) -> Whole:
    return np.rint(amounts / 1000).astype(np.int64) * 1000
