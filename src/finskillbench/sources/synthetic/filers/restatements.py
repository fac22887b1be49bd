"""What later filings change in the statements of a filer: corrections, reclassifications, spin-offs and splits."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from finskillbench.sources.synthetic.calendar import business_day, session_ordinals, sessions
from finskillbench.sources.synthetic.filers.figures import GEOGRAPHY, PRODUCT, Figures, Whole
from finskillbench.sources.synthetic.filers.filer import Quirks, Vintage
from finskillbench.sources.synthetic.rounding import on_grid


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
        years = figures.fiscal
        money = figures.money

        def amounts(rows: NDArray[np.int_], parts: Mapping[Any, NDArray[Any]]) -> dict[str, Whole]:
            out = {name: np.zeros(len(years), dtype=np.int64) for name in parts}
            for name, values in parts.items():
                out[name][rows] = values
            return out

        if quirks.overstated is not None:
            rows = np.flatnonzero(years == quirks.overstated)[3:]
            extra = _thousands(money["revenue"][rows] * on_grid(rng.uniform(0.05, 0.11), 4))
            cost = _thousands(extra * 0.4)
            tax = _thousands((extra - cost) * 0.21)
            net, owed = extra - cost - tax, cost + tax
            day = business_day(days[int(rows[0])] + timedelta(days=int(rng.integers(20, 28))))
            income = {"cost_of_revenue": cost, "income_tax": tax, "net_income": net}
            income |= dict.fromkeys(("gross_profit", "operating_income"), extra - cost)
            sales = dict.fromkeys(("revenue", f"{PRODUCT}:0", f"{GEOGRAPHY}:0"), extra)
            balance = dict.fromkeys(("total_assets", "current_assets", "receivables"), extra)
            balance |= dict.fromkeys(("total_liabilities", "current_liabilities"), owed)
            self._change(day, amounts(rows, income | sales | balance | {"stockholders_equity": net}))
            self._amend("10-K/A", int(rows[0]), day, range(int(rows[0]) - 3, int(rows[0]) + 1))
        if quirks.impaired is not None:
            rows = np.flatnonzero(years == quirks.impaired)[1:2]
            charge = _thousands(money["net_income"][rows] * on_grid(rng.uniform(1.6, 2.4), 4))
            tax = _thousands(charge * 0.21)
            day = business_day(days[int(rows[0])] + timedelta(days=int(rng.integers(20, 40))))
            change = dict.fromkeys(("operating_income", "total_assets"), -charge)
            change |= dict.fromkeys(("income_tax", "total_liabilities"), -tax)
            change |= dict.fromkeys(("net_income", "stockholders_equity"), tax - charge)
            self._change(day, amounts(rows, change))
            self._amend("10-Q/A", int(rows[0]), day, ())
        if quirks.reclassified is not None:
            rows = np.flatnonzero(years <= quirks.reclassified)
            moved = _thousands(money["sga"] * 0.12)
            recent = np.flatnonzero((years == quirks.reclassified) | (years == quirks.reclassified - 1))
            for quarters, since in ((recent, days[int(rows[-1])]), (np.setdiff1d(rows, recent), None)):
                part = moved[quarters]
                change = {"cost_of_revenue": -part, "gross_profit": part, "sga": part}
                self._change(since, amounts(quarters, change))
            self.restated["10-K", int(rows[-1])] = tuple(recent.tolist())
        if quirks.spun_off is not None:
            last = int(np.flatnonzero(years == quirks.spun_off)[0]) - 1  # the last quarter with the business
            wave = np.round(1 + 0.1 * np.sin(np.arange(len(years)) / 3), 6)
            sold = _thousands(money["revenue"] * 0.18 * wave)
            day = sessions()[int(np.searchsorted(session_ordinals(), days[last + 1].toordinal())) - 1]
            rows = np.arange(last + 1)
            for quarters, since in ((rows[-8:], day), (rows[:-8], None)):
                revenue = sold[quarters]
                cost, selling = _thousands(revenue * 0.6), _thousands(revenue * 0.15)
                profit = revenue - cost - selling
                income = {"cost_of_revenue": cost, "gross_profit": revenue - cost, "sga": selling}
                income |= {"operating_income": profit, "income_tax": _thousands(profit * 0.21)}
                sales = dict.fromkeys(("revenue", f"{PRODUCT}:{products - 1}", f"{GEOGRAPHY}:0"), revenue)
                self._change(since, amounts(quarters, income | sales))
            self._amend("10-K/A", last, day, rows[-8:].tolist())
        if split is not None and (after := [i for i, end in enumerate(ends) if end >= split[0]]):
            # A split shows from the first report whose period ends after it; the 10-K repeats two years' quarters.
            self.split_since = days[after[0]]
            opening = after[0] - after[0] % 4
            key = ("10-K", opening + 3)
            repeated = set(range(max(0, opening - 4), min(opening + 4, len(ends))))
            self.restated[key] = tuple(sorted(repeated.union(self.restated.get(key, ()))))

    def _change(self, since: date | None, before: dict[str, Whole]) -> None:
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


def _thousands(amounts: NDArray[Any]) -> Whole:
    return np.rint(amounts / 1000).astype(np.int64) * 1000
