"""Names that guidelines and data share: sectors, sub-sectors, countries, currencies, lists and issuers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from finskillbench.arrays import SECTORS

HOME = "US"
HOME_CURRENCY = "USD"
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
CURRENCIES: Mapping[str, str] = {
    "US": "USD",
    "CA": "CAD",
    "GB": "GBP",
    "DE": "EUR",
    "FR": "EUR",
    "NL": "EUR",
    "CH": "CHF",
    "JP": "JPY",
    "AU": "AUD",
    "HK": "HKD",
}
"""Currency by country; shares from other countries trade in dollars."""
LISTS = ("Restricted List", "Unlisted", "Affiliated Funds")
SUB_SECTORS: Mapping[str, str] = {
    "Application Software": "Technology",
    "Semiconductors": "Technology",
    "Communications Equipment": "Technology",
    "Internet Services & Infrastructure": "Technology",
    "Regional Banks": "Financial Services",
    "Property & Casualty Insurance": "Financial Services",
    "Asset Management & Custody Banks": "Financial Services",
    "Industrial Machinery & Supplies & Components": "Industrials",
    "Air Freight & Logistics": "Industrials",
    "Aerospace & Defense": "Industrials",
    "Pharmaceuticals": "Healthcare",
    "Health Care Equipment": "Healthcare",
    "Managed Health Care": "Healthcare",
    "Broadline Retail": "Consumer Cyclical",
    "Hotels, Resorts & Cruise Lines": "Consumer Cyclical",
    "Automobile Manufacturers": "Consumer Cyclical",
    "Packaged Foods & Meats": "Consumer Defensive",
    "Household Products": "Consumer Defensive",
    "Integrated Oil & Gas": "Energy",
    "Oil & Gas Exploration & Production": "Energy",
    "Industrial REITs": "Real Estate",
    "Retail REITs": "Real Estate",
    "Specialty Chemicals": "Basic Materials",
    "Construction Materials": "Basic Materials",
    "Electric Utilities": "Utilities",
    "Multi-Utilities": "Utilities",
    "Broadcasting": "Communication Services",
    "Movies & Entertainment": "Communication Services",
}
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
