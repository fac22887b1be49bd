"""Clause kinds for countries and currencies, and for reporting thresholds that limit nothing."""

from __future__ import annotations

from finskillbench_desk.committee_case.documents.clauses import ClauseKind, among, in_section, rule_for
from finskillbench_desk.committee_case.documents.kinds.trading import turnover_measure, turnover_rule
from finskillbench_desk.engines.guidelines.language import Every, Not

_HOME = among("country", "US")
_ABROAD = Not(_HOME)
_FOREIGN_CURRENCIES = Not(among("currency", "USD"))


PLACES = in_section(
    "Countries and currencies",
    ClauseKind(
        "country_cap",
        lambda c, t: rule_for(c, Every((t["equities"], _ABROAD)), "country"),
        (3, 4, 5, 6, 7.5, 8, 10, 12, 15),
        carves="country",
        equity=True,
    ).worded(
        "{Q} of Issuers in any one Country other than the United States shall not exceed {x} of {B}{W}.",
        "Outside the United States, no Country may account for more than {x} of {B} in {Q}{W}.",
        "{M} shall limit {Q} of each Country, the United States aside, to {x} of {B}{W}.",
        "The {Q} of a single Country (which for this clause does not include the United States) may be up to {x} of "
        "{B}{W}.",
        "Every Country's {Q}, those of the United States apart, must stay within {x} of {B}{W}.",
        "A maximum of {x} of {B} applies to the {Q} of any Country but the United States{W}.",
        "{F} may hold {Q} of any one Country, not being the United States, for no more than {x} of {B}{W}.",
        "Country by Country, and leaving the United States aside, {Q} are capped at {x} of {B}{W}.",
    ),
    ClauseKind(
        "emerging_cap",
        lambda c, t: rule_for(c, Every((t["equities"], t["emerging"]))),
        (3, 4, 5, 7.5, 8, 10, 12, 15, 20),
        uses=("emerging",),
        equity=True,
    ).worded(
        "{Q} of Issuers in Emerging Markets shall not exceed {x} of {B}{W}.",
        "Emerging Markets may together account for up to {x} of {B} by way of {Q}{W}.",
        "{M} shall limit the total of {Q} from Emerging Markets to {x} of {B}{W}.",
        "No more than {x} of {B} may be in {Q} of Emerging Markets{W}.",
        "The combined {Q} of Emerging Markets must not be worth more than {x} of {B}{W}.",
        "All Emerging Markets taken together, {Q} are capped at {x} of {B}{W}.",
        "{F}'s exposure to Emerging Markets in {Q} is restricted to {x} of {B}{W}.",
        "As to Emerging Markets, {Q} may come to {x} of {B} at most{W}.",
    ),
    ClauseKind(
        "region_cap",
        lambda c, t: rule_for(c, Every((t["equities"], t["region"]))),
        (5, 7.5, 8, 10, 12, 15, 20, 25),
        uses=("region",),
        equity=True,
    ).worded(
        "{Q} of Issuers in {T} shall not exceed {x} of {B}{W}.",
        "{T} may in total represent up to {x} of {B} in {Q}{W}.",
        "{M} shall keep {Q} from {T} within {x} of {B}{W}.",
        "No more than {x} of {B} may be held in {Q} of {T}{W}.",
        "Across {T}, the {Q} held must not add up to more than {x} of {B}{W}.",
        "The sum of {Q} of {T} is limited to {x} of {B}{W}.",
        "{F} may have {Q} of {T} worth {x} of {B} at most{W}.",
        "A regional cap of {x} of {B} applies to the {Q} of {T}{W}.",
    ),
    ClauseKind(
        "home_floor",
        lambda c, t: rule_for(c, Every((t["equities"], _HOME)), comparison="at_least"),
        (30, 35, 40, 45, 50, 55, 60, 65, 70, 75, 80, 85),
        "always",
        equity=True,
    ).worded(
        "{Q} of Issuers in the United States shall represent at least {x} of {B}.",
        "A minimum of {x} of {B} must be held in {Q} of the United States.",
        "{M} shall maintain no less than {x} of {B} in {Q} of United States Issuers.",
        "The {Q} of United States Issuers may not fall below {x} of {B}.",
        "{F} shall have {x} of {B} or more in {Q} from the United States.",
        "Not less than {x} of {B} is to consist of {Q} of Issuers in the United States.",
        "The United States shall account, in {Q}, for {x} of {B} at the least.",
        "The share of {B} that is in {Q} of the United States must never be less than {x}.",
    ),
    ClauseKind(
        "foreign_currency_cap", lambda c, t: rule_for(c, _FOREIGN_CURRENCIES), (5, 7.5, 8, 10, 12, 15, 20, 25, 30)
    ).worded(
        "Assets of any type, cash included, in currencies other than the US dollar shall not exceed {x} of {B}{W}.",
        "All that is denominated in a currency other than US dollars, including cash, may be up to {x} of {B}{W}.",
        "{M} shall limit the total of assets and cash not denominated in US dollars to {x} of {B}{W}.",
        "No more than {x} of {B} may, cash being counted, be denominated in foreign currencies, that is, in any but "
        "the US dollar{W}.",
        "Currencies other than the US dollar, cash balances included, may together account for {x} of {B} at most{W}.",
        "{F}'s assets outside the US dollar (cash balances among them) are capped at {x} of {B}{W}.",
        "The sum of holdings and cash in all currencies but the US dollar must stay within {x} of {B}{W}.",
        "In aggregate, assets and cash that are not in US dollars must not make up more than {x} of {B}{W}.",
    ),
    ClauseKind(
        "currency_cap", lambda c, t: rule_for(c, _FOREIGN_CURRENCIES, "currency"), (3, 4, 5, 6, 7.5, 8, 10, 12)
    ).worded(
        "Assets and cash in any one currency other than the US dollar shall not exceed {x} of {B}{W}.",
        "No single currency but the US dollar may, with cash included, account for more than {x} of {B}{W}.",
        "{M} shall keep assets and cash in each currency, US dollars aside, at {x} of {B} or less{W}.",
        "Currency by currency, and not counting the US dollar, assets with cash are limited to {x} of {B}{W}.",
        "For every currency by itself, the US dollar apart, what is denominated in it (cash included) may be up to {x} "
        "of {B}{W}.",
        "{F} may have assets and cash balances in any one currency, the US dollar apart, for no more than {x} of "
        "{B}{W}.",
        "A maximum of {x} of {B} applies to the assets, cash among them, in an individual currency other than US "
        "dollars{W}.",
        "What is denominated in a particular currency other than the US dollar, cash being counted, must not be above "
        "{x} of {B}{W}.",
    ),
)


REPORTING = in_section(
    "Reporting",
    ClauseKind(
        "report_issuer", lambda c, t: rule_for(c, t["securities"], "issuer"), (2.5, 3, 4, 5, 6, 7, 8, 9), "report"
    ).worded(
        "{M} shall notify the Client within two business days where {S} of any one Issuer exceed {x} of {B}.",
        "If {S} of an Issuer come to more than {x} of {B}, the monthly report shall say so and give the reason.",
        "A position in {S} of one Issuer above {x} of {B} is to be reported to the Client.",
        "{M} will inform the Client in writing of every Issuer whose {S} are above {x} of {B}.",
        "The Client shall be told when {S} of a single Issuer go beyond {x} of {B}.",
        "An explanation shall be sent to the Client for each Issuer of which {S} over {x} of {B} are held.",
        "Issuers whose {S} represent more than {x} of {B} shall be listed, with a comment, in the quarterly report.",
        "Once {S} of any Issuer pass {x} of {B}, {M} shall write to the Client.",
    ),
    ClauseKind(
        "report_sector", lambda c, t: rule_for(c, t["equities"], "sector"), (12.5, 15, 17.5, 20, 22.5, 25, 30), "report"
    ).worded(
        "{M} shall notify the Client within two business days where {Q} of any one Sector exceed {x} of {B}.",
        "If {Q} of a Sector come to more than {x} of {B}, the monthly report shall say so and give the reason.",
        "A position in {Q} of one Sector above {x} of {B} is to be reported to the Client.",
        "{M} will inform the Client in writing of every Sector whose {Q} are above {x} of {B}.",
        "The Client shall be told when {Q} of a single Sector go beyond {x} of {B}.",
        "An explanation shall be sent to the Client for each Sector in which {Q} over {x} of {B} are held.",
        "Sectors whose {Q} represent more than {x} of {B} shall be listed, with a comment, in the quarterly report.",
        "Once {Q} of any Sector pass {x} of {B}, {M} shall write to the Client.",
    ),
    ClauseKind(
        "report_country",
        lambda c, t: rule_for(c, Every((t["equities"], _ABROAD)), "country"),
        (2, 2.5, 3, 4, 5, 6, 8, 10),
        "report",
    ).worded(
        "{M} shall notify the Client where {Q} of any one Country other than the United States exceed {x} of {B}.",
        "If {Q} of a Country, the United States aside, come to more than {x} of {B}, the monthly report shall say so.",
        "A position in {Q} of one Country, not being the United States, above {x} of {B} is to be reported to the "
        "Client.",
        "{M} will inform the Client in writing of every Country but the United States whose {Q} are above {x} of {B}.",
        "The Client shall be told when {Q} of a single Country, not counting the United States, go beyond {x} of {B}.",
        "An explanation shall be sent to the Client for each Country, the United States apart, in which {Q} over {x} "
        "of {B} are held.",
        "Countries other than the United States whose {Q} represent more than {x} of {B} shall be listed in the "
        "quarterly report.",
        "Once {Q} of any Country apart from the United States pass {x} of {B}, {M} shall write to the Client.",
    ),
    ClauseKind(
        "report_cash", lambda c, t: rule_for(c, among("kind", "cash")), (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10), "report"
    ).worded(
        "{M} shall explain to the Client in writing why cash exceeds {x} of {B} whenever it does.",
        "If cash is more than {x} of {B}, the monthly report shall say so and give the reason.",
        "A cash balance above {x} of {B} in total is to be reported to the Client.",
        "{M} will inform the Client when cash, all currencies together, is above {x} of {B}.",
        "The Client shall be told when cash goes beyond {x} of {B}.",
        "An explanation shall be sent to the Client where more than {x} of {B} is in cash.",
        "Cash in excess of {x} of {B} shall be mentioned, with a comment, in the quarterly report.",
        "Once cash passes {x} of {B}, {M} shall write to the Client.",
    ),
    ClauseKind(
        "report_turnover", turnover_rule, (2, 2.5, 3, 4, 5, 6, 7.5, 10, 12.5, 15, 20), "report", extra=turnover_measure
    ).worded(
        "{M} shall notify the Client where the turnover of a calendar quarter, {how}, exceeds {x} of {B}; {scope}.",
        "If the turnover of a calendar quarter, {how}, comes to more than {x} of {B}, the monthly report shall say so; "
        "{scope}.",
        "Turnover in a calendar quarter of more than {x} of {B} is to be reported to the Client; it is {how}, and "
        "{scope}.",
        "{M} will inform the Client in writing of any turnover in a calendar quarter, {how}, above {x} of {B}; "
        "{scope}.",
        "The Client shall be told when the turnover of a calendar quarter, {how}, goes beyond {x} of {B}; {scope}.",
        "An explanation shall be sent to the Client where turnover in a calendar quarter, {how}, is over {x} of {B}; "
        "{scope}.",
        "Turnover of a calendar quarter, {how}, in excess of {x} of {B} shall be mentioned in the quarterly report; "
        "{scope}.",
        "Once the turnover of a calendar quarter, {how}, passes {x} of {B}, {M} shall write to the Client; {scope}.",
    ),
    ClauseKind(
        "report_top",
        lambda c, t: rule_for(c, t["equities"], "issuer", "top", n=c.extra["n"]),
        (20, 25, 30, 35, 40, 45, 50),
        "report",
        extra=lambda rng, v: {"n": int(rng.choice([5, 8, 10]))},
    ).worded(
        "{M} shall notify the Client where the {n} largest Issuers in {Q} together exceed {x} of {B}.",
        "If the top {n} Issuers in {Q} combined come to more than {x} of {B}, the monthly report shall say so.",
        "A share of the {n} largest Issuers in {Q}, taken together, above {x} of {B} is to be reported to the Client.",
        "{M} will inform the Client in writing when the {Q} of the top {n} Issuers are in total above {x} of {B}.",
        "The Client shall be told when the {n} largest Issuers in {Q} jointly go beyond {x} of {B}.",
        "An explanation shall be sent to the Client where the {Q} of the {n} biggest Issuers add up to over {x} of "
        "{B}.",
        "The {n} largest Issuers in {Q} shall be listed in the quarterly report where their combined weight is more "
        "than {x} of {B}.",
        "Once the sum of the top {n} Issuers in {Q} passes {x} of {B}, {M} shall write to the Client.",
    ),
    ClauseKind(
        "report_days",
        lambda c, t: rule_for(c, t["equities"], "instrument", "days_to_sell", participation=c.extra["p"]),
        (0.5, 1, 2, 3, 4, 5, 8, 10),
        "report",
        unit="days",
        extra=lambda rng, v: {"p": float(rng.choice([10, 15, 20, 25]))},
    ).worded(
        "{M} shall notify the Client of any line of {Q} that would take more than {x} to sell at {p} of average daily "
        "volume.",
        "If a line of {Q} needs over {x} to sell, trading {p} of average daily volume, the monthly report shall say "
        "so.",
        "A line of {Q} that takes more than {x} to sell at {p} of average daily volume is to be reported to the "
        "Client.",
        "{M} will inform the Client in writing of each line of {Q} that cannot be sold within {x} at {p} of average "
        "daily volume.",
        "The Client shall be told when selling a line of {Q} at {p} of average daily volume would take longer than "
        "{x}.",
        "An explanation shall be sent to the Client for every line of {Q} whose time to sell, at {p} of average daily "
        "volume, is above {x}.",
        "Lines of {Q} that need more than {x} to sell at {p} of average daily volume shall be listed in the quarterly "
        "report.",
        "Once a line of {Q} would take over {x} to sell at {p} of average daily volume, {M} shall write to the Client.",
    ),
)
