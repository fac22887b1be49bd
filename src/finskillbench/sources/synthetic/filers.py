"""The fictional companies as SEC filers: what each filing printed, which later filing changed it, and when.

A filer has *vintages* of its true statements, each in force from the day of the filing that first printed it. A filing
prints the vintage of its day for its own period and its comparatives, as real ones do: a 10-Q its quarter and year to
date with those of the year before and the balance sheets of its date and of the last year-end; a 10-K three years and
two balance sheets. So the figure that was public on a day is known exactly for every period: `Filer.true_value`.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from finskillbench.sources.synthetic.calendar import FIRST_SESSION, LAST_SESSION, session_ordinals, sessions
from finskillbench.sources.synthetic.companies import Traits
from finskillbench.sources.synthetic.figures import (
    GEOGRAPHIES,
    GEOGRAPHY,
    INSTANTS,
    PRODUCT,
    PROFILES,
    Figures,
    Whole,
    draw_figures,
    move_revenue,
)
from finskillbench.sources.synthetic.fundamentals import Fundamentals
from finskillbench.sources.synthetic.identities import Company
from finskillbench.sources.synthetic.randomness import Stream, generator

CASH_FLOWS = ("operating_cash_flow", "capex", "depreciation_amortization")
"""Printed for the year to date only, as in every real cash flow statement."""
PER_SHARE = ("eps_diluted", "diluted_shares")
SELECTED = ("revenue", "gross_profit", "net_income", "eps_diluted")
"""The selected quarterly data of a 10-K, which the SEC asked for until fiscal 2020."""
INCOME = (
    "revenue",
    "cost_of_revenue",
    "gross_profit",
    "operating_income",
    "net_income",
    "sga",
    "rnd",
    "interest_expense",
    "income_tax",
    *PER_SHARE,
)
_LAST_SELECTED_YEAR = 2020


@dataclass(frozen=True, slots=True)
class Quirks:
    """What is unusual about a filer; years are fiscal ones, None where the company has no such thing.

    weeks : 52/53-week years that end on the Saturday nearest the month's end. late : files after the deadlines.
    overstated : a 10-K/A corrects that year's fourth quarter. impaired : a 10-Q/A takes back a second-quarter charge
    that had made it a loss. reclassified : that year's 10-K moves selling expense into cost, with the year before.
    spun_off : a business leaves in the first quarter of that year; a 10-K/A restates the two years before.
    empty, negative : that year's second quarter has no revenue, or less than none. minority : has outside owners.
    proxy : DEF 14A filings repeat net income, rounded. selected : 10-Ks print quarterly data until fiscal 2020.
    axis : where product revenue is tagged, None for a company with one segment. renamed : from that year on the first
    product has another name. subtotal : products are also printed added up. crossed : products are also printed by
    geography. unreported : metrics whose tag the company never uses.
    """

    weeks: bool
    late: bool
    overstated: int | None
    impaired: int | None
    reclassified: int | None
    spun_off: int | None
    empty: int | None
    negative: int | None
    minority: bool
    proxy: bool
    selected: bool
    axis: str | None
    geography: bool
    renamed: int | None
    subtotal: bool
    crossed: bool
    unreported: frozenset[str]


@dataclass(frozen=True, slots=True)
class Filing:
    """One periodic report.

    quarter : index of its period's last quarter. vintage : index of the statements it prints.
    flows, cash : (first, last) quarters of the income and cash flow columns; balances : quarters of the balance sheets.
    quarterly : quarters of the quarterly data, in `quarterly_metrics`.
    """

    form: str
    accession: str
    filed: date
    accepted: str
    quarter: int
    fiscal_year: int
    fiscal_period: str
    vintage: int
    flows: tuple[tuple[int, int], ...]
    cash: tuple[tuple[int, int], ...]
    balances: tuple[int, ...]
    quarterly: tuple[int, ...] = ()
    quarterly_metrics: tuple[str, ...] = ()

    def prints(self, metric: str, first: int, last: int) -> bool:
        """Whether the filing has a column of these quarters for the metric (for an instant `first` equals `last`)."""
        if metric in INSTANTS:
            return last in self.balances
        if metric in CASH_FLOWS:
            return (first, last) in self.cash
        if (first, last) in self.flows:
            return True
        return first == last and last in self.quarterly and metric in self.quarterly_metrics


@dataclass(frozen=True, slots=True)
class Vintage:
    """Statements as they were known from the day of one filing on.

    money : metric -> (Q,) whole dollars. split : ratio of a split that is still to come; shares are counted before it.
    """

    since: date
    money: Mapping[str, Whole]
    split: float


@dataclass(frozen=True, eq=False)
class Filer:
    """One company's filings and what is true of them.

    starts, ends : (Q,) period dates of the quarters; fiscal : their fiscal years. vintages, filings : in the order of
    their days. split : day and ratio of a share split within the history.
    products : readable names of the parts in `product_segment:i`; the last one of a company with a spin-off is `spun`.
    """

    company: Company
    quirks: Quirks
    starts: tuple[date, ...]
    ends: tuple[date, ...]
    fiscal: tuple[int, ...]
    figures: Figures
    vintages: tuple[Vintage, ...]
    filings: tuple[Filing, ...]
    products: tuple[str, ...]
    split: tuple[date, float] | None
    _by_start: dict[date, int] = field(init=False, repr=False, compare=False)
    _by_end: dict[date, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_start", {day: i for i, day in enumerate(self.starts)})
        object.__setattr__(self, "_by_end", {day: i for i, day in enumerate(self.ends)})

    def reports(self, metric: str) -> bool:
        """Whether the company has such a line at all (a tag of it, or one that follows from two others)."""
        if metric in PER_SHARE:
            return True
        derived = metric in ("total_liabilities", "gross_profit", "cost_of_revenue")
        if metric in self.quirks.unreported and not (derived and self.derivable(metric)):
            return False
        return metric in self.vintages[0].money and bool(self.vintages[0].money[metric].any())

    def derivable(self, metric: str) -> bool:
        """Whether an untagged metric follows from tagged ones: liabilities always, gross profit from cost and back."""
        other = {"gross_profit": "cost_of_revenue", "cost_of_revenue": "gross_profit"}.get(metric)
        return other is None or other not in self.quirks.unreported

    def value(self, vintage: int, metric: str, first: int, last: int) -> float:
        """The vintage's value over the quarters `first` to `last`; instants at the end of `last`."""
        statements = self.vintages[vintage]
        if metric == "diluted_shares":
            average = np.round(self.figures.shares[first : last + 1].mean(), -4)
            return float(np.round(average / statements.split, -4))
        if metric == "eps_diluted":
            income = statements.money["net_income"][first : last + 1].sum()
            return float(np.round(income / self.value(vintage, "diluted_shares", first, last), 2))
        values = statements.money[metric]
        return float(values[last] if metric in INSTANTS else values[first : last + 1].sum())

    def outstanding(self, day: date, quarter: int) -> float:
        """Shares on the cover page: the count of the quarter, on the basis of the day."""
        count = float(self.figures.shares[quarter])
        if self.split is not None and day < self.split[0]:
            return float(np.round(count / self.split[1], -4))
        return count

    def true_value(self, metric: str, start: date | None, end: date, as_of: date) -> float | None:
        """What had been published by `as_of` about a metric over a period, or None if nothing had.

        Parameters
        ----------
        metric : a canonical metric. start : the period's first day; None for an instant. end : its last day.
        as_of : filings of that day are known.

        A column that a filing printed counts as printed, the latest filing first. A fourth quarter, and a quarter of
        cash flow, that no filing printed is what the vintage of the latest filing says that printed the year to date
        ending with it; averages and per-share figures are never derived.
        """
        last = self._by_end.get(end)
        first = last if start is None else self._by_start.get(start)
        instant = metric in INSTANTS
        if last is None or first is None or first > last or instant != (start is None) or not self.reports(metric):
            return None
        known = self.filings[: bisect_right(self.filings, as_of, key=lambda filing: filing.filed)]
        for filing in reversed(known):
            if filing.prints(metric, first, last):
                return self.value(filing.vintage, metric, first, last)
        if instant or metric in PER_SHARE or first != last:
            return None
        opening = self.year_start(last)
        for filing in reversed(known):
            if filing.prints(metric, opening, last):
                return self.value(filing.vintage, metric, first, last)
        return None

    def true_segments(self, axis: str, start: date, end: date, as_of: date) -> dict[str, float]:
        """Revenue by readable segment name over a period as published by `as_of`; empty where there is none.

        axis : `product_segment` or `geographic_segment`. A quarter that nobody printed is derived as in `true_value`.
        """
        first, last = self._by_start.get(start), self._by_end.get(end)
        if first is None or last is None or first > last:
            return {}
        known = self.filings[: bisect_right(self.filings, as_of, key=lambda filing: filing.filed)]
        # A later report may have other segments in the year's column than the nine months have: they do not compare.
        own = [filing for filing in known if filing.quarter == last]
        searched = [((first, last), known)] + ([((self.year_start(last), last), own)] if first == last else [])
        for column, filings in searched:
            for filing in reversed(filings):
                if column in self.segment_columns(filing):
                    return {
                        readable(member): float(self.vintages[filing.vintage].money[part][first : last + 1].sum())
                        for part, member in self.members(filing, axis, first, last)
                    }
        return {}

    def year_start(self, quarter: int) -> int:
        """Index of the first quarter of the fiscal year that `quarter` lies in."""
        return self.fiscal.index(self.fiscal[quarter])

    def segment_columns(self, filing: Filing) -> tuple[tuple[int, int], ...]:
        """Periods the notes break revenue down for: all but the year to date of the year before and the oldest year.

        An amended 10-K has the segments of the quarters it restates.
        """
        if filing.form.startswith("10-K"):
            quarters = filing.quarterly if filing.form.endswith("/A") else ()
            return (*filing.flows[:2], *((quarter, quarter) for quarter in quarters))
        return tuple(column for column in filing.flows if column[1] == filing.quarter or column[0] == column[1])

    def members(self, filing: Filing, axis: str, first: int, last: int) -> list[tuple[str, str]]:
        """(part in `money`, member of the axis) for a column of a filing; what was spun off is not printed again."""
        if axis == GEOGRAPHY:
            return [(f"{GEOGRAPHY}:{i}", name) for i, name in enumerate(GEOGRAPHIES)] if self.quirks.geography else []
        if self.quirks.axis is None:
            return []
        prefix = self.company.security.symbol.lower()
        found = []
        for i, name in enumerate(self.products):
            part = f"{PRODUCT}:{i}"
            values = self.vintages[filing.vintage].money[part][first : last + 1]
            if self.quirks.spun_off is not None and i == len(self.products) - 1 and not values.any():
                continue
            renamed = i == 0 and self.quirks.renamed is not None and filing.fiscal_year >= self.quirks.renamed
            found.append((part, f"{prefix}:{name}{'AndServices' if renamed else ''}Member"))
        return found


def readable(member: str) -> str:
    """`abcde:HomeGoodsMember` -> `Home Goods`; `country:US` -> `United States`."""
    name = member.split(":")[1].removesuffix("Member")
    if member.startswith("country:"):
        return {"US": "United States"}[name]
    spaced = "".join(f" {c}" if c.isupper() and i else c for i, c in enumerate(name))
    return spaced.replace(" And ", " and ")


def draw_filer(seed: int, index: int, company: Company, traits: Traits, facts: Fundamentals, *, rank: int) -> Filer:
    """The filer of the company at `index` (in symbol order); `rank` counts the companies of its sector before it."""
    rng = generator(seed, Stream.FILINGS, index)
    quirks = _quirks(index, rank, company, rng)
    figures = draw_figures(traits, facts, company.security.sector, minority=quirks.minority, rng=rng)
    starts, ends = _calendar(facts, figures, traits.fiscal_month, weeks=quirks.weeks)
    for year, keep in ((quirks.empty, 0.0), (quirks.negative, -0.15)):
        if year is not None:
            figures = move_revenue(figures, int(np.flatnonzero(figures.fiscal == year)[1]), keep=keep)
    products = PROFILES[company.security.sector].products
    if quirks.spun_off is not None:
        products = (*products, f"{products[0]}Ventures")
        figures.money[f"{PRODUCT}:{len(products) - 1}"] = np.zeros(len(figures.fiscal), dtype=np.int64)
    split = None
    if traits.split is not None and traits.split[0] < len(sessions()):
        split = (sessions()[traits.split[0]], traits.split[1])
    days = _filing_days(traits, figures, ends, late=quirks.late, rng=rng)
    plan = _Plan(quirks, figures, ends, days, split, len(products), rng)
    vintages = plan.vintages()
    filings = _filings(company, quirks, figures, plan, vintages, rng)
    return Filer(
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


def _quirks(index: int, rank: int, company: Company, rng: np.random.Generator) -> Quirks:
    """Quirks by place in the list, so that thirty companies have them all; years are drawn."""
    sector = company.security.sector
    financial = sector == "Financial Services"
    bank = company.security.sub_sector == "Regional Banks"
    years = rng.integers(0, 4, size=8).tolist()
    place = index % 15
    plain = not financial
    unreported: set[str] = set()
    if financial:
        unreported |= {"cost_of_revenue", "gross_profit", "current_assets", "current_liabilities", "inventory"}
        unreported |= {"operating_income", "sga"} if bank else set()
    else:
        # Untagged, but to be had by subtraction.
        unreported |= {"gross_profit"} if index % 6 == 1 else set()
        unreported |= {"cost_of_revenue"} if index % 6 == 4 else set()
    if index % 4 == 2:
        unreported.add("total_liabilities")
    single = place == 12
    axis = "us-gaap:StatementBusinessSegmentsAxis" if index % 6 == 2 else "srt:ProductOrServiceAxis"
    spun_off = 2019 + years[3] if plain and place == 9 else None
    return Quirks(
        weeks=plain and index % 8 == 3,
        late=index % 15 == 14,
        overstated=2017 + years[0] if index % 10 == 1 else None,
        impaired=2018 + years[1] if index % 10 == 6 else None,
        reclassified=2017 + years[2] if plain and index % 10 == 8 else None,
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
    """First and last days of the quarters: calendar quarters, or 13 weeks each with a 14th in some fourth quarters."""
    nominal = facts.quarter_ends[figures.first :]
    opening = _month_end(int(figures.fiscal[0]) - 1, month)
    if not weeks:
        ends = nominal
    else:
        places = [figures.fiscal.tolist().index(year) for year in figures.fiscal.tolist()]
        ends = tuple(
            _saturday(_month_end(int(year), month))
            if i - place == 3
            else _saturday(_month_end(int(year) - 1, month)) + timedelta(weeks=13 * (i - place + 1))
            for i, (year, place) in enumerate(zip(figures.fiscal.tolist(), places, strict=True))
        )
        opening = _saturday(opening)
    return tuple(end + timedelta(days=1) for end in (opening, *ends[:-1])), ends


def _month_end(year: int, month: int) -> date:
    return date(year + month // 12, month % 12 + 1, 1) - timedelta(days=1)


def _saturday(day: date) -> date:
    """The Saturday nearest a day."""
    ahead = (5 - day.weekday()) % 7
    return day + timedelta(days=ahead if ahead <= 3 else ahead - 7)


def _filing_days(
    traits: Traits, figures: Figures, ends: tuple[date, ...], *, late: bool, rng: np.random.Generator
) -> tuple[date, ...]:
    """The day each period's report is filed: never before earnings are announced, always a business day."""
    announced = traits.announced[figures.first :]
    out = []
    for i, end in enumerate(ends):
        annual = i % 4 == 3  # the figures begin with a fiscal year
        low, high = ((75, 110) if annual else (44, 74)) if late else ((44, 60) if annual else (28, 41))
        day = end + timedelta(days=int(rng.integers(low, high)))
        if 0 <= announced[i] < len(sessions()):
            day = max(day, sessions()[announced[i]])
        out.append(business_day(day))
    return tuple(out)


def business_day(day: date) -> date:
    """The day itself or the next session; before the first session, the next weekday."""
    if day < FIRST_SESSION:
        return day + timedelta(days=max(0, 7 - day.weekday()) if day.weekday() > 4 else 0)
    if day > LAST_SESSION:
        return day
    return sessions()[int(np.searchsorted(session_ordinals(), day.toordinal()))]


@dataclass(slots=True)
class _Change:
    """Amounts by which statements differed before a filing, over some quarters."""

    since: date
    before: dict[str, Whole]


class _Plan:
    """When statements change, by how much, and in which extra filings."""

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
        self.amended: list[tuple[str, int, date]] = []  # form, quarter, filed
        self.restated: dict[tuple[str, int], tuple[int, ...]] = {}  # (form, quarter) -> quarters reprinted in full
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
            extra = _thousands(money["revenue"][rows] * float(np.round(rng.uniform(0.05, 0.11), 4)))
            cost = _thousands(extra * 0.4)
            tax = _thousands((extra - cost) * 0.21)
            net, owed = extra - cost - tax, cost + tax
            day = business_day(days[rows[0]] + timedelta(days=int(rng.integers(20, 28))))
            income = {"cost_of_revenue": cost, "income_tax": tax, "net_income": net}
            income |= dict.fromkeys(("gross_profit", "operating_income"), extra - cost)
            sales = dict.fromkeys(("revenue", f"{PRODUCT}:0", f"{GEOGRAPHY}:0"), extra)
            balance = dict.fromkeys(("total_assets", "current_assets", "receivables"), extra)
            balance |= dict.fromkeys(("total_liabilities", "current_liabilities"), owed)
            self._change(day, amounts(rows, income | sales | balance | {"stockholders_equity": net}))
            self._amend("10-K/A", int(rows[0]), day, range(int(rows[0]) - 3, int(rows[0]) + 1))
        if quirks.impaired is not None:
            rows = np.flatnonzero(years == quirks.impaired)[1:2]
            charge = _thousands(money["net_income"][rows] * float(np.round(rng.uniform(1.6, 2.4), 4)))
            tax = _thousands(charge * 0.21)
            day = business_day(days[rows[0]] + timedelta(days=int(rng.integers(20, 40))))
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
        out = []
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


def _filings(
    company: Company,
    quirks: Quirks,
    figures: Figures,
    plan: _Plan,
    vintages: tuple[Vintage, ...],
    rng: np.random.Generator,
) -> tuple[Filing, ...]:
    """All reports up to the snapshot, in the order of their days."""
    reports = [("10-K" if i % 4 == 3 else "10-Q", i, day) for i, day in enumerate(plan.days)]
    # An amendment comes before an original of the same day, and originals in the order of their periods.
    reports = sorted(reports + plan.amended, key=lambda report: (report[2], not report[0].endswith("/A"), report[1]))
    since = [vintage.since for vintage in vintages]
    out: list[Filing] = []
    numbers: dict[int, int] = {}
    fiscal = figures.fiscal.tolist()
    for form, quarter, day in reports:
        minute, second, step = int(rng.integers(0, 90)), int(rng.integers(0, 60)), int(rng.integers(3, 12))
        if day > LAST_SESSION:
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
                quarterly, metrics = tuple(range(opening, quarter + 1)), SELECTED
        else:
            flows = [(quarter, quarter)] + ([(opening, quarter)] if place else [])
            cash = [(opening, quarter)]
            if quarter >= 4:
                flows += [(first - 4, last - 4) for first, last in flows]
                cash += [(opening - 4, quarter - 4)]
            balances = [q for q in (quarter, opening - 1) if q >= 0]
        out.append(
            Filing(
                form=form,
                accession=f"{company.security.cik}-{day.year % 100:02d}-{numbers[day.year]:06d}",
                filed=day,
                accepted=f"{day.isoformat()}T{16 + minute // 60:02d}:{minute % 60:02d}:{second:02d}.000Z",
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
