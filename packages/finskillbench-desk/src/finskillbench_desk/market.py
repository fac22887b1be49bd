"""Market of the desk suite: 120 names in twelve industries; the edition's names, then names invented from its seed."""

from __future__ import annotations

from dataclasses import dataclass

from finskillbench.arrays import SECTORS
from finskillbench.domains.building import BuildContext
from finskillbench.sources.synthetic.market.companies import invent_companies

PER_INDUSTRY = 10
_INDUSTRIES = {sector: (sector,) for sector in SECTORS} | {"Technology": ("Software", "Hardware")}
"""Industries by sector; Technology has two, which makes twelve."""
INDUSTRIES = tuple(industry for sector in SECTORS for industry in _INDUSTRIES[sector])
NAMES = PER_INDUSTRY * len(INDUSTRIES)


@dataclass(frozen=True, slots=True)
class ListedName:
    """One name of the market; `core` marks names of the edition's universe."""

    symbol: str
    sector: str
    industry: str
    core: bool


def market(context: BuildContext) -> tuple[ListedName, ...]:
    """Return the 120 names, by industry in the order of `INDUSTRIES`, then by symbol."""
    known: dict[str, list[str]] = {sector: [] for sector in SECTORS}
    for symbol in context.panels.universe:
        if (sector := context.panels.sectors.get(symbol)) in known:
            known[sector].append(symbol)
    capacity = {sector: PER_INDUSTRY * len(industries) for sector, industries in _INDUSTRIES.items()}
    # Twice as many as needed, because invented symbols may already be taken.
    invented = invent_companies(
        {sector: 2 * count for sector, count in capacity.items()}, context.generator("desk", "names")
    )
    taken = set(context.panels.universe)
    found: list[ListedName] = []
    for sector, industries in _INDUSTRIES.items():
        new = [each.security.symbol for each in invented if each.security.sector == sector]
        core = known[sector][: capacity[sector]]
        names = [*core, *(symbol for symbol in new if symbol not in taken)][: capacity[sector]]
        for place, symbol in enumerate(names):
            found.append(ListedName(symbol, sector, industries[place % len(industries)], symbol in taken))
    order = {industry: place for place, industry in enumerate(INDUSTRIES)}
    return tuple(sorted(found, key=lambda each: (order[each.industry], each.symbol)))
