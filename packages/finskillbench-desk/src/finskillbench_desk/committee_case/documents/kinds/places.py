"""Kinds of clauses on countries and currencies."""

from __future__ import annotations

from finskillbench_desk.committee_case.documents.clauses import Kind, measure
from finskillbench_desk.committee_case.documents.vocabulary import HOME, HOME_CURRENCY
from finskillbench_desk.engines.guidelines.language import Among, Every, Filter, Not

_HOME = Among("country", frozenset((HOME,)))
_DOLLARS = Among("currency", frozenset((HOME_CURRENCY,)))


def _abroad(equities: Filter) -> Filter:
    return Every((equities, Not(_HOME)))


PLACES = (
    Kind(
        "country_cap",
        "Countries and currencies",
        (
            "{Q} of Issuers in any one Country other than the United States shall not exceed {x} of {B}{W}.",
            "Outside the United States, no Country may account for more than {x} of {B} in {Q}{W}.",
            "{M} shall limit {Q} of each Country, the United States aside, to {x} of {B}{W}.",
            "The {Q} of a single Country (which for this clause does not include the United States) may be up to {x} "
            "of {B}{W}.",
            "Every Country's {Q}, those of the United States apart, must stay within {x} of {B}{W}.",
            "A maximum of {x} of {B} applies to the {Q} of any Country but the United States{W}.",
            "{F} may hold {Q} of any one Country, not being the United States, for no more than {x} of {B}{W}.",
            "Country by Country, and leaving the United States aside, {Q} are capped at {x} of {B}{W}.",
        ),
        lambda c, t: measure(c, _abroad(t["equities"]), "country"),
        (3, 4, 5, 6, 7.5, 8, 10, 12, 15),
        uses=("equities",),
        carves="country",
        equity=True,
    ),
    Kind(
        "emerging_cap",
        "Countries and currencies",
        (
            "{Q} of Issuers in Emerging Markets shall not exceed {x} of {B}{W}.",
            "Emerging Markets may together account for up to {x} of {B} by way of {Q}{W}.",
            "{M} shall limit the total of {Q} from Emerging Markets to {x} of {B}{W}.",
            "No more than {x} of {B} may be in {Q} of Emerging Markets{W}.",
            "The combined {Q} of Emerging Markets must not be worth more than {x} of {B}{W}.",
            "All Emerging Markets taken together, {Q} are capped at {x} of {B}{W}.",
            "{F}'s exposure to Emerging Markets in {Q} is restricted to {x} of {B}{W}.",
            "As to Emerging Markets, {Q} may come to {x} of {B} at most{W}.",
        ),
        lambda c, t: measure(c, Every((t["equities"], t["emerging"]))),
        (3, 4, 5, 7.5, 8, 10, 12, 15, 20),
        uses=("equities", "emerging"),
        equity=True,
    ),
    Kind(
        "region_cap",
        "Countries and currencies",
        (
            "{Q} of Issuers in {T} shall not exceed {x} of {B}{W}.",
            "{T} may in total represent up to {x} of {B} in {Q}{W}.",
            "{M} shall keep {Q} from {T} within {x} of {B}{W}.",
            "No more than {x} of {B} may be held in {Q} of {T}{W}.",
            "Across {T}, the {Q} held must not add up to more than {x} of {B}{W}.",
            "The sum of {Q} of {T} is limited to {x} of {B}{W}.",
            "{F} may have {Q} of {T} worth {x} of {B} at most{W}.",
            "A regional cap of {x} of {B} applies to the {Q} of {T}{W}.",
        ),
        lambda c, t: measure(c, Every((t["equities"], t["region"]))),
        (5, 7.5, 8, 10, 12, 15, 20, 25),
        uses=("equities", "region"),
        equity=True,
    ),
    Kind(
        "home_floor",
        "Countries and currencies",
        (
            "{Q} of Issuers in the United States shall represent at least {x} of {B}.",
            "A minimum of {x} of {B} must be held in {Q} of the United States.",
            "{M} shall maintain no less than {x} of {B} in {Q} of United States Issuers.",
            "The {Q} of United States Issuers may not fall below {x} of {B}.",
            "{F} shall have {x} of {B} or more in {Q} from the United States.",
            "Not less than {x} of {B} is to consist of {Q} of Issuers in the United States.",
            "The United States shall account, in {Q}, for {x} of {B} at the least.",
            "The share of {B} that is in {Q} of the United States must never be less than {x}.",
        ),
        lambda c, t: measure(c, Every((t["equities"], _HOME)), comparison="at_least"),
        (30, 35, 40, 45, 50, 55, 60, 65, 70, 75, 80, 85),
        "always",
        uses=("equities",),
        equity=True,
    ),
    Kind(
        "foreign_currency_cap",
        "Countries and currencies",
        (
            "Assets of any type, cash included, in currencies other than the US dollar shall not exceed {x} of {B}{W}.",
            "All that is denominated in a currency other than US dollars, including cash, may be up to {x} of {B}{W}.",
            "{M} shall limit the total of assets and cash not denominated in US dollars to {x} of {B}{W}.",
            "No more than {x} of {B} may, cash being counted, be denominated in foreign currencies, that is, in any "
            "but the US dollar{W}.",
            "Currencies other than the US dollar, cash balances included, may together account for {x} of {B} at "
            "most{W}.",
            "{F}'s assets outside the US dollar (cash balances among them) are capped at {x} of {B}{W}.",
            "The sum of holdings and cash in all currencies but the US dollar must stay within {x} of {B}{W}.",
            "In aggregate, assets and cash that are not in US dollars must not make up more than {x} of {B}{W}.",
        ),
        lambda c, t: measure(c, Not(_DOLLARS)),
        (5, 7.5, 8, 10, 12, 15, 20, 25, 30),
    ),
    Kind(
        "currency_cap",
        "Countries and currencies",
        (
            "Assets and cash in any one currency other than the US dollar shall not exceed {x} of {B}{W}.",
            "No single currency but the US dollar may, with cash included, account for more than {x} of {B}{W}.",
            "{M} shall keep assets and cash in each currency, US dollars aside, at {x} of {B} or less{W}.",
            "Currency by currency, and not counting the US dollar, assets with cash are limited to {x} of {B}{W}.",
            "For every currency by itself, the US dollar apart, what is denominated in it (cash included) may be up to "
            "{x} of {B}{W}.",
            "{F} may have assets and cash balances in any one currency, the US dollar apart, for no more than {x} of "
            "{B}{W}.",
            "A maximum of {x} of {B} applies to the assets, cash among them, in an individual currency other than US "
            "dollars{W}.",
            "What is denominated in a particular currency other than the US dollar, cash being counted, must not be "
            "above {x} of {B}{W}.",
        ),
        lambda c, t: measure(c, Not(_DOLLARS), "currency"),
        (3, 4, 5, 6, 7.5, 8, 10, 12),
    ),
)
