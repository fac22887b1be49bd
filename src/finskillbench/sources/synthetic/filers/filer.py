"""The fictional companies as SEC filers, with what each filing printed and which later filing changed it.

A filer has *vintages* of its statements, each valid from the day of the filing that first printed it. A filing prints
the vintage of its day for its period and comparatives. A 10-Q has its quarter and year to date with those of the year
before, and the balance sheets of its date and the last year-end. A 10-K has three years and two balance sheets. So the
public figure of every period and day is known exactly.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from finskillbench.sources.synthetic.calendar import on_grid
from finskillbench.sources.synthetic.filers.figures import GEOGRAPHIES, GEOGRAPHY, INSTANTS, PRODUCT, Figures, Whole
from finskillbench.sources.synthetic.market.companies import SyntheticCompany

CASH_FLOWS = ("operating_cash_flow", "capex", "depreciation_amortization")
"""Printed for the year to date only, as in real cash flow statements."""
PER_SHARE = ("eps_diluted", "diluted_shares")
SELECTED = ("revenue", "gross_profit", "net_income", "eps_diluted")
"""Selected quarterly data of a 10-K, which the SEC required until fiscal 2020."""
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
    """Peculiarities of a filer; years are fiscal ones, None if it has no such event.

    weeks : 52/53-week years that end on the Saturday nearest the month's end. late : files after the deadlines.
    overstated : a 10-K/A corrects that year's fourth quarter. impaired : a 10-Q/A reverses a second-quarter charge that
        caused a loss. reclassified : that year's 10-K moves selling expense into cost, including the year before.
    recast : these years' 10-Ks remove a discontinued business from their three years, but not from the quarters.
    redefined : from that year's 10-K on, depreciation is tagged without amortisation, which has a separate tag.
    of_two : metric -> years whose 10-K uses another tag than the 10-Qs. parted : product revenue is tagged in addition
        to the total. expensed : a part of depreciation is a tagged line of the income statement.
    spun_off : a business leaves in that year's first quarter; a 10-K/A restates two years.
    empty, negative : that year's second quarter has zero or negative revenue. minority : has minority interest.
    proxy : DEF 14A filings repeat net income, rounded. selected : 10-Ks print quarterly data until fiscal 2020.
    axis : of product revenue, None for one segment. renamed : first year of the first product's new name. subtotal :
        the sum of products is printed too. crossed : products by geography are printed too. unreported : metrics never
        tagged.
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
class SyntheticFiling:
    """One periodic report.

    quarter : index of its last quarter. vintage : index of the statements that it prints.
    flows, cash : (first, last) quarters of the income and cash flow columns. balances : quarters of the balance sheets.
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
    """Statements as known from the day of one filing on.

    money : metric -> (Q,) whole dollars. split : ratio of a later split; shares are counted before it.
    """

    since: date
    money: Mapping[str, Whole]
    split: float


@dataclass(frozen=True, slots=True, eq=False)
class SyntheticFiler:
    """One company's filings and its true statements.

    starts, ends : (Q,) period dates of the quarters; fiscal : their fiscal years. vintages, filings : sorted by day.
    split : day and ratio of a share split within the history. products : names of `product_segment:i`; with a spin-off
        the last one leaves.
    """

    company: SyntheticCompany
    quirks: Quirks
    starts: tuple[date, ...]
    ends: tuple[date, ...]
    fiscal: tuple[int, ...]
    figures: Figures
    vintages: tuple[Vintage, ...]
    filings: tuple[SyntheticFiling, ...]
    products: tuple[str, ...]
    split: tuple[date, float] | None

    def reports(self, metric: str) -> bool:
        """Return true if the company reports or implies a metric."""
        if metric in PER_SHARE:
            return True
        if metric == "operating_expenses":
            return self.reports("gross_profit") and self.company.security.sector != "Utilities"
        derived = metric in ("total_liabilities", "gross_profit", "cost_of_revenue")
        if metric in self.quirks.unreported and not (derived and self.derivable(metric)):
            return False
        return metric in self.vintages[0].money and bool(self.vintages[0].money[metric].any())

    def derivable(self, metric: str) -> bool:
        """Return true if an untagged metric follows from tagged ones: liabilities, gross profit or its cost."""
        other = {"gross_profit": "cost_of_revenue", "cost_of_revenue": "gross_profit"}.get(metric)
        return other is None or other not in self.quirks.unreported

    def value(self, vintage: int, metric: str, first: int, last: int) -> float:
        """Return a vintage's value over the quarters `first` to `last`; instants at the end of `last`."""
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

    def redefines(self, filing: SyntheticFiling) -> bool:
        """Return true if a filing tags depreciation without amortisation."""
        since = self.quirks.redefined
        return since is not None and filing.fiscal_year + (filing.fiscal_period == "FY") > since

    def outstanding(self, day: date, quarter: int) -> float:
        """Return the shares on a cover page: the quarter's count, on the basis of the day."""
        count = float(self.figures.shares[quarter])
        if self.split is not None and day < self.split[0]:
            return on_grid(count / self.split[1], -4)
        return count

    def year_start(self, quarter: int) -> int:
        """Return the index of the first quarter of a quarter's fiscal year."""
        return self.fiscal.index(self.fiscal[quarter])

    def segment_columns(self, filing: SyntheticFiling) -> tuple[tuple[int, int], ...]:
        """Return the periods of segment revenue: all but last year's year to date and the oldest year.

        An amended 10-K also has the segments of the quarters that it restates.
        """
        if filing.form.startswith("10-K"):
            quarters = filing.quarterly if filing.form.endswith("/A") else ()
            return (*filing.flows[:2], *((quarter, quarter) for quarter in quarters))
        return tuple(column for column in filing.flows if column[1] == filing.quarter or column[0] == column[1])

    def members(self, filing: SyntheticFiling, axis: str, first: int, last: int) -> list[tuple[str, str]]:
        """Return (part in `money`, member of the axis) for a column of a filing, without a spun-off business."""
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
