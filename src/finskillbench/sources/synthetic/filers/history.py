"""The fictional companies become filers: quirks by place, fiscal calendars, and every report up to the snapshot."""

from bisect import bisect_right
from datetime import date, timedelta

import numpy as np

from finskillbench.sources.synthetic.calendar import (
    LAST_SESSION,
    PROFILES,
    Stream,
    business_day,
    generator,
    month_end,
    sessions,
)
from finskillbench.sources.synthetic.filers.figures import PRODUCT, Figures, draw_figures, move_revenue
from finskillbench.sources.synthetic.filers.filer import INCOME, SELECTED, Filer, Filing, Quirks, Vintage
from finskillbench.sources.synthetic.filers.restatements import Plan
from finskillbench.sources.synthetic.market.companies import Company, Traits
from finskillbench.sources.synthetic.market.fundamentals import Fundamentals

_LAST_SELECTED_YEAR = 2020


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
    plan = Plan(quirks, figures, ends, days, split, len(products), rng)
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
    years = rng.integers(0, 4, size=10).tolist()
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
    # Not where other filings tell years anew: what changes should have one cause.
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
    """First and last days of the quarters: calendar quarters, or 13 weeks each with a 14th in some fourth quarters."""
    nominal = facts.quarter_ends[figures.first :]
    opening = month_end(int(figures.fiscal[0]) - 1, month)
    if not weeks:
        ends = nominal
    else:
        places = [figures.fiscal.tolist().index(year) for year in figures.fiscal.tolist()]
        ends = tuple(
            _saturday(month_end(int(year), month))
            if i - place == 3
            else _saturday(month_end(int(year) - 1, month)) + timedelta(weeks=13 * (i - place + 1))
            for i, (year, place) in enumerate(zip(figures.fiscal.tolist(), places, strict=True))
        )
        opening = _saturday(opening)
    return tuple(end + timedelta(days=1) for end in (opening, *ends[:-1])), ends


def _saturday(day: date) -> date:
    """The Saturday nearest a day."""
    ahead = (5 - day.weekday()) % 7
    return day + timedelta(days=ahead if ahead <= 3 else ahead - 7)


def _filing_days(
    traits: Traits, figures: Figures, ends: tuple[date, ...], *, late: bool, rng: np.random.Generator
) -> tuple[date, ...]:
    """The day each period's report is filed: never before earnings are announced, always a business day."""
    announced = traits.announced[figures.first :]
    out: list[date] = []
    for i, end in enumerate(ends):
        annual = i % 4 == 3  # the figures begin with a fiscal year
        low, high = ((75, 110) if annual else (44, 74)) if late else ((44, 60) if annual else (28, 41))
        day = end + timedelta(days=int(rng.integers(low, high)))
        if 0 <= announced[i] < len(sessions()):
            day = max(day, sessions()[int(announced[i])])
        out.append(business_day(day))
    return tuple(out)


def _filings(
    company: Company,
    quirks: Quirks,
    figures: Figures,
    plan: Plan,
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
                # Quarters told anew are told line by line, so that none mixes two bases.
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
