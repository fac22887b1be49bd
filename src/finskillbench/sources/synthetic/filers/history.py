"""Draw a filer: quirks by position, fiscal calendar, changes of its statements, and all reports up to the snapshot."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from finskillbench.arrays import Integers
from finskillbench.sources.synthetic import calendar
from finskillbench.sources.synthetic.filers.figures import (
    GEOGRAPHY,
    PRODUCT,
    Figures,
    Whole,
    draw_figures,
    move_revenue,
)
from finskillbench.sources.synthetic.filers.filer import (
    INCOME,
    SELECTED,
    Quirks,
    SyntheticFiler,
    SyntheticFiling,
    Vintage,
)
from finskillbench.sources.synthetic.market.companies import SyntheticCompany, Traits
from finskillbench.sources.synthetic.market.fundamentals import Fundamentals


@dataclass(slots=True)
class _Change:
    """Amounts by which statements differed before a filing, over some quarters."""

    since: date
    before: dict[str, Whole]


class _Plan:
    """Changes of statements, their amounts, and the amending filings.

    ends, days : (Q,) last day and filing day of each quarter's report. split : day and ratio of a share split.
    amended : (form, quarter, filed) of amendments. restated : (form, quarter) of a filing -> quarters printed again in
        full.
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
        # The order determines the random draws.
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
        """Reverse revenue of the year's fourth quarter in a 10-K/A."""
        rows = np.flatnonzero(self.figures.fiscal == year)[3:]
        extra = _thousands(self.figures.money["revenue"][rows] * calendar.on_grid(rng.uniform(0.05, 0.11), 4))
        cost = _thousands(extra * 0.4)
        tax = _thousands((extra - cost) * 0.21)
        net, owed = extra - cost - tax, cost + tax
        day = calendar.business_day(self.days[int(rows[0])] + timedelta(days=int(rng.integers(20, 28))))
        income = {"cost_of_revenue": cost, "income_tax": tax, "net_income": net}
        income |= dict.fromkeys(("gross_profit", "operating_income"), extra - cost)
        sales = dict.fromkeys(("revenue", f"{PRODUCT}:0", f"{GEOGRAPHY}:0"), extra)
        balance = dict.fromkeys(("total_assets", "current_assets", "receivables"), extra)
        balance |= dict.fromkeys(("total_liabilities", "current_liabilities"), owed)
        self._change(day, rows, income | sales | balance | {"stockholders_equity": net})
        self._amend("10-K/A", int(rows[0]), day, range(int(rows[0]) - 3, int(rows[0]) + 1))

    def _take_back_charge(self, year: int, rng: np.random.Generator) -> None:
        """Reverse a charge of the year's second quarter in a 10-Q/A."""
        rows = np.flatnonzero(self.figures.fiscal == year)[1:2]
        charge = _thousands(self.figures.money["net_income"][rows] * calendar.on_grid(rng.uniform(1.6, 2.4), 4))
        tax = _thousands(charge * 0.21)
        day = calendar.business_day(self.days[int(rows[0])] + timedelta(days=int(rng.integers(20, 40))))
        change: dict[str, Whole] = dict.fromkeys(("operating_income", "total_assets"), -charge)
        change |= dict.fromkeys(("income_tax", "total_liabilities"), -tax)
        change |= dict.fromkeys(("net_income", "stockholders_equity"), tax - charge)
        self._change(day, rows, change)
        self._amend("10-Q/A", int(rows[0]), day, ())

    def _reclassify(self, year: int) -> None:
        """Move selling expense into cost in the year's 10-K, including the year before."""
        years = self.figures.fiscal
        rows = np.flatnonzero(years <= year)
        moved = _thousands(self.figures.money["sga"] * 0.12)
        recent = np.flatnonzero((years == year) | (years == year - 1))
        for quarters, since in ((recent, self.days[int(rows[-1])]), (np.setdiff1d(rows, recent), None)):
            part = moved[quarters]
            self._change(since, quarters, {"cost_of_revenue": -part, "gross_profit": part, "sga": part})
        self.restated["10-K", int(rows[-1])] = tuple(recent.tolist())

    def _recast(self, year: int) -> None:
        """Remove a discontinued business from the three years of a 10-K, but not from their quarters."""
        years = self.figures.fiscal
        rows = np.flatnonzero(years <= year)
        sold = _thousands(
            self.figures.money["revenue"] * 0.11 * np.round(1 + 0.1 * np.cos(np.arange(len(years)) / 3), 6)
        )
        recent = np.flatnonzero((years <= year) & (years > year - 3))
        for quarters, since in ((recent, self.days[int(rows[-1])]), (np.setdiff1d(rows, recent), None)):
            self._change(since, quarters, _business(sold[quarters], f"{PRODUCT}:0"))

    def _spin_off(self, year: int, product: str) -> None:
        """Remove a business in the year's first quarter; a 10-K/A restates the two years before."""
        last = int(np.flatnonzero(self.figures.fiscal == year)[0]) - 1  # the last quarter with the business
        revenue = self.figures.money["revenue"]
        sold = _thousands(revenue * 0.18 * np.round(1 + 0.1 * np.sin(np.arange(len(revenue)) / 3), 6))
        day = calendar.sessions()[
            int(np.searchsorted(calendar.session_ordinals(), self.days[last + 1].toordinal())) - 1
        ]
        rows = np.arange(last + 1)
        for quarters, since in ((rows[-8:], day), (rows[:-8], None)):
            self._change(since, quarters, _business(sold[quarters], product))
        self._amend("10-K/A", last, day, rows[-8:].tolist())

    def _change(self, since: date | None, rows: Integers, parts: Mapping[str, Whole]) -> None:
        """Set amounts by which quarters differed before a day; None for quarters that are never restated."""
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
        """Return the statements between consecutive changes, oldest first."""
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
    """Return the effect of a leaving business on the income statement; its profit stays in net income."""
    cost, selling = _thousands(sales * 0.6), _thousands(sales * 0.15)
    profit = sales - cost - selling
    income = {"cost_of_revenue": cost, "gross_profit": sales - cost, "sga": selling}
    income |= {"operating_income": profit, "income_tax": _thousands(profit * 0.21)}
    return income | dict.fromkeys(("revenue", product, f"{GEOGRAPHY}:0"), sales)


def _thousands(amounts: NDArray[Any]) -> Whole:
    return np.rint(amounts / 1000).astype(np.int64) * 1000


_LAST_SELECTED_YEAR = 2020


def draw_filer(
    seed: int, index: int, company: SyntheticCompany, traits: Traits, facts: Fundamentals, *, rank: int
) -> SyntheticFiler:
    """Draw the filer of the company at `index`; `rank` is its position in the sector."""
    rng = calendar.generator(seed, calendar.SyntheticStream.FILINGS, index)
    quirks = _quirks(index, rank, company, rng)
    figures = draw_figures(traits, facts, company.security.sector, minority=quirks.minority, rng=rng)
    starts, ends = _calendar(facts, figures, traits.fiscal_month, weeks=quirks.weeks)
    for year, keep in ((quirks.empty, 0.0), (quirks.negative, -0.15)):
        if year is not None:
            figures = move_revenue(figures, int(np.flatnonzero(figures.fiscal == year)[1]), keep=keep)
    products = calendar.PROFILES[company.security.sector].products
    if quirks.spun_off is not None:
        products = (*products, f"{products[0]}Ventures")
        figures.money[f"{PRODUCT}:{len(products) - 1}"] = np.zeros(len(figures.fiscal), dtype=np.int64)
    split = None
    if traits.split is not None and traits.split[0] < len(calendar.sessions()):
        split = (calendar.sessions()[traits.split[0]], traits.split[1])
    days = _filing_days(traits, figures, ends, late=quirks.late, rng=rng)
    plan = _Plan(quirks, figures, ends, days, split, len(products), rng)
    vintages = plan.vintages()
    filings = _filings(company, quirks, figures, plan, vintages, rng)
    return SyntheticFiler(
        company=company,
        quirks=quirks,
        starts=starts,
        ends=ends,
        fiscal=tuple(figures.fiscal.tolist()),
        figures=figures,
        vintages=vintages,
        filings=filings,
        products=products,
        split=split,
    )


def _quirks(index: int, rank: int, company: SyntheticCompany, rng: np.random.Generator) -> Quirks:
    """Assign quirks by position, so that thirty companies have them all, with random years."""
    sector = company.security.sector
    financial = sector == "Financial Services"
    bank = company.security.sub_sector == "Regional Banks"
    years = rng.integers(0, 4, size=10).tolist()
    place = index % 15
    plain = not financial
    unreported: set[str] = set()
    if financial:
        unreported |= {"cost_of_revenue", "gross_profit", "current_assets", "current_liabilities", "inventory"}
        unreported |= {"operating_income", "sga"} if bank else set()
    else:
        # Untagged, but derivable by subtraction.
        unreported |= {"gross_profit"} if index % 6 == 1 else set()
        unreported |= {"cost_of_revenue"} if index % 6 == 4 else set()
    if index % 4 == 2:
        unreported.add("total_liabilities")
    single = place == 12
    axis = "us-gaap:StatementBusinessSegmentsAxis" if index % 6 == 2 else "srt:ProductOrServiceAxis"
    spun_off = 2019 + years[3] if plain and place == 9 else None
    # Excluded where other filings restate years: each change should have one cause.
    recast = (2017 + years[8], 2022 + years[9] // 2) if index % 10 not in (1, 6, 8) and spun_off is None else ()
    two_tags: dict[str, range] = {}
    if plain and place == 13:
        two_tags["revenue"] = range(2019, 2024)
    if place in (1, 6, 8):
        two_tags["depreciation_amortization"] = range(2018, 2023)
    return Quirks(
        weeks=plain and index % 8 == 3,
        late=index % 15 == 14,
        overstated=2017 + years[0] if index % 10 == 1 else None,
        impaired=2018 + years[1] if index % 10 == 6 else None,
        reclassified=2017 + years[2] if plain and index % 10 == 8 else None,
        recast=recast if index % 3 == 0 else recast[index % 2 : index % 2 + 1],
        redefined=2019 + years[7] if place == 4 else None,
        of_two=two_tags,
        parted=sector.startswith("Consumer") and rank % 3 == 0,
        expensed=index % 4 == 3,
        spun_off=spun_off,
        empty=2018 + years[4] if plain and place == 2 else None,
        negative=2018 + years[5] if financial and rank % 4 == 1 else None,
        minority=index % 5 == 0,
        proxy=index % 6 == 3,
        selected=index % 2 == 0,
        axis=None if single else axis,
        geography=not single and index % 7 != 4,
        renamed=2020 + years[6] if not single and place == 5 else None,
        subtotal=place == 7,
        crossed=index % 4 == 1,
        unreported=frozenset(unreported),
    )


def _calendar(
    facts: Fundamentals, figures: Figures, month: int, *, weeks: bool
) -> tuple[tuple[date, ...], tuple[date, ...]]:
    """Return first and last days of calendar quarters, or of 13-week ones with some fourth quarters of 14."""
    nominal = facts.quarter_ends[figures.first :]
    opening = calendar.month_end(int(figures.fiscal[0]) - 1, month)
    if not weeks:
        ends = nominal
    else:
        places = [figures.fiscal.tolist().index(year) for year in figures.fiscal.tolist()]
        ends = tuple(
            _saturday(calendar.month_end(int(year), month))
            if i - place == 3
            else _saturday(calendar.month_end(int(year) - 1, month)) + timedelta(weeks=13 * (i - place + 1))
            for i, (year, place) in enumerate(zip(figures.fiscal.tolist(), places, strict=True))
        )
        opening = _saturday(opening)
    return tuple(end + timedelta(days=1) for end in (opening, *ends[:-1])), ends


def _saturday(day: date) -> date:
    ahead = (5 - day.weekday()) % 7
    return day + timedelta(days=ahead if ahead <= 3 else ahead - 7)


def _filing_days(
    traits: Traits, figures: Figures, ends: tuple[date, ...], *, late: bool, rng: np.random.Generator
) -> tuple[date, ...]:
    """Draw the business day of each report, never before earnings are announced."""
    announced = traits.announced[figures.first :]
    out: list[date] = []
    for i, end in enumerate(ends):
        annual = i % 4 == 3  # figures begin with a fiscal year
        low, high = ((75, 110) if annual else (44, 74)) if late else ((44, 60) if annual else (28, 41))
        day = end + timedelta(days=int(rng.integers(low, high)))
        if 0 <= announced[i] < len(calendar.sessions()):
            day = max(day, calendar.sessions()[int(announced[i])])
        out.append(calendar.business_day(day))
    return tuple(out)


def _filings(
    company: SyntheticCompany,
    quirks: Quirks,
    figures: Figures,
    plan: _Plan,
    vintages: tuple[Vintage, ...],
    rng: np.random.Generator,
) -> tuple[SyntheticFiling, ...]:
    reports = [("10-K" if i % 4 == 3 else "10-Q", i, day) for i, day in enumerate(plan.days)]
    # An amendment precedes an original of the same day; originals are in the order of their periods.
    reports = sorted(reports + plan.amended, key=lambda report: (report[2], not report[0].endswith("/A"), report[1]))
    since = [vintage.since for vintage in vintages]
    out: list[SyntheticFiling] = []
    numbers: dict[int, int] = {}
    fiscal = figures.fiscal.tolist()
    for form, quarter, day in reports:
        minutes, seconds, step = int(rng.integers(0, 90)), int(rng.integers(0, 60)), int(rng.integers(3, 12))
        if day > calendar.LAST_SESSION:
            continue
        numbers[day.year] = numbers.get(day.year, 0) + step
        place, year = quarter % 4, fiscal[quarter]
        opening = quarter - place
        quarterly: tuple[int, ...] = plan.restated.get((form, quarter), ())
        metrics = tuple(metric for metric in INCOME if metric != "diluted_shares")
        if place == 3:
            flows = [(opening - 4 * back, quarter - 4 * back) for back in range(3) if opening >= 4 * back]
            cash, balances = list(flows), [q for q in (quarter, quarter - 4) if q >= 0]
            if not quarterly and quirks.selected and year <= _LAST_SELECTED_YEAR:
                # Restated quarters are printed with all lines, so that none mixes two bases.
                quarterly = tuple(range(opening, quarter + 1))
                metrics = metrics if year in quirks.recast else SELECTED
        else:
            flows = [(quarter, quarter)] + ([(opening, quarter)] if place else [])
            cash = [(opening, quarter)]
            if quarter >= 4:
                flows += [(first - 4, last - 4) for first, last in flows]
                cash += [(opening - 4, quarter - 4)]
            balances = [q for q in (quarter, opening - 1) if q >= 0]
        out.append(
            SyntheticFiling(
                form=form,
                accession=f"{company.security.cik}-{day.year % 100:02d}-{numbers[day.year]:06d}",
                filed=day,
                accepted=f"{day.isoformat()}T{16 + minutes // 60:02d}:{minutes % 60:02d}:{seconds:02d}.000Z",
                quarter=quarter,
                fiscal_year=year,
                fiscal_period="FY" if place == 3 else f"Q{place + 1}",
                vintage=bisect_right(since, day) - 1,
                flows=tuple(flows),
                cash=tuple(cash),
                balances=tuple(balances),
                quarterly=quarterly,
                quarterly_metrics=metrics if quarterly else (),
            )
        )
    return tuple(out)
