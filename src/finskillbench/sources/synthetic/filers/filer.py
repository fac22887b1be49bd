"""The fictional companies as SEC filers: what each filing printed, which later filing changed it, and when.

A filer has *vintages* of its true statements, each in force from the day of the filing that first printed it. A filing
prints the vintage of its day for its own period and its comparatives, as real ones do: a 10-Q its quarter and year to
date with those of the year before and the balance sheets of its date and of the last year-end; a 10-K three years and
two balance sheets. So the figure that was public on a day is known exactly for every period.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from finskillbench.sources.synthetic.calendar import on_grid
from finskillbench.sources.synthetic.filers.figures import GEOGRAPHIES, GEOGRAPHY, INSTANTS, PRODUCT, Figures, Whole
from finskillbench.sources.synthetic.market.companies import Company

CASH_FLOWS = ("operating_cash_flow", "capex", "depreciation_amortization")
"""Printed for the year to date only, as in every real cash flow statement."""
PER_SHARE = ("eps_diluted", "diluted_shares")
SELECTED = ("revenue", "gross_profit", "net_income", "eps_diluted")
"""The selected quarterly data of a 10-K, which the SEC asked for until fiscal 2020."""
INCOME = (
    "revenue",
    "cost_of_revenue",
    "gross_profit",
    "operating_expenses",
    "operating_income",
    "net_income",
    "sga",
    "rnd",
    "interest_expense",
    "income_tax",
    *PER_SHARE,
)


@dataclass(frozen=True, slots=True)
class Quirks:
    """What is unusual about a filer; years are fiscal ones, None where the company has no such thing.

    weeks : 52/53-week years that end on the Saturday nearest the month's end. late : files after the deadlines.
    overstated : a 10-K/A corrects that year's fourth quarter. impaired : a 10-Q/A takes back a second-quarter charge
    that had made it a loss. reclassified : that year's 10-K moves selling expense into cost, with the year before.
    recast : the 10-K of each of these years takes a discontinued business out of the three years that it prints, but
    prints none of their quarters again. redefined : from that year's 10-K on depreciation is tagged without
    amortisation, which gets a tag of its own; earlier years too. of_two : metric -> years whose 10-K tags it otherwise
    than the 10-Qs do. parted : revenue from products is tagged beside the total. expensed : a part of depreciation has
    a line of the income statement and a tag.
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
    recast: tuple[int, ...]
    redefined: int | None
    of_two: Mapping[str, range]
    parted: bool
    expensed: bool
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


@dataclass(frozen=True, slots=True)
class Vintage:
    """Statements as they were known from the day of one filing on.

    money : metric -> (Q,) whole dollars. split : ratio of a split that is still to come; shares are counted before it.
    """

    since: date
    money: Mapping[str, Whole]
    split: float


@dataclass(frozen=True, slots=True, eq=False)
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

    def reports(self, metric: str) -> bool:
        """Whether the company has such a line at all (a tag of it, or one that follows from two others)."""
        if metric in PER_SHARE:
            return True
        if metric == "operating_expenses":
            return self.reports("gross_profit") and self.company.security.sector != "Utilities"
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
            average = on_grid(self.figures.shares[first : last + 1].mean(), -4)
            return on_grid(average / statements.split, -4)
        if metric == "eps_diluted":
            income = statements.money["net_income"][first : last + 1].sum()
            return on_grid(income / self.value(vintage, "diluted_shares", first, last), 2)
        if metric == "operating_expenses":
            return self.value(vintage, "gross_profit", first, last) - self.value(
                vintage, "operating_income", first, last
            )
        values = statements.money[metric]
        return float(values[last] if metric in INSTANTS else values[first : last + 1].sum())

    def redefines(self, filing: Filing) -> bool:
        """Whether the filing tags depreciation without amortisation: the 10-K of the year that does, and later ones."""
        since = self.quirks.redefined
        return since is not None and filing.fiscal_year + (filing.fiscal_period == "FY") > since

    def outstanding(self, day: date, quarter: int) -> float:
        """Shares on the cover page: the count of the quarter, on the basis of the day."""
        count = float(self.figures.shares[quarter])
        if self.split is not None and day < self.split[0]:
            return on_grid(count / self.split[1], -4)
        return count

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
        found: list[tuple[str, str]] = []
        for i, name in enumerate(self.products):
            part = f"{PRODUCT}:{i}"
            values = self.vintages[filing.vintage].money[part][first : last + 1]
            if self.quirks.spun_off is not None and i == len(self.products) - 1 and not values.any():
                continue
            renamed = i == 0 and self.quirks.renamed is not None and filing.fiscal_year >= self.quirks.renamed
            found.append((part, f"{prefix}:{name}{'AndServices' if renamed else ''}Member"))
        return found
