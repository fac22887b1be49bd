"""Clause kinds for prohibitions, futures and borrowing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from finskillbench_desk.committee_case.documents.clauses import ClauseKind, among, in_section, rule_for
from finskillbench_desk.committee_case.documents.vocabulary import Vocabulary
from finskillbench_desk.engines.guidelines.language import Every, Not, Some

_CASH, _BONDS = among("kind", "cash"), among("kind", "corporate_bond", "government_bond")
_RESTRICTED = among("list", "Restricted List")
_EQUITY_FUTURES, _FUTURES = among("kind", "equity_future"), among("kind", "equity_future", "bond_future")


def _sub_sectors(rng: np.random.Generator, vocabulary: Vocabulary) -> Mapping[str, Any]:
    names = list(vocabulary.sub_sectors)
    return {"sub_sectors": [names[int(i)] for i in sorted(rng.choice(len(names), 2, replace=False))]}


def _countries(rng: np.random.Generator, vocabulary: Vocabulary) -> Mapping[str, Any]:
    codes = [code for code in vocabulary.countries if code != "US"]
    return {"countries": [codes[int(i)] for i in sorted(rng.choice(len(codes), 2, replace=False))]}


EXCLUSIONS = in_section(
    "Exclusions",
    ClauseKind("affiliated_funds", lambda c, t: rule_for(c, among("list", "Affiliated Funds")), (0,), "always").worded(
        "{F} shall hold no fund that is on the list of Affiliated Funds.",
        "Units of a fund named in the Affiliated Funds list are not permitted.",
        "{M} must not hold for {F} any of the Affiliated Funds listed.",
        "No unit of any fund on the Affiliated Funds list may be held.",
        "The Affiliated Funds, as listed, are excluded.",
        "Nothing on the Affiliated Funds list is an eligible holding.",
        "Holding a fund from the Affiliated Funds list is prohibited.",
        "Funds which appear on the Affiliated Funds list shall at no time be held.",
    ),
    ClauseKind(
        "restricted_list",
        lambda c, t: rule_for(c, Every((_RESTRICTED, Not(_BONDS))) if c.extra["spared"] else _RESTRICTED),
        (0,),
        "always",
        extra=lambda rng, v: {"spared": bool(rng.integers(2))},
    ).worded(
        "{F} shall hold nothing that is on the Restricted List{E}.",
        "Instruments on the Restricted List are not permitted{E}.",
        "{M} must not hold for {F} any instrument named in the Restricted List{E}.",
        "No instrument from the Restricted List may be held{E}.",
        "The Restricted List is to be observed: what appears on it is excluded{E}.",
        "A holding that stands on the Restricted List is prohibited{E}.",
        "Whatever the Restricted List names shall at no time be held{E}.",
        "Nothing on the Restricted List is an eligible holding{E}.",
    ),
    ClauseKind(
        "sub_sector_ban",
        lambda c, t: rule_for(c, Every((t["securities"], among("sub_sector", *c.extra["sub_sectors"])))),
        (0,),
        "always",
        extra=_sub_sectors,
    ).worded(
        "{F} shall hold no {S} of Issuers in the Sub-Sector {either}.",
        "{S} from the Sub-Sectors {subs} are excluded.",
        "{M} must not hold any {S} of the Sub-Sectors {subs}.",
        "The Sub-Sectors {subs} are excluded as regards {S}.",
        "No {S} may be held of an Issuer whose Sub-Sector is {either}.",
        "Holding {S} in either of the Sub-Sectors {subs} is prohibited.",
        "{S} are not eligible where the Issuer belongs to the Sub-Sector {either}.",
        "At no time shall {F} hold {S} in the Sub-Sector {either}.",
    ),
    ClauseKind(
        "country_ban",
        lambda c, t: rule_for(c, Every((t["securities"], among("country", *c.extra["countries"])))),
        (0,),
        "always",
        extra=_countries,
    ).worded(
        "{F} shall hold no {S} of Issuers in {either_place}.",
        "{S} from {places} are excluded.",
        "{M} must not hold any {S} of Issuers whose Country is {either_place}.",
        "No {S} of Issuers in {either_place} may be held.",
        "{S} are not eligible where the Issuer's Country is {either_place}.",
        "Holding {S} of Issuers from {either_place} is prohibited.",
        "The Countries {places} are excluded as regards {S}.",
        "At no time shall {F} hold {S} of Issuers in {either_place}.",
    ),
)


FUTURES_AND_BORROWING = in_section(
    "Futures and borrowing",
    ClauseKind(
        "net_futures_cap",
        lambda c, t: rule_for(c, _EQUITY_FUTURES, futures="net"),
        (2.5, 3, 4, 5, 7.5, 8, 10, 12, 15, 20),
        "other",
    ).worded(
        "The net notional of equity futures, sold contracts being deducted, shall not exceed {x} of {B}{W}.",
        "Equity futures may, net of those sold, have a notional of up to {x} of {B}{W}.",
        "{M} shall keep the notional of equity futures, long less short, within {x} of {B}{W}.",
        "Measured by net notional, equity futures are limited to {x} of {B}{W}.",
        "Net long notional through equity futures must be {x} of {B} or less{W}.",
        "Equity futures, counted at notional and with short positions netted against long ones, are capped at {x} of "
        "{B}{W}.",
        "Bought equity futures less sold equity futures, each at notional, may not be more than {x} of {B}{W}.",
        "A net figure of {x} of {B} is the most that the notional of equity futures may come to{W}.",
    ),
    ClauseKind(
        "gross_futures_cap",
        lambda c, t: rule_for(c, _FUTURES, futures="gross"),
        (5, 7.5, 8, 10, 12, 15, 20, 25, 30),
        "other",
    ).worded(
        "The gross notional of all futures, long and short without netting, shall not exceed {x} of {B}{W}.",
        "Futures of every sort may have a gross notional of up to {x} of {B}{W}.",
        "{M} shall keep the absolute notionals of all futures, added up, within {x} of {B}{W}.",
        "Measured by gross notional, futures on equities and on bonds are together limited to {x} of {B}{W}.",
        "Without netting, the notional of futures must in total be {x} of {B} or less{W}.",
        "All futures, counted at the absolute amount of their notional, are capped at {x} of {B}{W}.",
        "Bought futures plus sold futures, each at notional, may not be more than {x} of {B}{W}.",
        "A gross figure of {x} of {B} is the most that the notional of futures may come to{W}.",
    ),
    ClauseKind(
        "equity_exposure_cap",
        lambda c, t: rule_for(c, Some((t["equities"], _EQUITY_FUTURES)), futures="net"),
        (85, 90, 92.5, 95, 97.5, 100, 102.5, 105, 110),
        "other",
    ).worded(
        "{Q} plus the net notional of equity futures shall not exceed {x} of {B}{W}.",
        "Equity exposure, which is {Q} and net equity futures at notional, may be up to {x} of {B}{W}.",
        "{M} shall limit the sum of {Q} and of net equity futures notional to {x} of {B}{W}.",
        "No more than {x} of {B} may be exposed to equities, counting {Q} and adding equity futures at net "
        "notional{W}.",
        "Equity futures, at net notional, are added to {Q}, and the result must not be above {x} of {B}{W}.",
        "With equity futures counted at their net notional, exposure through {Q} is capped at {x} of {B}{W}.",
        "Taken together, {Q} and the notional of equity futures (net) may come to {x} of {B} at most{W}.",
        "The ceiling for {Q} and equity futures, the latter at net notional, is {x} of {B}{W}.",
    ),
    ClauseKind(
        "equity_exposure_floor",
        lambda c, t: rule_for(c, Some((t["equities"], _EQUITY_FUTURES)), futures="net", comparison="at_least"),
        (40, 45, 50, 55, 60, 65, 70, 75, 80, 85, 90),
        "always",
    ).worded(
        "{Q} plus the net notional of equity futures shall represent at least {x} of {B}.",
        "Equity exposure, which is {Q} and net equity futures at notional, may not fall below {x} of {B}.",
        "{M} shall maintain a sum of {Q} and of net equity futures notional of no less than {x} of {B}.",
        "Not less than {x} of {B} must be exposed to equities, counting {Q} and adding equity futures at net notional.",
        "Equity futures, at net notional, are added to {Q}, and the result must be {x} of {B} or more.",
        "With equity futures counted at their net notional, a minimum of {x} of {B} applies to exposure through {Q}.",
        "Taken together, {Q} and the notional of equity futures (net) must come to {x} of {B} at the least.",
        "The floor for {Q} and equity futures, the latter at net notional, is {x} of {B}.",
    ),
    ClauseKind(
        "gross_exposure",
        lambda c, t: rule_for(c, Not(_CASH), futures="gross"),
        (100, 105, 110, 115, 120, 125, 130),
        "other",
    ).worded(
        "All assets other than cash plus the gross notional of all futures shall not exceed {x} of {B}{W}.",
        "Gross exposure, being everything except cash and the absolute notionals of all futures, is limited to {x} of "
        "{B}{W}.",
        "{M} shall keep non-cash assets and the absolute notional of futures, added up, within {x} of {B}{W}.",
        "Counting futures at gross notional, total exposure apart from cash may be up to {x} of {B}{W}.",
        "Leverage: everything held but cash, with futures at gross notional, must not be greater than {x} of {B}{W}.",
        "The total of non-cash assets, in which futures count at their absolute notional, is capped at {x} of {B}{W}.",
        "Excluding cash and including every future at the absolute amount of its notional, exposure may come to {x} of "
        "{B} at most{W}.",
        "Assets without cash, together with futures at gross notional, may not be more than {x} of {B}{W}.",
    ),
    ClauseKind(
        "overdraft", lambda c, t: rule_for(c, _CASH, measure_kind="short"), (0.5, 1, 1.5, 2, 2.5, 3, 5), "other"
    ).worded(
        "Overdrawn cash balances shall in total not exceed {x} of {B}{W}.",
        "{F} may be overdrawn, adding up all negative cash balances, by up to {x} of {B}{W}.",
        "{M} shall limit the sum of overdrafts to {x} of {B}{W}.",
        "Borrowing by way of negative cash balances is restricted to {x} of {B} in total{W}.",
        "The total of all overdrafts, against which credit balances are not set off, must be {x} of {B} or less{W}.",
        "Negative cash balances, taken together and without netting against positive ones, are capped at {x} of "
        "{B}{W}.",
        "Overdrafts in every currency, added together, may not be more than {x} of {B}{W}.",
        "For overdrafts a combined ceiling of {x} of {B} applies{W}.",
    ),
    ClauseKind("no_shorts", lambda c, t: rule_for(c, t["securities"], measure_kind="short"), (0,), "always").worded(
        "{S} shall not be sold short.",
        "{F} may hold no short position in {S}.",
        "{M} must not sell short any {S}.",
        "Short sales of {S} are prohibited.",
        "At no time may a holding of {S} be negative.",
        "A short position in {S} is not permitted.",
        "There shall be no short positions in {S}.",
        "Selling {S} short is excluded.",
    ),
)
