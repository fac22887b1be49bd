"""Clause kinds for instrument types."""

from __future__ import annotations

from finskillbench_desk.committee_case.documents.clauses import ClauseKind, among, in_section, rule_for
from finskillbench_desk.engines.guidelines.language import Every

_CASH, _FUNDS = among("kind", "cash"), among("kind", "fund")
_BONDS = among("kind", "corporate_bond", "government_bond")


INSTRUMENTS = in_section(
    "Instruments",
    ClauseKind("cash_cap", lambda c, t: rule_for(c, _CASH), (3, 4, 5, 6, 8, 10, 12, 15, 20, 25), "other").worded(
        "Cash shall not exceed {x} of {B}{W}.",
        "{F} may hold cash up to {x} of {B} and no further{W}.",
        "{M} shall keep cash balances, all currencies together, at or below {x} of {B}{W}.",
        "No more than {x} of {B} may be held as cash{W}.",
        "Uninvested cash is limited to {x} of {B}{W}.",
        "The total of all cash balances may not be greater than {x} of {B}{W}.",
        "Cash in every currency, added up, must not go above {x} of {B}{W}.",
        "As to cash, the maximum is {x} of {B}{W}.",
    ),
    ClauseKind(
        "liquid_floor",
        lambda c, t: rule_for(c, t["liquid"], comparison="at_least"),
        (0.5, 1, 1.5, 2, 2.5, 3, 4, 5),
        "always",
        uses=("liquid",),
    ).worded(
        "Liquid Assets shall represent at least {x} of {B}.",
        "{F} shall hold Liquid Assets of no less than {x} of {B}.",
        "{M} must maintain {x} of {B} or more in Liquid Assets.",
        "The value of Liquid Assets may not fall below {x} of {B}.",
        "A reserve of Liquid Assets worth at least {x} of {B} is to be kept.",
        "Not less than {x} of {B} shall consist of Liquid Assets.",
        "A minimum of {x} of {B} applies to Liquid Assets.",
        "Liquid Assets must never be less than {x} of {B}.",
    ),
    ClauseKind("deposit_cap", lambda c, t: rule_for(c, _CASH, "issuer"), (2, 3, 4, 5, 6, 7.5, 8, 10), "other").worded(
        "Cash with any one bank shall not exceed {x} of {B}{W}.",
        "No single bank may hold cash of more than {x} of {B}{W}.",
        "{M} shall spread cash so that no bank has over {x} of {B}{W}.",
        "Cash deposited at the same bank is limited to {x} of {B}{W}.",
        "Bank by bank, cash may be up to {x} of {B}{W}.",
        "{F}'s cash at an individual bank must be no more than {x} of {B}{W}.",
        "For each bank with which cash is placed a maximum of {x} of {B} applies{W}.",
        "{F} may leave cash at any one bank only up to {x} of {B}{W}.",
    ),
    ClauseKind("fund_cap", lambda c, t: rule_for(c, _FUNDS), (5, 7.5, 8, 10, 12, 15, 20, 25, 30)).worded(
        "Units of funds shall in aggregate not exceed {x} of {B}{W}.",
        "All funds taken together may account for up to {x} of {B}{W}.",
        "{M} shall limit the total of fund units to {x} of {B}{W}.",
        "No more than {x} of {B} may be in funds{W}.",
        "The sum of all fund holdings must not be above {x} of {B}{W}.",
        "Collective vehicles, that is, funds of every sort, are together capped at {x} of {B}{W}.",
        "In total, funds may represent {x} of {B} at most{W}.",
        "{F}'s holdings of funds shall add up to {x} of {B} or less{W}.",
    ),
    ClauseKind("one_fund_cap", lambda c, t: rule_for(c, _FUNDS, "instrument"), (3, 4, 5, 6, 7.5, 8, 10, 12, 15)).worded(
        "Units of any one fund shall not exceed {x} of {B}{W}.",
        "No individual fund may account for more than {x} of {B}{W}.",
        "{M} shall limit each fund held to {x} of {B}{W}.",
        "A single fund may be held up to {x} of {B}{W}.",
        "Fund by fund, the maximum is {x} of {B}{W}.",
        "The units of the same fund must not make up over {x} of {B}{W}.",
        "{F} may place {x} of {B} at most in any particular fund{W}.",
        "Every fund by itself is capped at {x} of {B}{W}.",
    ),
    ClauseKind(
        "receipts_cap",
        lambda c, t: rule_for(c, among("kind", "receipt")),
        (2, 3, 4, 5, 6, 8, 10, 12, 15, 20),
        equity=True,
    ).worded(
        "Depositary receipts shall together not exceed {x} of {B}{W}.",
        "No more than {x} of {B} may be held in the form of depositary receipts{W}.",
        "{M} shall limit depositary receipts in aggregate to {x} of {B}{W}.",
        "All depositary receipts combined may represent up to {x} of {B}{W}.",
        "The total of depositary receipts must be {x} of {B} or less{W}.",
        "Depositary receipts, whatever shares stand behind them, are capped at {x} of {B}{W}.",
        "{F} may own depositary receipts for a sum of {x} of {B} at most{W}.",
        "A ceiling of {x} of {B} applies to the sum of depositary receipts{W}.",
    ),
    ClauseKind(
        "hybrids_cap", lambda c, t: rule_for(c, among("kind", "preferred", "convertible")), (2, 3, 4, 5, 6, 7.5, 8, 10)
    ).worded(
        "Preferred shares and convertible bonds shall together not exceed {x} of {B}{W}.",
        "Convertible bonds and preferred shares, added together, may be up to {x} of {B}{W}.",
        "{M} shall limit the sum of preferred shares and convertible bonds to {x} of {B}{W}.",
        "No more than {x} of {B} may be in preferred shares and convertible bonds combined{W}.",
        "Hybrids, being convertible bonds and preferred shares, are in total capped at {x} of {B}{W}.",
        "{F}'s preferred shares and convertible bonds must in aggregate be within {x} of {B}{W}.",
        "In aggregate, convertible bonds together with preferred shares may not make up more than {x} of {B}{W}.",
        "A joint maximum of {x} of {B} applies to preferred shares and convertible bonds{W}.",
    ),
    ClauseKind("bonds_cap", lambda c, t: rule_for(c, _BONDS), (4, 5, 7.5, 8, 10, 12, 15, 20, 25)).worded(
        "Government and corporate bonds shall together not exceed {x} of {B}{W}.",
        "No more than {x} of {B} may be held in bonds, government and corporate bonds being added together{W}.",
        "{M} shall limit the total of corporate and government bonds to {x} of {B}{W}.",
        "Corporate bonds and government bonds may in total account for up to {x} of {B}{W}.",
        "Bonds of governments and of companies are jointly capped at {x} of {B}{W}.",
        "The sum of all government bonds and corporate bonds must not be greater than {x} of {B}{W}.",
        "{F} may own corporate and government bonds for a total of {x} of {B} at most{W}.",
        "Straight debt, which means corporate and government bonds, is restricted to {x} of {B}{W}.",
    ),
    ClauseKind(
        "junk_cap",
        lambda c, t: rule_for(c, Every((_BONDS, t["junk"]))),
        (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8),
        uses=("junk",),
    ).worded(
        "Lower-Rated Bonds shall not exceed {x} of {B}{W}.",
        "No more than {x} of {B} may be in Lower-Rated Bonds{W}.",
        "{M} shall limit the sum of Lower-Rated Bonds to {x} of {B}{W}.",
        "Lower-Rated Bonds may together account for up to {x} of {B}{W}.",
        "The total of Lower-Rated Bonds must stay at or under {x} of {B}{W}.",
        "{F} may own Lower-Rated Bonds for {x} of {B} at most{W}.",
        "All Lower-Rated Bonds combined are capped at {x} of {B}{W}.",
        "An aggregate limit of {x} of {B} applies to Lower-Rated Bonds{W}.",
    ),
    ClauseKind(
        "bond_issuer_cap",
        lambda c, t: rule_for(c, among("kind", "corporate_bond"), "issuer"),
        (1, 1.5, 2, 2.5, 3, 4, 5, 6),
        carves="issuer",
    ).worded(
        "Corporate bonds of any one Issuer shall not exceed {x} of {B}{W}.",
        "No Issuer's corporate bonds may be worth more than {x} of {B}{W}.",
        "{M} shall limit corporate bonds of the same Issuer to {x} of {B}{W}.",
        "The corporate bonds of a single Issuer may represent up to {x} of {B}{W}.",
        "As a separate test, corporate bonds are capped at {x} of {B} per Issuer{W}.",
        "All corporate bonds of one Issuer together must be no more than {x} of {B}{W}.",
        "{F} may lend to any one Issuer by way of corporate bonds up to {x} of {B}{W}.",
        "Issuer by Issuer, corporate bonds must not go beyond {x} of {B}{W}.",
    ),
    ClauseKind(
        "unlisted_cap", lambda c, t: rule_for(c, among("list", "Unlisted")), (2, 2.5, 3, 4, 5, 6, 7.5, 8, 10)
    ).worded(
        "Instruments on the Unlisted list shall together not exceed {x} of {B}{W}.",
        "No more than {x} of {B} may be in instruments that are on the list headed Unlisted{W}.",
        "{M} shall limit the total of what stands on the Unlisted list to {x} of {B}{W}.",
        "Whatever is on the Unlisted list may in total be up to {x} of {B}{W}.",
        "The instruments of the Unlisted list are in aggregate capped at {x} of {B}{W}.",
        "{F} may own instruments from the Unlisted list for {x} of {B} at most{W}.",
        "Added together, the instruments that the Unlisted list names must be {x} of {B} or less{W}.",
        "For instruments on the Unlisted list a combined ceiling of {x} of {B} applies{W}.",
    ),
)
