"""Names that guidelines and data share: sectors, sub-sectors, countries, currencies, lists and issuers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from finskillbench.arrays import SECTORS

COUNTRIES: Mapping[str, str] = {
    "US": "the United States",
    "CA": "Canada",
    "GB": "the United Kingdom",
    "DE": "Germany",
    "FR": "France",
    "CH": "Switzerland",
    "NL": "the Netherlands",
    "SE": "Sweden",
    "JP": "Japan",
    "AU": "Australia",
    "HK": "Hong Kong",
    "SG": "Singapore",
    "KR": "South Korea",
    "TW": "Taiwan",
    "CN": "China",
    "IN": "India",
    "ID": "Indonesia",
    "BR": "Brazil",
    "MX": "Mexico",
    "ZA": "South Africa",
    "PL": "Poland",
    "TR": "Turkey",
}
EMERGING = ("KR", "TW", "CN", "IN", "ID", "BR", "MX", "ZA", "PL", "TR")
"""Emerging markets by the usual index definitions; readers who skip the definition assume these."""
PACIFIC = ("JP", "AU", "HK", "SG")
EUROPE = ("GB", "DE", "FR", "CH", "NL", "SE")
_CURRENCIES = {"US": "USD", "CA": "CAD", "GB": "GBP", "CH": "CHF", "JP": "JPY", "AU": "AUD", "HK": "HKD"}
CURRENCIES: Mapping[str, str] = _CURRENCIES | dict.fromkeys(("DE", "FR", "NL"), "EUR")
"""Currency by country; shares from other countries trade in dollars."""
_SUB_SECTORS = {
    "Technology": (
        "Application Software",
        "Semiconductors",
        "Communications Equipment",
        "Internet Services & Infrastructure",
    ),
    "Financial Services": ("Regional Banks", "Property & Casualty Insurance", "Asset Management & Custody Banks"),
    "Industrials": ("Industrial Machinery & Supplies & Components", "Air Freight & Logistics", "Aerospace & Defense"),
    "Healthcare": ("Pharmaceuticals", "Health Care Equipment", "Managed Health Care"),
    "Consumer Cyclical": ("Broadline Retail", "Hotels, Resorts & Cruise Lines", "Automobile Manufacturers"),
    "Consumer Defensive": ("Packaged Foods & Meats", "Household Products"),
    "Energy": ("Integrated Oil & Gas", "Oil & Gas Exploration & Production"),
    "Real Estate": ("Industrial REITs", "Retail REITs"),
    "Basic Materials": ("Specialty Chemicals", "Construction Materials"),
    "Utilities": ("Electric Utilities", "Multi-Utilities"),
    "Communication Services": ("Broadcasting", "Movies & Entertainment"),
}
SUB_SECTORS: Mapping[str, str] = {name: sector for sector, names in _SUB_SECTORS.items() for name in names}
_INVESTMENT_GRADE = ("AAA", "AA+", "AA", "AA-", "A+", "A", "A-", "BBB+", "BBB", "BBB-")
_BELOW = ("BB+", "BB", "BB-", "B+", "B", "B-", "CCC+", "CCC", "CCC-", "CC", "C", "D")
RATINGS = (*_INVESTMENT_GRADE, *_BELOW)
"""Rating of notch i + 1."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Names that a document may use.

    Attributes
    ----------
    issuers : name by identifier, at least twelve.
    sub_sectors : sector by sub-sector.
    """

    issuers: Mapping[str, str]
    sub_sectors: Mapping[str, str] = field(default_factory=lambda: dict(SUB_SECTORS))
    sectors: tuple[str, ...] = SECTORS
    countries: Mapping[str, str] = field(default_factory=lambda: dict(COUNTRIES))


def sentence_list(items: list[str], last: str = "and") -> str:
    """Join items for a sentence, with semicolons if an item contains a comma."""
    if len(items) > 2 and any("," in word for word in items):
        return f"{'; '.join(items[:-1])}; {last} {items[-1]}"
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} {last} {items[-1]}"
