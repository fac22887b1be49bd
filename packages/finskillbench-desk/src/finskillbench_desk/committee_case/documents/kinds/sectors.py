"""Clause kinds for sectors of the data, and for groups that the document defines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from finskillbench_desk.committee_case.documents.clauses import ClauseKind, among, in_section, rule_for
from finskillbench_desk.committee_case.documents.vocabulary import Vocabulary
from finskillbench_desk.engines.guidelines.language import Every, Filter, Limit, LimitTerm


def _one_sector(rng: np.random.Generator, vocabulary: Vocabulary) -> Mapping[str, Any]:
    return {"sector": str(rng.choice(vocabulary.sectors))}


def _two_sectors(rng: np.random.Generator, vocabulary: Vocabulary) -> Mapping[str, Any]:
    first, other = rng.choice(len(vocabulary.sectors), 2, replace=False)
    return {"sector": vocabulary.sectors[int(first)], "other": vocabulary.sectors[int(other)]}


def _in(equities: Filter, *sectors: str) -> Filter:
    return Every((equities, among("sector", *sectors)))


SECTORS = in_section(
    "Sectors",
    ClauseKind(
        "sector_cap",
        lambda c, t: rule_for(c, t["equities"], "sector"),
        (15, 17.5, 20, 22.5, 25, 27.5, 30, 35, 40),
        carves="sector",
        equity=True,
    ).worded(
        "{Q} of Issuers in any one Sector shall not exceed {x} of {B}{W}.",
        "No Sector may account for more than {x} of {B} by way of {Q}{W}.",
        "{M} may hold {Q} in any one Sector up to a maximum of {x} of {B}{W}.",
        "The {Q} of every Sector are limited, Sector by Sector, to {x} of {B}{W}.",
        "Exposure to each Sector through {Q} must be kept to {x} of {B} or less{W}.",
        "At most {x} of {B} may be in the {Q} of one and the same Sector{W}.",
        "A Sector's {Q} may not together be worth more than {x} of {B}{W}.",
        "{F} may be concentrated in any one Sector, counted in {Q}, only up to {x} of {B}{W}.",
    ),
    ClauseKind(
        "sector_above_benchmark",
        lambda c, t: rule_for(c, t["equities"], "sector", limit=Limit((LimitTerm(c.limit, 1.0),))),
        (2, 3, 4, 5, 6, 7.5, 8, 10, 12),
        unit="points",
    ).worded(
        "No Sector's {Q} may be overweight against the Benchmark by more than {x} of {B}{W}.",
        "The {Q} of a Sector shall represent no more of {B} than that Sector's Benchmark weight plus {x}{W}.",
        "Sector overweights in {Q} relative to the Benchmark are limited to {x} of {B}{W}.",
        "{M} may take the {Q} of any Sector above its Benchmark weight by {x} of {B} at most{W}.",
        "The share of {B} that is in a Sector's {Q} may exceed the Sector's share of the Benchmark by up to {x}{W}.",
        "For every Sector the maximum of {Q}, as a share of {B}, is its weight in the Benchmark increased by {x}{W}.",
        "Against the Benchmark {F} shall not be overweight in the {Q} of any one Sector by over {x} of {B}{W}.",
        "An active overweight in a Sector (its {Q} as a share of {B}, less its Benchmark weight) must not pass {x}{W}.",
    ),
    ClauseKind(
        "sector_below_benchmark",
        lambda c, t: rule_for(
            c, t["equities"], "sector", comparison="at_least", limit=Limit((LimitTerm(-c.limit, 1.0),))
        ),
        (3, 4, 5, 6, 7.5, 8, 10, 12, 15),
        "always",
        unit="points",
    ).worded(
        "No Sector of the Benchmark may be underweight in {Q} by more than {x} of {B}.",
        "The {Q} of each Sector shall represent at least its Benchmark weight less {x} of {B}.",
        "Sector underweights in {Q} relative to the Benchmark must not be larger than {x} of {B}.",
        "{M} shall not let the {Q} of a Sector fall below its Benchmark weight by more than {x} of {B}.",
        "The share of {B} that is in a Sector's {Q} may fall short of the Sector's share of the Benchmark by {x} at "
        "most.",
        "For every Sector the minimum of {Q}, as a share of {B}, is its weight in the Benchmark reduced by {x}.",
        "Against the Benchmark {F} may be underweight in the {Q} of any one Sector by up to {x} of {B} and no more.",
        "An active underweight in a Sector (its Benchmark weight, less its {Q} as a share of {B}) is limited to {x}.",
    ),
    ClauseKind(
        "named_sector_cap",
        lambda c, t: rule_for(c, _in(t["equities"], c.extra["sector"])),
        (5, 7.5, 8, 10, 12, 15, 18, 20),
        equity=True,
        extra=_one_sector,
    ).worded(
        "{Q} of Issuers in the {sector} Sector shall not exceed {x} of {B}{W}.",
        "The {sector} Sector may account for up to {x} of {B} in {Q}{W}.",
        "{M} shall limit {Q} belonging to the {sector} Sector to {x} of {B}{W}.",
        "In the {sector} Sector, {Q} worth more than {x} of {B} are not permitted{W}.",
        "A separate maximum of {x} of {B} applies to {Q} in the {sector} Sector{W}.",
        "{F}'s {Q} in the {sector} Sector must be no more than {x} of {B}{W}.",
        "Holdings of {Q} in the {sector} Sector are capped at {x} of {B}{W}.",
        "For the {sector} Sector alone, {Q} may amount to {x} of {B} at most{W}.",
    ),
    ClauseKind(
        "two_sectors",
        lambda c, t: rule_for(c, _in(t["equities"], c.extra["sector"], c.extra["other"])),
        (10, 12, 15, 20, 25, 30, 35, 40),
        equity=True,
        extra=_two_sectors,
    ).worded(
        "The {sector} and {other} Sectors shall together not exceed {x} of {B} in {Q}{W}.",
        "{Q} of the {sector} Sector and of the {other} Sector, added together, are limited to {x} of {B}{W}.",
        "Combined holdings of {Q} in the {sector} and {other} Sectors may be up to {x} of {B}{W}.",
        "{M} shall keep the total of {Q} in the {sector} and {other} Sectors within {x} of {B}{W}.",
        "No more than {x} of {B} may be in {Q} of the {sector} and {other} Sectors in aggregate{W}.",
        "In aggregate, {Q} from the {sector} and {other} Sectors must not make up over {x} of {B}{W}.",
        "The {sector} and {other} Sectors count as one for this clause, and their {Q} are capped at {x} of {B}{W}.",
        "Taken as a whole, the {Q} of the {sector} and {other} Sectors may not be greater than {x} of {B}{W}.",
    ),
    ClauseKind(
        "sub_sector_cap",
        lambda c, t: rule_for(c, t["equities"], "sub_sector"),
        (6, 7.5, 8, 10, 12, 12.5, 15, 18, 20),
        carves="sub_sector",
        equity=True,
    ).worded(
        "{Q} of Issuers in any one Sub-Sector shall not exceed {x} of {B}{W}.",
        "No Sub-Sector may represent more than {x} of {B} through {Q}{W}.",
        "{M} shall keep the {Q} of each Sub-Sector at {x} of {B} or below{W}.",
        "The {Q} of a single Sub-Sector are limited to {x} of {B}{W}.",
        "Within a Sub-Sector, {Q} may together reach {x} of {B} and must not go beyond it{W}.",
        "{F} may have up to {x} of {B} in the {Q} of one Sub-Sector{W}.",
        "A cap of {x} of {B} applies to {Q}, Sub-Sector by Sub-Sector{W}.",
        "The total of {Q} in the same Sub-Sector is not to be more than {x} of {B}{W}.",
    ),
    ClauseKind(
        "sector_through",
        lambda c, t: rule_for(c, t["equities"], "sector", look_through=True),
        (17.5, 20, 22.5, 25, 30, 32.5, 35, 40),
        carves="sector",
    ).worded(
        "With funds looked through, {Q} of any one Sector shall not exceed {x} of {B}{W}.",
        "Counting {Q} owned indirectly through funds, no Sector may represent more than {x} of {B}{W}.",
        "{M} shall add the {Q} that funds hold in a Sector to those held in it directly and keep the sum within {x} of "
        "{B}{W}.",
        "On a look-through basis, the {Q} of a single Sector are limited to {x} of {B}{W}.",
        "Direct holdings and those inside funds taken together, {x} of {B} is the most that may be in the {Q} of one "
        "Sector{W}.",
        "For this clause funds are replaced by their underlying holdings; the {Q} of a Sector must then be no more "
        "than {x} of {B}{W}.",
        "Holdings of {Q} in the same Sector, those of funds in which {F} has units being added, may come to {x} of {B} "
        "at most{W}.",
        "Looking through to the assets of every fund, {F} may have no Sector whose {Q} are above {x} of {B}{W}.",
    ),
    ClauseKind(
        "group_cap",
        lambda c, t: rule_for(c, Every((t["equities"], t["group"]))),
        (10, 12, 15, 20, 22, 25, 30, 33, 35),
        uses=("group",),
        equity=True,
    ).worded(
        "{Q} of {T} shall not exceed {x} of {B}{W}.",
        "{T} may together account for up to {x} of {B} in {Q}{W}.",
        "{M} shall limit the {Q} of all {T} combined to {x} of {B}{W}.",
        "No more than {x} of {B} may be represented by {Q} of {T}{W}.",
        "Holdings of {Q} in {T} are in total capped at {x} of {B}{W}.",
        "{F}'s {Q} of {T} must, added together, be {x} of {B} or less{W}.",
        "The combined {Q} of {T} may not be worth more than {x} of {B}{W}.",
        "As to {T}, a maximum of {x} of {B} applies to the sum of their {Q}{W}.",
    ),
    ClauseKind(
        "group_floor",
        lambda c, t: rule_for(c, Every((t["equities"], t["theme"])), comparison="at_least"),
        (2, 3, 4, 5, 7.5, 8, 10, 12, 15, 20),
        "always",
        uses=("theme",),
        equity=True,
    ).worded(
        "{Q} of {T} shall represent at least {x} of {B}.",
        "A minimum of {x} of {B} must be held in the {Q} of {T}.",
        "{M} shall maintain no less than {x} of {B} in {Q} of {T}.",
        "The {Q} of {T} may not fall below {x} of {B}.",
        "{F} shall have {x} of {B} or more in {Q} of {T}.",
        "Together the {Q} of {T} must never be worth less than {x} of {B}.",
        "Not less than {x} of {B} is to consist of {Q} of {T}.",
        "{T} shall make up a share of {B}, in {Q}, of at least {x}.",
    ),
)
