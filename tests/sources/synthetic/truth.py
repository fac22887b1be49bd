"""What had been published of a fictional company by a day, from the statements behind its filings."""

from collections.abc import Sequence
from datetime import date
from functools import cache

from finskillbench.sources.synthetic import SyntheticMarket, simulate
from finskillbench.sources.synthetic.filers.figures import INSTANTS
from finskillbench.sources.synthetic.filers.filer import CASH_FLOWS, PER_SHARE, Filer, Filing


@cache
def filers_of(seed: int) -> dict[str, Filer]:
    """Every filer of a seed's market, by symbol."""
    market = simulate(seed)
    return {company.security.symbol: market.draw_filer(i) for i, company in enumerate(market.companies)}


def filer_of(market: SyntheticMarket, symbol: str) -> Filer:
    """One company's filings, drawn once per seed; the market has the usual thirty names."""
    return filers_of(market.seed)[symbol]


def _prints(filing: Filing, metric: str, first: int, last: int) -> bool:
    """Whether the filing has a column of these quarters for the metric (for an instant `first` equals `last`)."""
    if metric in INSTANTS:
        return last in filing.balances
    if metric in CASH_FLOWS:
        return (first, last) in filing.cash
    if (first, last) in filing.flows:
        return True
    return first == last and last in filing.quarterly and metric in filing.quarterly_metrics


def _known(filer: Filer, as_of: date) -> list[Filing]:
    """The filings up to a day, the latest first."""
    return [filing for filing in reversed(filer.filings) if filing.filed <= as_of]


def true_value(filer: Filer, metric: str, start: date | None, end: date, as_of: date) -> float | None:
    """What had been published by `as_of` (that day included) about a metric over a period; None if nothing had.

    A column that a filing printed counts as printed, the latest filing first. A fourth quarter, and a quarter of
    cash flow, that no filing printed is what the vintage of the latest filing says that printed the year to date
    ending with it; averages and per-share figures are never derived. `start` is None for an instant.
    """
    instant = metric in INSTANTS
    if end not in filer.ends or (start is not None and start not in filer.starts):
        return None
    last = filer.ends.index(end)
    first = last if start is None else filer.starts.index(start)
    if first > last or instant != (start is None) or not filer.reports(metric):
        return None
    columns = [first]
    if not instant and metric not in PER_SHARE and first == last:
        columns.append(filer.year_start(last))
    for opening in columns:
        for filing in _known(filer, as_of):
            if _prints(filing, metric, opening, last):
                return filer.value(filing.vintage, metric, first, last)
    return None


def true_segments(filer: Filer, axis: str, start: date, end: date, as_of: date) -> dict[str, float]:
    """Revenue by readable segment name over a period as published by `as_of`; empty where there is none.

    axis : `product_segment` or `geographic_segment`. A quarter that nobody printed is derived as in `true_value`.
    """
    first, last, known = filer.starts.index(start), filer.ends.index(end), _known(filer, as_of)
    searched: list[tuple[tuple[int, int], Sequence[Filing]]] = [((first, last), known)]
    if first == last:
        # A later report may have other segments in the year's column than the nine months have: they do not compare.
        searched.append(((filer.year_start(last), last), [filing for filing in known if filing.quarter == last]))
    for column, filings in searched:
        for filing in filings:
            if column in filer.segment_columns(filing):
                money = filer.vintages[filing.vintage].money
                return {
                    readable(member): float(money[part][first : last + 1].sum())
                    for part, member in filer.members(filing, axis, first, last)
                }
    return {}


def readable(member: str) -> str:
    """`abcde:HomeGoodsMember` -> `Home Goods`; `country:US` -> `United States`."""
    name = member.split(":")[1].removesuffix("Member")
    if member.startswith("country:"):
        return {"US": "United States"}[name]
    spaced = "".join(f" {c}" if c.isupper() and i else c for i, c in enumerate(name))
    return spaced.replace(" And ", " and ")
