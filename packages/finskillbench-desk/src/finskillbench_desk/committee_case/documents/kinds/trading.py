"""Clause kinds for size, liquidity, turnover, active share and averages."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from finskillbench_desk.committee_case.documents.clauses import (
    Clause,
    ClauseKind,
    TermFilters,
    among,
    in_section,
    rule_for,
)
from finskillbench_desk.committee_case.documents.vocabulary import Vocabulary
from finskillbench_desk.engines.guidelines.language import EVERYTHING, Every, Range, Rule

_BONDS = among("kind", "corporate_bond", "government_bond")


def turnover_rule(clause: Clause, meanings: TermFilters) -> Rule:
    """Return a limit of turnover, as `turnover_measure` draws it."""
    del meanings
    measure = {key: clause.extra[key] for key in ("convention", "trades")}
    return rule_for(clause, EVERYTHING, measure_kind="turnover", **measure)


def turnover_measure(rng: np.random.Generator, vocabulary: Vocabulary) -> Mapping[str, str]:
    """Draw how turnover is measured, and which trades count."""
    del vocabulary
    convention = str(rng.choice(["half", "lesser", "greater", "sum"]))
    return {"convention": convention, "trades": str(rng.choice(["used", "all", "all"]))}


TRADING = in_section(
    "Portfolio characteristics",
    ClauseKind(
        "small_cap",
        lambda c, t: rule_for(c, Every((t["equities"], t["small"]))),
        (3, 4, 5, 7.5, 8, 10, 12, 15, 20, 25),
        uses=("small",),
        equity=True,
    ).worded(
        "{Q} of Small Companies shall not exceed {x} of {B}{W}.",
        "No more than {x} of {B} may be in {Q} of Small Companies{W}.",
        "{M} shall limit the {Q} of Small Companies in total to {x} of {B}{W}.",
        "Small Companies may together account for up to {x} of {B} in {Q}{W}.",
        "All {Q} of Small Companies combined are capped at {x} of {B}{W}.",
        "{F} may own {Q} of Small Companies for a sum of {x} of {B} at most{W}.",
        "The sum of {Q} of Small Companies must be {x} of {B} or less{W}.",
        "As to Small Companies, their {Q} may add up to {x} of {B} and not more{W}.",
    ),
    ClauseKind(
        "days_to_sell",
        lambda c, t: rule_for(c, t["equities"], "instrument", "days_to_sell", participation=c.extra["p"]),
        (1, 2, 3, 4, 5, 8, 10, 15, 20),
        "other",
        unit="days",
        extra=lambda rng, v: {"p": float(rng.choice([10, 15, 20, 25, 30]))},
    ).worded(
        "At {p} of average daily volume, no line of {Q} shall take more than {x} to sell{W}.",
        "Each line of {Q} must be saleable in {x} or less, trading {p} of its average daily volume{W}.",
        "{M} shall hold no line of {Q} that could not be sold within {x} at {p} of average daily volume{W}.",
        "Every line of {Q} is to be liquid enough to be sold in at most {x}, assuming {p} of average daily volume{W}.",
        "The slowest line of {Q} may need up to {x} to sell at a rate of {p} of average daily volume{W}.",
        "Assuming participation of {p} in average daily volume, the time to sell any line of {Q} is limited to {x}{W}.",
        "A line of {Q} may not exceed what can be sold in {x} at {p} of average daily volume{W}.",
        "For no line of {Q} may the days to sell, at {p} of average daily volume, be greater than {x}{W}.",
    ),
    ClauseKind(
        "sellable",
        lambda c, t: rule_for(
            c, EVERYTHING, measure_kind="sellable", comparison="at_least", days=c.extra["d"], participation=c.extra["p"]
        ),
        (20, 30, 40, 50, 60, 70, 75, 80, 85, 90),
        "always",
        extra=lambda rng, v: {"p": float(rng.choice([10, 15, 20, 25])), "d": float(rng.choice([2, 3, 5, 10]))},
    ).worded(
        "At {p} of average daily volume, assets worth at least {x} of {B} shall be saleable within {d}, cash counting "
        "in full.",
        "{M} shall be able to turn no less than {x} of {B} into cash within {d} at {p} of average daily volume, "
        "existing cash included.",
        "It must be possible to raise {x} of {B} or more in {d}, trading {p} of average daily volume and adding cash "
        "already held.",
        "Cash and what could be sold in {d} at {p} of average daily volume must together not fall below {x} of {B}.",
        "Not less than {x} of {B} is to consist of cash and of what {d} of selling at {p} of average daily volume "
        "would realise.",
        "Trading {p} of average daily volume for {d}, and with cash added, {F} must be able to realise at least {x} of "
        "{B}.",
        "A minimum of {x} of {B}, cash included, must be realisable within {d} at {p} of average daily volume.",
        "Cash, plus sales over {d} at {p} of average daily volume, shall amount to {x} of {B} at the least.",
    ),
    ClauseKind(
        "turnover", turnover_rule, (3, 4, 5, 6, 7.5, 8, 10, 12.5, 15, 20, 25, 30, 40), "always", extra=turnover_measure
    ).worded(
        "Turnover in a calendar quarter, {how}, shall not exceed {x} of {B}; {scope}.",
        "{M} shall keep the turnover of each calendar quarter, {how}, within {x} of {B}; {scope}.",
        "Turnover per calendar quarter is limited to {x} of {B}; it is {how}, and {scope}.",
        "In any calendar quarter turnover, {how}, may be no more than {x} of {B}; {scope}.",
        "Each calendar quarter has a budget for turnover, {how}, of {x} of {B}; {scope}.",
        "The turnover of a calendar quarter, {how}, may be up to {x} of {B}; {scope}.",
        "{F}'s turnover, {how}, is capped at {x} of {B} per calendar quarter; {scope}.",
        "Over a calendar quarter turnover, {how}, must be {x} of {B} or less; {scope}.",
    ),
    ClauseKind(
        "active_share",
        lambda c, t: rule_for(c, t["equities"], "issuer", "active_share", "at_least"),
        (20, 25, 30, 35, 40, 45, 50, 55, 60, 65, 70),
        "always",
    ).worded(
        "Active share against the Benchmark, Issuer by Issuer in {Q}, shall be at least {x}.",
        "{M} shall maintain an active share of no less than {x}, measured over Issuers in {Q}.",
        "Over Issuers, counted in {Q}, active share must not fall below {x}.",
        "The active share of {F}'s {Q}, by Issuer, is to be {x} or more.",
        "A minimum active share of {x} applies, by Issuer and in {Q}.",
        "Measured Issuer by Issuer on {Q} against the Benchmark, active share may never be less than {x}.",
        "Being actively managed, {F} shall have an active share in {Q}, by Issuer, of not less than {x}.",
        "Active share (by Issuer, {Q} only) must be at least {x}.",
    ),
    ClauseKind(
        "average_maturity",
        lambda c, t: rule_for(c, _BONDS, measure_kind="average", attribute="maturity"),
        (2, 3, 4, 5, 6, 7, 8, 10, 12),
        "other",
        unit="years",
    ).worded(
        "The average maturity of corporate and government bonds, weighted by value, shall not exceed {x}{W}.",
        "Weighted by value, corporate and government bonds may have an average maturity of up to {x}{W}.",
        "{M} shall keep the value-weighted average maturity of government and corporate bonds at {x} or less{W}.",
        "An average maturity of more than {x}, by value over all government and corporate bonds, is not permitted{W}.",
        "Government and corporate bonds are limited to an average maturity, weighted by value, of {x}{W}.",
        "The bonds held (corporate and government) must have a value-weighted average maturity no longer than {x}{W}.",
        "For corporate and government bonds together, maturity averaged by value is capped at {x}{W}.",
        "Averaged by value, the maturity of government and corporate bonds may be {x} at most{W}.",
    ),
    ClauseKind(
        "longest_maturity",
        lambda c, t: rule_for(c, Every((_BONDS, Range("maturity", "above", c.extra["years"])))),
        (0,),
        "always",
        unit="years",
        extra=lambda rng, v: {"years": float(rng.choice([5, 7, 10, 12, 15]))},
    ).worded(
        "No corporate or government bond held shall have more than {x} to maturity.",
        "Corporate and government bonds with over {x} to maturity are not permitted.",
        "{M} must not hold any corporate or government bond that matures in more than {x}.",
        "Any corporate or government bond held must mature within {x}.",
        "The remaining life of every corporate and government bond is limited to {x}.",
        "Corporate and government bonds are eligible only up to a maturity of {x}.",
        "A corporate or government bond longer than {x} shall at no time be held.",
        "Holding a corporate or government bond due in more than {x} is prohibited.",
    ),
    ClauseKind(
        "average_rating",
        lambda c, t: rule_for(c, _BONDS, measure_kind="average", attribute="rating"),
        (4, 5, 6, 7, 8, 9, 10),
        "other",
        unit="notch",
    ).worded(
        "The average rating of corporate and government bonds, weighted by value, shall be {x} or better{W}.",
        "Weighted by value, corporate and government bonds must on average be rated at least {x}{W}.",
        "{M} shall keep the value-weighted average rating of government and corporate bonds no lower than {x}{W}.",
        "An average rating worse than {x}, by value over all government and corporate bonds, is not permitted{W}.",
        "Government and corporate bonds shall have a minimum average rating, weighted by value, of {x}{W}.",
        "The bonds held (corporate and government) must have a value-weighted average rating not below {x}{W}.",
        "For corporate and government bonds together, the rating averaged by value may not be weaker than {x}{W}.",
        "Averaged by value, the rating of government and corporate bonds must not fall short of {x}{W}.",
    ),
    ClauseKind(
        "average_beta",
        lambda c, t: rule_for(c, t["equities"], measure_kind="average", attribute="beta"),
        (0.9, 0.95, 1, 1.05, 1.1, 1.15, 1.2, 1.25, 1.3),
        "other",
        unit="number",
    ).worded(
        "The average beta of {Q}, weighted by value, shall not exceed {x}{W}.",
        "Weighted by value, {Q} may have an average beta of up to {x}{W}.",
        "{M} shall keep the value-weighted average beta of {Q} at {x} or less{W}.",
        "An average beta of more than {x}, by value over all {Q}, is not permitted{W}.",
        "{Q} are limited to an average beta, weighted by value, of {x}{W}.",
        "The {Q} held must have a value-weighted average beta no higher than {x}{W}.",
        "For {Q} as a whole, beta averaged by value is capped at {x}{W}.",
        "Averaged by value, the beta of {Q} may be {x} at most{W}.",
    ),
)
