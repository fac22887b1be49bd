"""What is typical of a sector of the fictional market: one table, `sectors.json`, in the order of `SECTORS`."""

from pathlib import Path

import msgspec


class Sector(msgspec.Struct, frozen=True):
    """A sector's companies.

    count : of thirty companies. betas : mean loadings on mkt_rf, smb, hml, rmw, cma, mom, of the familiar signs (cheap
    banks and oil, dear technology). volatility : annual, of what moves the sector beyond the factors.
    selling, research : expenses over revenue; 0 where the line is not reported. receivables, inventory : over a
    quarter's revenue. fixed, cash : over total assets; `fixed` is property, plant and equipment. liabilities : over
    equity. products : names of the product segments. sic : the SEC's code and words. business : endings of companies'
    names, each with its GICS sub-industry.
    """

    count: int
    betas: tuple[float, ...]
    volatility: float
    selling: float
    research: float
    receivables: float
    inventory: float
    fixed: float
    cash: float
    liabilities: float
    products: tuple[str, ...]
    sic: tuple[int, str]
    business: tuple[tuple[str, str], ...]


PROFILES = msgspec.json.decode(Path(__file__).with_name("sectors.json").read_bytes(), type=dict[str, Sector])
