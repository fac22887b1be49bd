"""Market of the desk suite: 120 names in twelve industries of ten, the names of the edition among them.

The core's universe is a sector-stratified sample of this market: its names keep symbol and sector here, and further
names are invented from the edition's seed. Histories belong to a case: each has its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from finskillbench.arrays import SECTORS
from finskillbench.domains.building import BuildContext
from finskillbench.sources.synthetic.market.companies import invent_companies

PER_INDUSTRY = 10
_INDUSTRIES = {sector: (sector,) for sector in SECTORS} | {"Technology": ("Software", "Hardware")}
"""The industries of each sector; Technology has two, so that there are twelve."""
INDUSTRIES = tuple(industry for sector in SECTORS for industry in _INDUSTRIES[sector])
NAMES = PER_INDUSTRY * len(INDUSTRIES)


@dataclass(frozen=True, slots=True)
class Listed:
    """A name of the market; `core` is whether the edition's other domains know it."""

    symbol: str
    sector: str
    industry: str
    core: bool


def market(context: BuildContext) -> tuple[Listed, ...]:
    """The 120 names, by industry in the order of `INDUSTRIES` and by symbol within one."""
    known: dict[str, list[str]] = {sector: [] for sector in SECTORS}
    for symbol in context.panels.universe:
        if (sector := context.panels.sectors.get(symbol)) in known:
            known[sector].append(symbol)
    room = {sector: PER_INDUSTRY * len(industries) for sector, industries in _INDUSTRIES.items()}
    # As many as could be needed if every one of them bore a name that is taken.
    invented = invent_companies(
        {sector: 2 * count for sector, count in room.items()}, context.generator("desk", "names")
    )
    taken = set(context.panels.universe)
    found: list[Listed] = []
    for sector, industries in _INDUSTRIES.items():
        new = [each.security.symbol for each in invented if each.security.sector == sector]
        core = known[sector][: room[sector]]
        names = [*core, *(symbol for symbol in new if symbol not in taken)][: room[sector]]
        for place, symbol in enumerate(names):
            found.append(Listed(symbol, sector, industries[place % len(industries)], symbol in taken))
    order = {industry: place for place, industry in enumerate(INDUSTRIES)}
    return tuple(sorted(found, key=lambda each: (order[each.industry], each.symbol)))
