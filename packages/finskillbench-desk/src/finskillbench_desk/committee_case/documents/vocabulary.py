"""The words that guidelines and data share: sectors, sub-sectors, countries, currencies, lists, names of issuers."""

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
"""Code and name of every country that a document may name."""
EMERGING = ("KR", "TW", "CN", "IN", "ID", "BR", "MX", "ZA", "PL", "TR")
"""What index providers commonly count as emerging: whoever does not read the definition takes these."""
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
"""Currency by country; shares from elsewhere trade in dollars."""
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
"""Sector by sub-sector, as the synthetic market has them."""
_INVESTMENT_GRADE = ("AAA", "AA+", "AA", "AA-", "A+", "A", "A-", "BBB+", "BBB", "BBB-")
_BELOW = ("BB+", "BB", "BB-", "B+", "B", "B-", "CCC+", "CCC", "CCC-", "CC", "C", "D")
RATINGS = (*_INVESTMENT_GRADE, *_BELOW)
"""Rating of notch i + 1."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What a document may name.

    Attributes
    ----------
    issuers : name in words by identifier, as the data has it; at least twelve.
    sub_sectors : sector by sub-sector.
    """

    issuers: Mapping[str, str]
    sub_sectors: Mapping[str, str] = field(default_factory=lambda: dict(SUB_SECTORS))
    sectors: tuple[str, ...] = SECTORS
    countries: Mapping[str, str] = field(default_factory=lambda: dict(COUNTRIES))


def listed(words: list[str], last: str = "and") -> str:
    """Words as a list in a sentence, semicolons between them where one of several has a comma of its own."""
    if len(words) > 2 and any("," in word for word in words):
        return f"{'; '.join(words[:-1])}; {last} {words[-1]}"
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"
