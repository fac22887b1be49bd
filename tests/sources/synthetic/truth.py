"""What had been published of a fictional company by a day, from the statements behind its filings."""

from collections.abc import Sequence
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from finskillbench.sources.synthetic import SyntheticMarket, simulate
from finskillbench.sources.synthetic.filers.edgar_files import gaap_tag
from finskillbench.sources.synthetic.filers.figures import INSTANTS
from finskillbench.sources.synthetic.filers.filer import CASH_FLOWS, PER_SHARE, SyntheticFiler, SyntheticFiling

_OTHER = {"gross_profit": "cost_of_revenue", "cost_of_revenue": "gross_profit"}


@cache
def filers_of(seed: int) -> dict[str, SyntheticFiler]:
    """Every filer of a seed's market, by symbol."""
    market = simulate(seed)
    return {company.security.symbol: market.draw_filer(i) for i, company in enumerate(market.companies)}


def filer_of(market: SyntheticMarket, symbol: str) -> SyntheticFiler:
    """One company's filings, drawn once per seed; the market has the usual thirty names."""
    return filers_of(market.seed)[symbol]


def _prints(filing: SyntheticFiling, metric: str, first: int, last: int) -> bool:
    """Whether the filing has a column of these quarters for the metric (for an instant `first` equals `last`)."""
    if metric in INSTANTS:
        return last in filing.balances
    if metric in CASH_FLOWS:
        return (first, last) in filing.cash
    if (first, last) in filing.flows:
        return True
    return first == last and last in filing.quarterly and metric in filing.quarterly_metrics


def _known(filer: SyntheticFiler, as_of: date) -> list[SyntheticFiling]:
    """The filings up to a day, the latest first."""
    return [filing for filing in reversed(filer.filings) if filing.filed <= as_of]


class Public(NamedTuple):
    """A figure that had been published, and the tag that it stands under."""

    value: float
    tag: str


def true_value(filer: SyntheticFiler, metric: str, start: date | None, end: date, as_of: date) -> float | None:
    """The figure of `published`, None if nothing had been."""
    found = published(filer, metric, start, end, as_of)
    return None if found is None else found.value


def published(filer: SyntheticFiler, metric: str, start: date | None, end: date, as_of: date) -> Public | None:
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
    computed = metric in ("gross_profit", "cost_of_revenue") and metric in filer.quirks.unreported
    for filing in known:
        # What no filing has a tag for is printed where its parts are.
        if all(_prints(filing, name, first, last) for name in (("revenue", _OTHER[metric]) if computed else (metric,))):
            return Public(filer.value(filing.vintage, metric, first, last), _tag(filer, metric, filing))
    for filing in known if metric == "cost_of_revenue" else ():
        if _prints(filing, "gross_profit", first, last) and filer.reports("gross_profit"):
            return Public(filer.value(filing.vintage, metric, first, last), _computed(filer, "gross_profit", filing))
    opening = filer.year_start(last)
    if instant or metric in PER_SHARE or first < last or opening == last:
        return None
    return _left_over(filer, metric, opening, last, known[::-1])


def _left_over(
    filer: SyntheticFiler, metric: str, opening: int, last: int, known: Sequence[SyntheticFiling]
) -> Public | None:
    """A quarter as the year to date less the one before, made when both are public on one basis and under one tag.

    It is made again once both tell other figures than it was made of, and counts under another tag once both are filed
    again, unchanged, under that. `known` is in order of filing.
    """
    made: tuple[float, float, Public] | None = None
    for place in range(len(known)):
        columns = [(opening, last), (opening, last - 1)]
        latest = [next((f for f in known[place::-1] if _prints(f, metric, *column)), None) for column in columns]
        longer, shorter = latest
        if longer is None or shorter is None or _tag(filer, metric, longer) != _tag(filer, metric, shorter):
            continue
        told = [filer.value(f.vintage, metric, *column) for f, column in zip((longer, shorter), columns, strict=True)]
        one_basis = filer.value(longer.vintage, metric, opening, last - 1) == told[1]
        if one_basis and (made is None or (made[0] != told[0] and made[1] != told[1])):
            value = filer.value(longer.vintage, metric, last, last)
            made = told[0], told[1], Public(value, _tag(filer, metric, longer))
        elif made is not None and [*made[:2]] == told:
            made = told[0], told[1], Public(made[2].value, _tag(filer, metric, longer))
    return None if made is None else made[2]


def _tag(filer: SyntheticFiler, metric: str, filing: SyntheticFiling) -> str:
    """The tag of a metric in a filing, or those that it is computed from."""
    if metric == "depreciation_amortization" and filer.redefines(filing):
        return f"{gaap_tag(filer, metric, filing)}+AmortizationOfIntangibleAssets"
    if metric in filer.quirks.unreported and metric in _OTHER:
        return _computed(filer, _OTHER[metric], filing)
    return gaap_tag(filer, metric, filing)


def _computed(filer: SyntheticFiler, part: str, filing: SyntheticFiling) -> str:
    return f"{gaap_tag(filer, 'revenue', filing)}-{gaap_tag(filer, part, filing)}"


def true_segments(filer: SyntheticFiler, axis: str, start: date, end: date, as_of: date) -> dict[str, float]:
    """Revenue by readable segment name over a period as published by `as_of`; empty where there is none.

    axis : `product_segment` or `geographic_segment`. A quarter that nobody printed is derived as in `published`: on one
    basis, and where revenue stands under one tag in both filings.
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
            if _tag(filer, "revenue", longer) != _tag(filer, "revenue", shorter):
                continue
            before, now = (_broken_down(filer, filing, axis, part, part) for filing in (shorter, longer))
            if before == now and now.keys() == _broken_down(filer, longer, axis, whole, whole).keys():
                return _broken_down(filer, longer, axis, (last, last), whole)
    return {}


def _broken_down(
    filer: SyntheticFiler, filing: SyntheticFiling, axis: str, column: tuple[int, int], named: tuple[int, int]
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


def filed_facts(collection: Path, filer: SyntheticFiler) -> dict[str, dict[str, dict[str, Any]]]:
    """What a filer's company facts hold, by taxonomy and tag."""
    path = collection / "companyfacts" / f"CIK{filer.company.security.cik}.json"
    return orjson.loads(path.read_bytes())["facts"]
