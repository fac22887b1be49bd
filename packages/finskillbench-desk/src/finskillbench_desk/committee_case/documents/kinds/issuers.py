"""Clause kinds for single issuers and concentration."""

from __future__ import annotations

from finskillbench_desk.committee_case.documents.clauses import ClauseKind, in_section, rule_for
from finskillbench_desk.engines.guidelines.language import Limit, LimitTerm

ISSUERS = in_section(
    "Issuers",
    ClauseKind(
        "issuer_cap",
        lambda c, t: rule_for(c, t["securities"], "issuer"),
        (3, 4, 5, 6, 7, 7.5, 8, 9, 10, 12, 15),
        carves="issuer",
        equity=True,
    ).worded(
        "The {S} of any one Issuer shall not exceed {x} of {B}{W}.",
        "{F} may hold {S} of a single Issuer up to {x} of {B} and no further{W}.",
        "No more than {x} of {B} may be represented by {S} of the same Issuer{W}.",
        "{M} shall keep the combined value of all {S} of any one Issuer, every class taken together, at or below {x} "
        "of {B}{W}.",
        "Exposure to an individual Issuer through {S} of every class is limited to {x} of {B}{W}.",
        "Holdings of {S} of one and the same Issuer are added together and may not be greater than {x} of {B}{W}.",
        "A single Issuer's {S}, whatever their class, must not account for more than {x} of {B}{W}.",
        "{M} may not allow the {S} of any Issuer to make up more than {x} of {B}{W}.",
    ),
    ClauseKind(
        "line_cap", lambda c, t: rule_for(c, t["equities"], "instrument"), (2.5, 3, 4, 5, 6, 7, 8, 10), equity=True
    ).worded(
        "No single line of {Q}, each class being counted by itself, may exceed {x} of {B}{W}.",
        "Each class of {Q} is a separate line for this clause, and no line may amount to more than {x} of {B}{W}.",
        "Taken line by line, a holding of {Q} must stay within {x} of {B}{W}.",
        "{M} shall limit every individual line of {Q}, without adding different classes together, to {x} of {B}{W}.",
        "An individual line of {Q} (classes of the same Issuer not being combined) is capped at {x} of {B}{W}.",
        "The value of one line of {Q} shall be no higher than {x} of {B}{W}; classes are looked at one by one.",
        "Separately from what is held of an Issuer as a whole, any one line of {Q} is restricted to {x} of {B}{W}.",
        "{F} shall have no line of {Q} worth more than {x} of {B}{W}, each class being a line of its own.",
    ),
    ClauseKind(
        "issuer_above_benchmark",
        lambda c, t: rule_for(c, t["equities"], "issuer", limit=Limit((LimitTerm(c.limit, 1.0),))),
        (1, 1.5, 2, 2.5, 3, 4, 5),
        carves="issuer",
        unit="points",
    ).worded(
        "The weight of the {Q} of an Issuer in {B} may exceed its weight in the Benchmark by {x} at most{W}.",
        "No Issuer's {Q} may be overweight against the Benchmark by more than {x} of {B}{W}.",
        "Active overweights in the {Q} of any one Issuer are limited to {x} above its Benchmark weight, as a share of "
        "{B}{W}.",
        "{M} shall hold the {Q} of each Issuer at a share of {B} not higher than its Benchmark weight plus {x}{W}.",
        "Relative to the Benchmark, {F} may be overweight in the {Q} of an Issuer by up to {x} of {B}{W}.",
        "The {Q} of any Issuer must not make up more of {B} than the Benchmark weight of that Issuer increased by "
        "{x}{W}.",
        "An Issuer's share of {B}, counted in {Q}, less its share of the Benchmark shall be no more than {x}{W}.",
        "For each Issuer the ceiling on its {Q}, as a share of {B}, is the weight that it has in the Benchmark and a "
        "further {x}{W}.",
    ),
    ClauseKind(
        "issuer_multiple",
        lambda c, t: rule_for(
            c, t["equities"], "issuer", limit=Limit((LimitTerm(c.limit), LimitTerm(0.0, c.extra["k"])), "greater_of")
        ),
        (2, 2.5, 3, 4, 5, 6),
        extra=lambda rng, v: {"k": float(rng.choice([1.25, 1.5, 2.0, 2.5]))},
    ).worded(
        "The {Q} of an Issuer may represent up to the greater of {x} of {B} and {k} times its weight in the "
        "Benchmark{W}.",
        "For any one Issuer, {Q} are capped at {x} of {B} or at {k} times its Benchmark weight, whichever is the "
        "higher{W}.",
        "No Issuer's {Q} may exceed both {x} of {B} and {k} times the Benchmark weight of that Issuer{W}.",
        "{M} shall confine the {Q} of each Issuer to the larger of two figures: {x} of {B}, and {k} times what the "
        "Benchmark holds of it{W}.",
        "The {Q} of an Issuer are subject to a ceiling of {x} of {B} or, where this is higher, of {k} times its "
        "Benchmark weight{W}.",
        "{F} may hold {Q} of any one Issuer up to {k} times its weight in the Benchmark, and in any case up to {x} of "
        "{B}{W}.",
        "The higher of {k} times an Issuer's Benchmark weight and {x} of {B} is the most that its {Q} may come to{W}.",
        "The {Q} of a single Issuer must not be above {x} of {B}, unless {k} times its Benchmark weight is more, in "
        "which case the latter is the maximum{W}.",
    ),
    ClauseKind(
        "large_positions",
        lambda c, t: rule_for(c, t["securities"], "issuer", "sum_above", above=c.extra["y"]),
        (15, 20, 25, 30, 35, 40, 45, 50, 60),
        extra=lambda rng, v: {"y": float(rng.choice([3, 4, 5]))},
    ).worded(
        "Issuers whose {S} each exceed {y} of {B} shall together represent no more than {x} of {B}{W}.",
        "The sum of all positions above {y} of {B} in the {S} of any one Issuer is limited to {x} of {B}{W}.",
        "Where the {S} of an Issuer come to more than {y} of {B}, they count towards an aggregate that may not exceed "
        "{x} of {B}{W}.",
        "{M} shall see that large positions, being {S} of an Issuer of over {y} of {B}, do not add up to more than {x} "
        "of {B}{W}.",
        "The total of {S} of all Issuers of which {F} holds more than {y} of {B}, each counted in full, must remain "
        "within {x} of {B}{W}.",
        "No more than {x} of {B} may in aggregate be held in Issuers whose {S} individually exceed {y} of {B}{W}.",
        "Positions of more than {y} of {B} in the {S} of an Issuer are permitted up to a combined {x} of {B}, counting "
        "each in full{W}.",
        "The aggregate of the {S} of all Issuers whose {S} make up a share of {B} above {y} must not pass {x} of "
        "{B}{W}.",
    ),
    ClauseKind(
        "top_n",
        lambda c, t: rule_for(c, t["equities"], "issuer", "top", n=c.extra["n"]),
        (20, 25, 30, 35, 40, 45, 50, 55, 60, 70),
        extra=lambda rng, v: {"n": int(rng.choice([5, 8, 10, 12]))},
    ).worded(
        "The {n} largest Issuers by value of {Q} held shall not together exceed {x} of {B}{W}.",
        "No more than {x} of {B} may be held in the {Q} of the {n} largest Issuers combined{W}.",
        "{M} shall limit the {Q} of the {n} biggest Issuers, taken together, to {x} of {B}{W}.",
        "Concentration in the top {n} Issuers, counted in {Q}, must stay at or below {x} of {B}{W}.",
        "The combined weight of the {Q} of the top {n} Issuers is capped at {x} of {B}{W}.",
        "Together the {n} Issuers of which {F} holds the most {Q} may account for {x} of {B} at most{W}.",
        "Ranked by {Q} held, the first {n} Issuers must not make up more than {x} of {B}{W}.",
        "A maximum of {x} of {B} applies to the total of the {n} largest Issuers in {Q}{W}.",
    ),
    ClauseKind(
        "ownership",
        lambda c, t: rule_for(c, t["equities"], "issuer", "ownership"),
        (0.5, 1, 2, 3, 4.5, 4.9, 5, 7.5, 9.9),
        "other",
    ).worded(
        "{F} shall own no more than {x} of the market capitalisation of any Issuer through {Q}{W}.",
        "The {Q} held of an Issuer may not exceed {x} of that Issuer's market capitalisation{W}.",
        "Ownership of any one Issuer by way of {Q} is limited to {x} of its market capitalisation{W}.",
        "{M} shall not let {F} own {Q} worth more than {x} of an Issuer's market capitalisation{W}.",
        "Measured against the market capitalisation of the Issuer, a holding of its {Q} must be {x} or less{W}.",
        "Of each Issuer's market capitalisation, {x} is the largest part that {F} may own in {Q}{W}.",
        "No holding of {Q} may pass {x} of the market capitalisation of the company concerned{W}.",
        "A stake in {Q} in excess of {x} of the market capitalisation of an Issuer is not permitted{W}.",
    ),
    ClauseKind(
        "issuer_through",
        lambda c, t: rule_for(c, t["securities"], "issuer", look_through=True),
        (4, 5, 6, 7, 8, 9, 10, 12),
        carves="issuer",
    ).worded(
        "With funds looked through, the {S} of any one Issuer shall not exceed {x} of {B}{W}.",
        "Counting what {F} owns indirectly through funds, no Issuer's {S} may represent more than {x} of {B}{W}.",
        "{M} shall add to the {S} of an Issuer those in the portfolios of funds held, and keep the sum within {x} of "
        "{B}{W}.",
        "On a look-through basis, {S} of a single Issuer are limited to {x} of {B}{W}.",
        "Direct holdings and those inside funds taken together, {x} of {B} is the most that may be in the {S} of one "
        "Issuer{W}.",
        "Units of funds are replaced by the funds' underlying holdings for this clause, under which the {S} of an "
        "Issuer must not go beyond {x} of {B}{W}.",
        "The {S} of the same Issuer, whether held directly or by a fund in which {F} has units, may together come to "
        "no more than {x} of {B}{W}.",
        "Looking through to the assets of every fund, the {S} of no Issuer may be above {x} of {B}{W}.",
    ),
    ClauseKind(
        "fewest_issuers",
        lambda c, t: rule_for(c, t["equities"], "issuer", "count", "at_least"),
        (15, 20, 25, 30, 35, 40, 45, 50, 60),
        "always",
        unit="number",
    ).worded(
        "{F} shall hold {Q} of at least {x} different Issuers.",
        "At all times the {Q} held shall be spread over no fewer than {x} Issuers.",
        "The number of Issuers whose {Q} are held must not fall below {x}.",
        "{M} shall maintain {Q} of a minimum of {x} Issuers.",
        "A minimum of {x} Issuers must be represented among the {Q}.",
        "There shall never be fewer than {x} Issuers of which {Q} are held.",
        "Diversification requires {Q} of {x} or more Issuers.",
        "The {Q} of not fewer than {x} separate Issuers are to be held.",
    ),
    ClauseKind(
        "most_issuers",
        lambda c, t: rule_for(c, t["equities"], "issuer", "count"),
        (20, 25, 30, 40, 50, 60, 70, 80, 90, 100, 120, 150),
        "other",
        unit="number",
    ).worded(
        "{F} shall not hold {Q} of more than {x} Issuers{W}.",
        "The number of Issuers of which {Q} are held may not be greater than {x}{W}.",
        "To remain focused, {F} is restricted to {Q} of {x} Issuers at most{W}.",
        "{M} shall confine the {Q} to a maximum of {x} Issuers{W}.",
        "Not more than {x} Issuers may be represented among the {Q}{W}.",
        "The {Q} held must come from {x} or fewer Issuers{W}.",
        "An upper limit of {x} applies to the number of Issuers whose {Q} are held{W}.",
        "{Q} of at most {x} different Issuers may be held{W}.",
    ),
)
