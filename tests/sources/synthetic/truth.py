"""What had been published of a fictional company by a day, from the statements behind its filings."""

from datetime import date
from functools import cache

from finskillbench.sources.synthetic import SyntheticMarket, simulate
from finskillbench.sources.synthetic.filers.edgar_files import tag_of
from finskillbench.sources.synthetic.filers.figures import INSTANTS
from finskillbench.sources.synthetic.filers.filer import CASH_FLOWS, PER_SHARE, Filer, Filing

_DEPRECIATION = "depreciation_amortization"


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
    cash flow, that no filing printed is public where a year to date and the one a quarter shorter were printed on one
    basis and under one tag; averages and per-share figures are never derived. `start` is None for an instant.
    """
    instant = metric in INSTANTS
    if end not in filer.ends or (start is not None and start not in filer.starts):
        return None
    last = filer.ends.index(end)
    first = last if start is None else filer.starts.index(start)
    if first > last or instant != (start is None) or not filer.reports(metric):
        return None
    known = _known(filer, as_of)
    for filing in known:
        if _prints(filing, metric, first, last) or (
            metric == "cost_of_revenue" and _by_fallback(filer, filing, first, last)
        ):
            return filer.value(filing.vintage, metric, first, last)
    opening = filer.year_start(last)
    if instant or metric in PER_SHARE or first < last or opening == last:
        return None
    for longer in known:
        for shorter in known if _prints(longer, metric, opening, last) else ():
            if _prints(shorter, metric, opening, last - 1) and _comparable(
                filer, metric, longer, shorter, opening, last - 1
            ):
                return filer.value(longer.vintage, metric, last, last)
    return None


def _by_fallback(filer: Filer, filing: Filing, first: int, last: int) -> bool:
    """Whether cost follows from the revenue and the gross profit that a filing prints."""
    parts = ("revenue", "gross_profit")
    return filer.reports("gross_profit") and all(_prints(filing, part, first, last) for part in parts)


def _comparable(filer: Filer, metric: str, longer: Filing, shorter: Filing, first: int, last: int) -> bool:
    """Whether two filings have a metric under one tag and agree about the quarters that both tell of."""
    tags = {
        (tag_of(filer, metric, filing), metric == _DEPRECIATION and filer.redefines(filing))
        for filing in (longer, shorter)
    }
    return len(tags) == 1 and len({filer.value(f.vintage, metric, first, last) for f in (longer, shorter)}) == 1


def true_segments(filer: Filer, axis: str, start: date, end: date, as_of: date) -> dict[str, float]:
    """Revenue by readable segment name over a period as published by `as_of`; empty where there is none.

    axis : `product_segment` or `geographic_segment`. A quarter that nobody printed is derived as in `true_value`.
    """
    first, last, known = filer.starts.index(start), filer.ends.index(end), _known(filer, as_of)
    for filing in known:
        if (first, last) in filer.segment_columns(filing):
            return _broken_down(filer, filing, axis, (first, last), (first, last))
    opening = filer.year_start(last)
    if first < last or opening == last:
        return {}
    whole, part = (opening, last), (opening, last - 1)
    for longer in (filing for filing in known if filing.quarter == last and whole in filer.segment_columns(filing)):
        for shorter in (filing for filing in known if part in filer.segment_columns(filing)):
            before, now = (_broken_down(filer, filing, axis, part, part) for filing in (shorter, longer))
            if before == now and now.keys() == _broken_down(filer, longer, axis, whole, whole).keys():
                return _broken_down(filer, longer, axis, (last, last), whole)
    return {}


def _broken_down(
    filer: Filer, filing: Filing, axis: str, column: tuple[int, int], named: tuple[int, int]
) -> dict[str, float]:
    """Revenue of a column as the statements behind a filing have it, by the members that another column names."""
    money = filer.vintages[filing.vintage].money
    return {
        readable(member): float(money[part][column[0] : column[1] + 1].sum())
        for part, member in filer.members(filing, axis, *named)
    }


def readable(member: str) -> str:
    """`abcde:HomeGoodsMember` -> `Home Goods`; `country:US` -> `United States`."""
    name = member.split(":")[1].removesuffix("Member")
    if member.startswith("country:"):
        return {"US": "United States"}[name]
    spaced = "".join(f" {c}" if c.isupper() and i else c for i, c in enumerate(name))
    return spaced.replace(" And ", " and ")
