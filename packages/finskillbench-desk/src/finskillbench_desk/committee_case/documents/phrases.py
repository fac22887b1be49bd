"""Phrases of guideline documents: timing, exceptions, interpretation and amendments."""

from __future__ import annotations

from collections.abc import Mapping

ALWAYS = (
    ", and this applies at all times",
    ", a limit tested every day",
    ", both upon purchase and afterwards",
    ", on every day and not only at purchase",
    ", whether or not anything is being bought",
    ", whatever the cause of a breach",
    ", a limit to be complied with continuously",
    ", market movements and flows being no excuse",
)
PURCHASE = (
    ", tested only when a purchase is made",
    ", at the time of purchase and not afterwards",
    ", to be tested upon each purchase and at no other time",
    ", this being tested only when something is being bought",
    ", measured immediately after a purchase, later movements in value being disregarded",
    ", as a test on purchases only",
    ", judged solely at the time of acquisition",
    ", tested whenever a purchase is made, and only then",
)
RAISED = (
    "For {one} the limit is {y}.",
    "In the case of {one}, a limit of {y} applies instead.",
    "As regards {one}, the figure is {y}.",
    "Where {one} is concerned, that figure is replaced by {y}.",
    "A limit of {y} is set for {one}.",
    "That limit is {y} in respect of {one}.",
    "{one} has a limit of {y} instead.",
    "A different limit of {y} applies to {one}.",
)
EXEMPT = (
    "This does not apply to {who}.",
    "{who} {are} exempt.",
    "{who} {are} left out of account.",
    "The clause does not extend to {who}.",
    "There is no such limit for {who}.",
    "{who} {are} not subject to this limit.",
    "{who} {are} outside this clause.",
    "No limit of this kind applies to {who}.",
)
SPARED = (
    ", save for corporate and government bonds",
    ", corporate and government bonds excepted",
    "; corporate and government bonds are exempt",
    ", other than corporate and government bonds",
    "; this does not extend to corporate and government bonds",
    ", except corporate and government bonds",
    ", with the exception of corporate and government bonds",
    "; corporate and government bonds are not affected",
)
NOTWITHSTANDING = (
    "Notwithstanding clause {c}, {one} may represent up to {y} of {B}.",
    "Despite the limit in clause {c}, {one} is allowed up to {y} of {B}.",
    "Clause {c} notwithstanding, holdings in {one} may come to {y} of {B}.",
    "For the purpose of clause {c}, the limit for {one} is {y} of {B}.",
    "By way of derogation from clause {c}, a limit of {y} of {B} applies to {one}.",
    "As an exception to clause {c}, {one} may come to {y} of {B}.",
    "Clause {c} applies to {one} with a limit of {y} of {B} in place of the general one.",
    "The limit of clause {c} is replaced, for {one} only, by {y} of {B}.",
)
PRECEDENCE = (
    "{who} {are} governed by clause {d} alone, and clause {c} does not apply to {them}.",
    "Clauses {c} and {d} might both be thought to apply to {who}; clause {d} prevails and clause {c} does not apply to "
    "{them}.",
    "Clause {d} takes precedence over clause {c}: {who} {are} not counted under the latter.",
    "As between clauses {c} and {d}, only the latter applies to {who}.",
    "{who} {are} a matter for clause {d} and outside clause {c}.",
    "Clause {c} is disapplied for {who}, for which clause {d} provides.",
    "Because clause {d} deals with {who}, clause {c} shall leave {them} out.",
    "{who} {are} exempt from clause {c}, clause {d} being the one that applies to {them}.",
)
"""Clauses that grant an exception to another clause."""

AT_PURCHASE = (
    "Unless a clause says otherwise, a maximum share of {N} or of {V}, fixed or relative to the Benchmark, is tested "
    "only when something that counts towards it is purchased; an excess that arises in any other way is no breach. "
    "Minimums, prohibitions, turnover and reporting thresholds apply at all times.",
    "Maximum shares of {N} and of {V}, absolute or against the Benchmark, are purchase tests where a clause is silent: "
    "they are broken only by buying what they cover, never by markets or flows. All minimums, prohibitions, turnover "
    "limits and reporting thresholds are continuous.",
    "Where nothing is said in a clause about timing, a maximum expressed as a share of {N} or {V}, even one that "
    "depends on the Benchmark, applies upon a purchase of something it covers and at no other time. Minimums, "
    "prohibitions, turnover and reporting thresholds apply every day.",
    "A clause that sets a maximum share of {N} or {V} (with or without reference to the Benchmark) and does not state "
    "when it is tested is tested at purchase of what counts towards it; passive excesses are not breaches. "
    "Prohibitions, minimums, turnover and reporting thresholds apply throughout.",
    "The default for maximums stated as a share of {N} or {V}, those measured against the Benchmark included, is that "
    "they bind at the time of purchase of what they cover, and not otherwise. There is no such default for minimums, "
    "prohibitions, turnover and reporting thresholds, which are permanent.",
    "In the absence of other words in a clause, and even where the Benchmark enters into it, only a purchase can "
    "breach a maximum share of {N} or {V}, and only a purchase of what is counted there. Turnover, prohibitions, "
    "minimums and reporting thresholds are tested constantly.",
    "{M} tests maximum shares of {N} or {V}, fixed or in terms of the Benchmark, when buying something that they "
    "cover; what happens later is not a breach, unless the clause itself provides that it is. Minimums, prohibitions, "
    "turnover and reporting thresholds are always tested.",
    "If a clause setting a maximum share of {N} or {V} (or one by reference to the Benchmark) has no words on timing, "
    "it is an acquisition test, failed only through buying what it counts. Acquisition is irrelevant to minimums, "
    "prohibitions, turnover and reporting thresholds.",
)
AT_ALL_TIMES = (
    "Unless a clause says otherwise, every limit applies at all times, and an excess that arises without a purchase is "
    "a breach as well. A clause tested upon purchase is breached only by buying what it counts.",
    "Where nothing is said in a clause about timing, it is tested every day; whether the excess comes from trading or "
    "from the market makes no difference. If a clause speaks of purchases, those of what it covers are meant.",
    "A limit is continuous where its clause is silent on when it is tested, and passive excesses count. A test at "
    "purchase looks only at purchases of what falls under the clause.",
    "A clause that does not state when it is tested is tested at all times, not only when something is bought. Where "
    "it does refer to purchases, it means purchases of what is counted there.",
    "The default is that limits are permanent: market movements and flows can breach them just as purchases can. A "
    "limit said to apply at purchase can be breached only by buying something within it.",
    "In the absence of other words in a clause, its limit is to be kept on each day, irrespective of what caused an "
    "excess. Tests at purchase concern the purchase of what the clause limits, and no other.",
    "{M} tests limits daily, and passive excesses are breaches, unless the clause itself provides for a test at "
    "purchase only, which is one upon buying what the clause covers.",
    "If a clause has no words on timing, it holds at all times. Nothing is excused because no purchase was made, "
    "unless the clause is a test on purchases, that is, on purchases of what it counts.",
)
READING = (
    "Sector, Sub-Sector, Country and Issuer are as shown in the security master. Funds are not looked through and "
    "futures do not count, except where a clause provides for it.",
    "The security master decides what the Issuer, Country, Sector and Sub-Sector of an instrument are. Only where a "
    "clause says so are funds looked through or futures included.",
    "For Issuer, Country, Sector and Sub-Sector the entries of the security master are used. Futures are disregarded, "
    "and a fund is an asset of its own, unless a clause provides otherwise.",
    "An instrument has the Sector, Sub-Sector, Country and Issuer recorded in the security master. Futures and what "
    "funds own are taken into account by those clauses alone that mention them.",
    "Issuer, Sector, Sub-Sector and Country have the values of the security master. No clause counts futures or the "
    "holdings of funds without expressly saying it.",
    "What the security master gives as Country, Issuer, Sector and Sub-Sector is conclusive. Clauses leave futures "
    "aside and take funds as they are, unless they state the contrary.",
    "The terms Issuer, Country, Sector and Sub-Sector follow the security master. A fund's own holdings, like futures, "
    "matter only to clauses which refer to them.",
    "As to Country, Sector, Sub-Sector and Issuer, the security master prevails over any other source. Neither "
    "look-through of funds nor the counting of futures is implied.",
)
ORDER = (
    "A clause that grants an exception to another prevails over it, but over no third clause. Amendments prevail over "
    "the text that they amend, later ones over earlier ones. A duty to report is not a limit.",
    "An exception prevails over the clause to which it is made and over no other; a later amendment prevails over an "
    "earlier one and over the original text. Reporting thresholds restrict nothing.",
    "In case of conflict the more recent amendment governs, and an exception governs as against the one clause from "
    "which it departs. Every other clause remains to be complied with. Exceeding a threshold of the reporting section "
    "is no breach.",
    "Amendments are read in their order, each upon the text left by the one before. Exceptions override the clauses "
    "for which they are made, not what other clauses say of the same holdings. What must merely be reported is "
    "permitted.",
    "The text as last amended applies. What is excepted from one clause remains subject to all others. Thresholds for "
    "reporting are not investment limits.",
    "Exceptions are stronger than the rule to which they belong, though not than other rules, and amendments are "
    "stronger than the text they change. Nothing in the section on reporting limits what may be held.",
    "To the extent that an amendment changes a clause, the former wording is of no effect. Exceptions displace the "
    "limit to which they relate and leave the remaining limits untouched. Reporting does not imply a breach.",
    "Every amendment takes the place of earlier wording. An exception displaces its clause for what it covers, and the "
    "other clauses continue to apply to that. To pass a reporting threshold is allowed, provided that it is reported.",
)
VALUES = (
    "{n} means all assets, cash included, less all liabilities; {v} means the market value of {Q} held directly.",
    "{n} is the value of everything owned, with cash, after deduction of liabilities, and {v} is the market value of "
    "directly held {Q}.",
    "{n} shall mean total assets, with cash, minus liabilities. {v} shall mean the market value of the {Q} that are "
    "held directly.",
    "{v} means what the directly held {Q} are worth at market, and {n} means assets, including cash, net of "
    "liabilities.",
    "{n} stands for assets (with cash) less liabilities. {v} stands for the market value of {Q}, direct holdings only.",
    "The net value of all assets and liabilities, cash included, is {n}; the value of directly held {Q} alone, at "
    "market, is {v}.",
    "{v} refers to the market value of all {Q} held directly. {n} refers to total assets, cash among them, less what "
    "is owed.",
    "{n} denotes the sum of all assets and of cash, reduced by liabilities. {v} denotes the market value of direct "
    "holdings of {Q}.",
)

AMENDED: Mapping[str, tuple[str, ...]] = {
    "number": (
        "In clause {c}, “{old}” is replaced by “{new}”.",
        "The limit of {old} in clause {c} becomes {new}.",
        "Clause {c} shall be read with {new} in place of {old}.",
        "In clause {c} the figure of {new} is substituted for that of {old}.",
        "For “{old}” in clause {c} there shall be read “{new}”.",
        "The figure in clause {c} is changed from {old} to {new}.",
        "Clause {c} is amended by deleting “{old}” and inserting “{new}”.",
        "With effect from the date of this amendment the {old} of clause {c} shall be {new}.",
    ),
    "basis": (
        "In clause {c}, “{old}” is replaced by “{new}”.",
        "The denominator in clause {c} shall be {new} and no longer {old}.",
        "Clause {c} shall be read with {new} in place of {old}.",
        "The words “{new}” are substituted for “{old}” in clause {c}.",
        "For “{old}” in clause {c} there shall be read “{new}”.",
        "The percentage of clause {c} is henceforth measured against {new} and not against {old}.",
        "Clause {c} is amended by deleting “{old}” and inserting “{new}”.",
        "What clause {c} states as a share of {old} becomes a share of {new}.",
    ),
    "timing": (
        "Clause {c} shall henceforth be tested {timing}, whatever it said before.",
        "The test of clause {c} is from now on made {timing}.",
        "Clause {c} is amended so that it is tested {timing}.",
        "Clause {c} applies {timing}; wording to another effect is deleted.",
        "For clause {c} the time of testing is changed: it is tested {timing}.",
        "From the date of this amendment clause {c} is to be complied with {timing}.",
        "In clause {c}, a test made {timing} takes the place of the former one.",
        "The parties agree that clause {c} shall be tested {timing}.",
    ),
    "replace": (
        "Clause {c} is deleted and replaced by the following: “{text}”",
        "The following is substituted for clause {c}: “{text}”",
        "Clause {c} shall read in its entirety as follows: “{text}”",
        "For clause {c} there is substituted: “{text}”",
        "The text of clause {c} is withdrawn. In its place: “{text}”",
        "Clause {c} is restated as: “{text}”",
        "Clause {c} is struck out, and these words take its place: “{text}”",
        "Clause {c} is amended and restated, so that it says: “{text}”",
    ),
    "delete": (
        "Clause {c} is deleted.",
        "Clause {c} ceases to apply.",
        "Clause {c} is repealed and its number left vacant.",
        "The parties delete clause {c}.",
        "Clause {c} is withdrawn in its entirety and not replaced.",
        "Clause {c} is of no further effect.",
        "There shall no longer be a clause {c}.",
        "Clause {c} is removed from these guidelines.",
    ),
    "insert": (
        "A new clause {c} is inserted: “{text}”",
        "The following clause {c} is added: “{text}”",
        "A clause {c} is inserted after the last clause of its section, reading: “{text}”",
        "There is added, as clause {c}: “{text}”",
        "These guidelines are extended by clause {c}: “{text}”",
        "The parties add a clause {c} in these words: “{text}”",
        "Clause {c} is introduced as follows: “{text}”",
        "As a further limit, clause {c} is added: “{text}”",
    ),
    "exception_add": (
        "At the end of clause {c} is added: “{text}”",
        "Clause {c} is supplemented by this sentence: “{text}”",
        "To clause {c} the following is appended: “{text}”",
        "Clause {c} shall continue, after its last sentence: “{text}”",
        "The following exception is added to clause {c}: “{text}”",
        "Clause {c} gains a further sentence: “{text}”",
        "In clause {c} there is inserted at the end: “{text}”",
        "An additional sentence closes clause {c}: “{text}”",
    ),
    "exception_drop": (
        "The exception in clause {c} for {who} is deleted.",
        "Clause {c} shall no longer contain an exception for {who}.",
        "The last sentence of clause {c}, which contains an exception for {who}, is struck out.",
        "Clause {c} no longer excepts {who}.",
        "The sentence of clause {c} that grants {who} an exception is repealed.",
        "Clause {c} henceforth applies without its exception for {who}.",
        "From clause {c} the exception for {who} is removed.",
        "The parties withdraw the exception that clause {c} makes for {who}.",
    ),
    "definition_in": (
        "In the definition of {term}, {word} is added.",
        "{word} shall fall within {term} from now on.",
        "The definition of {term} is extended to {word}.",
        "{term} shall henceforth include {word}.",
        "{word} is inserted in the definition of {term}.",
        "To the definition of {term} there is added {word}.",
        "The scope of {term} is widened so as to cover {word} too.",
        "The definition of {term} is amended by adding {word}.",
    ),
    "definition_out": (
        "In the definition of {term}, {word} is deleted.",
        "{word} shall no longer fall within {term}.",
        "The definition of {term} ceases to cover {word}.",
        "{term} shall henceforth exclude {word}.",
        "{word} is struck from the definition of {term}.",
        "From the definition of {term} there is removed {word}.",
        "The scope of {term} is narrowed so as not to cover {word}.",
        "The definition of {term} is amended by taking out {word}.",
    ),
    "definition_number": (
        "In the definition of {term}, {old} is replaced by {new}.",
        "The threshold in the definition of {term} becomes {new} instead of {old}.",
        "The definition of {term} shall be read with {new} in place of {old}.",
        "For {old} in the definition of {term} there is substituted {new}.",
        "The figure in the definition of {term} is changed from {old} to {new}.",
        "{new} takes the place of {old} in the definition of {term}.",
        "The {old} in the definition of {term} shall be {new}.",
        "The definition of {term} is amended by deleting {old} and inserting {new}.",
    ),
}
"""Items of an amendment by operation."""
TIMING = {
    "always": ("at all times", "every day and not only at purchase", "continuously", "both at purchase and afterwards"),
    "purchase": (
        "at the time of purchase only",
        "when a purchase is made and not otherwise",
        "upon purchases and at no other time",
        "solely when something is bought",
    ),
}
HOW = {
    "half": (
        "half of the total of purchases and sales",
        "half the sum of purchases and sales",
        "one half of all purchases and sales",
    ),
    "lesser": ("the lesser of purchases and sales", "the smaller of purchases and sales"),
    "greater": ("the greater of purchases and sales", "the larger of purchases and sales"),
    "sum": ("the sum of purchases and sales", "purchases and sales added together"),
}
HOW_LEADS = ("taken as", "measured as", "computed as", "defined as")
SCOPE = {
    "all": (
        "trades done so far and pending orders both count",
        "pending orders count as well as what has been executed",
        "what is pending is added to what the quarter has already used",
    ),
    "used": (
        "pending orders do not count until they are executed",
        "only executed trades count, and orders still pending do not",
        "executed trades are included and pending orders left out",
    ),
}
OPENINGS = (
    "These guidelines form part of the investment management agreement between {client} (the “Client”) and {firm} (the "
    "“{m}”) and govern the management of the assets placed under it (the “{f}”). The Benchmark is the one named in "
    "that agreement.",
    "{firm} (the “{m}”) manages certain assets (the “{f}”) on behalf of {client} (the “Client”) within the limits set "
    "out below. The Benchmark is that of the agreement to which these limits are attached.",
    "This is the schedule of investment limits to the appointment by {client} (the “Client”) of {firm} (the “{m}”) as "
    "manager of the assets described there (the “{f}”). “Benchmark” is used as in the appointment.",
    "The discretion of {firm} (the “{m}”) over the assets that {client} (the “Client”) has entrusted to it (the “{f}”) "
    "is subject to what follows. The Benchmark is agreed separately.",
    "These limits were adopted by {client} (the “Client”) for the assets (the “{f}”) that {firm} (the “{m}”) manages "
    "for it. Comparisons are with the Benchmark of the appointment letter.",
    "By these guidelines {client} (the “Client”) instructs {firm} (the “{m}”) how the assets under its management (the "
    "“{f}”) may be invested. References to the Benchmark are to the one chosen in the management agreement.",
    "This annex states how {firm} (the “{m}”) may invest the assets that {client} (the “Client”) has placed under its "
    "management (the “{f}”). The Benchmark is identified in the main agreement.",
    "{client} (the “Client”) and {firm} (the “{m}”) have agreed that the assets managed for the former (the “{f}”) are "
    "run under the following limits, measured where relevant against the Benchmark of their agreement.",
)
CLIENTS = (
    "the Harrow Vale Pension Scheme",
    "Saint Bride's College",
    "the Lindqvist Foundation",
    "Northgate Mutual Insurance",
    "the Teachers' Retirement Fund of Marlow County",
    "the Okafor Family Trust",
    "Pelham Reinsurance",
    "the Endowment of Ashdown Hospital",
    "the Seafarers' Provident Fund",
    "Carrow Municipal Employees' Plan",
    "the Bellamy Arts Trust",
    "Westmere Life",
)
FIRMS = (
    "Aldgate Partners",
    "Brightwater Asset Management",
    "Corvid Capital",
    "Dunmore & Hale",
    "Eastlake Investors",
    "Fenwick Stone",
    "Greyfriars Management",
    "Hollis Pryce",
    "Ivybridge Advisers",
    "Juniper Row",
)
