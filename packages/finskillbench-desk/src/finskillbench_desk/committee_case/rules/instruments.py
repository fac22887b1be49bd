"""Instruments of probe portfolios: they cover the true meaning of each clause and its likely misreadings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from finskillbench_desk.committee_case.documents.vocabulary import CURRENCIES, Vocabulary
from finskillbench_desk.engines.guidelines.book import Instrument, InstrumentUniverse, Kind
from finskillbench_desk.engines.guidelines.language import Among, Every, Filter, Not, Range, Rule, Some

_COUNT = 44
"""Issuers in addition to those that the rules need."""
_SPARE = 12
"""Issuers beyond the highest limit on their number."""
_BANKS = ("First Harbour Bank", "Union Trust Bank", "Delta Custody Bank")


def _leaves(of: Filter) -> Iterator[Among | Range]:
    match of:
        case Among() | Range():
            yield of
        case Not(part):
            yield from _leaves(part)
        case Every(parts) | Some(parts):
            for part in parts:
                yield from _leaves(part)


def _conditions(rules: Iterable[Rule]) -> Iterator[Among | Range]:
    for rule in rules:
        for atom in rule.atoms():
            yield from _leaves(atom.of)


def named_values(rules: Sequence[Rule], label: str) -> list[str]:
    """Return the values of a label that the rules name, sorted."""
    leaves = [leaf for leaf in _conditions(rules) if isinstance(leaf, Among) and leaf.label == label]
    return sorted({word for leaf in leaves for word in leaf.labels})


def thresholds(rules: Sequence[Rule], attribute: str) -> list[float]:
    found = {leaf.value for leaf in _conditions(rules) if isinstance(leaf, Range) and leaf.attribute == attribute}
    return sorted(found)


def probe_universe(rules: Sequence[Rule], vocabulary: Vocabulary, rng: np.random.Generator) -> InstrumentUniverse:
    """Return instruments with at least two issuers for each value that the rules name, and near misses."""
    shares = _shares(rules, vocabulary, rng)
    bonds = _bonds(rules, shares, rng)
    funds = _funds(shares, rng)
    return InstrumentUniverse((*shares, *_further_lines(shares, rng), *bonds, *funds, *_futures(), *_cash()))


def _profiles(rules: Sequence[Rule], vocabulary: Vocabulary, rng: np.random.Generator) -> list[tuple[str, str, str]]:
    subs, countries = list(vocabulary.sub_sectors), list(vocabulary.countries)
    named = [word for word in named_values(rules, "issuer") if word in vocabulary.issuers]
    wanted_subs = [sub for sub in named_values(rules, "sub_sector") if sub in vocabulary.sub_sectors] * 2
    for sector in named_values(rules, "sector"):
        inside = [sub for sub in subs if vocabulary.sub_sectors[sub] == sector]
        wanted_subs += [inside[int(i)] for i in rng.integers(len(inside), size=2)] if inside else []
    wanted_subs += [sub for sub in subs if sub not in wanted_subs]
    unnamed = [name for name in vocabulary.issuers if name not in named]
    wanted_countries = [code for code in named_values(rules, "country") if code in countries] * 2 + countries
    counts = [rule.limit.terms[0].plus for rule in rules if rule.measure == "count"]
    size = int(max([_COUNT, len(wanted_subs), *(limit + _SPARE for limit in counts)]))
    names = [*named, *unnamed, *(f"PX{i:03d}" for i in range(size))][: max(size, len(named))]
    more = len(names) - len(wanted_subs)
    wanted_subs += [subs[int(i)] for i in rng.integers(len(subs), size=max(more, 0))]
    wanted_countries += ["US"] * max(len(names) - len(wanted_countries), 0)
    placed = [wanted_countries[int(i)] for i in rng.permutation(len(names))]
    ordered = [names[int(i)] for i in rng.permutation(len(names))]
    return list(zip(ordered, wanted_subs, placed, strict=False))


def _shares(rules: Sequence[Rule], vocabulary: Vocabulary, rng: np.random.Generator) -> list[Instrument]:
    sizes = [factor * cut for cut in thresholds(rules, "market_cap") for factor in (0.5, 0.92, 1.06, 2.5)] or [2e9]
    profiles = _profiles(rules, vocabulary, rng)
    weights = rng.lognormal(0.0, 1.0, len(profiles)) * (rng.random(len(profiles)) < 0.8)
    weights *= 100 / weights.sum()
    out: list[Instrument] = []
    for i, (issuer, sub, country) in enumerate(profiles):
        size = sizes[i % len(sizes)] if i % 2 else float(rng.lognormal(23.5, 1.0))
        attributes = {
            "market_cap": round(size, -6),
            "adv": round(size * rng.uniform(0.001, 0.01), -3),
            "beta": round(float(rng.uniform(0.2, 2.4)), 2),
        }
        lists = {name for name, odds in (("Restricted List", 0.12), ("Unlisted", 0.1)) if rng.random() < odds}
        place = (vocabulary.sub_sectors[sub], sub, country, CURRENCIES.get(country, "USD"))
        weight = round(float(weights[i]), 3)
        out.append(Instrument(issuer, "share", issuer, *place, frozenset(lists), weight, attributes))
    return out


_Lines: TypeAlias = tuple[tuple[str, Kind, int], ...]
_LINES: _Lines = ((".B", "share", 8), (".R", "receipt", 9), (".P", "preferred", 9), (".C", "convertible", 8))


def _further_lines(shares: Sequence[Instrument], rng: np.random.Generator) -> Iterator[Instrument]:
    for suffix, kind, count in _LINES:
        for i in sorted(rng.choice(len(shares), count, replace=False)):
            share = shares[int(i)]
            attributes = {**share.attributes, "adv": round(share.attributes["adv"] * rng.uniform(0.1, 0.6), -3)}
            line = replace(share, name=f"{share.issuer}{suffix}", kind=kind, benchmark=0.0, attributes=attributes)
            yield replace(line, currency="USD") if kind == "receipt" else line


def _bonds(rules: Sequence[Rule], shares: Sequence[Instrument], rng: np.random.Generator) -> Iterator[Instrument]:
    """Yield company and government bonds with ratings and maturities on both sides of the rules' thresholds."""
    ratings, maturities = thresholds(rules, "rating"), thresholds(rules, "maturity")
    notches = sorted({int(cut) + step for cut in ratings for step in (0, 1)} | {2, 5, 8, 10, 11, 14})
    years = sorted({cut * factor for cut in maturities for factor in (0.9, 1.1)} | {0.5, 3.0, 8.0, 20.0})
    for j, i in enumerate(sorted(rng.choice(len(shares), 12, replace=False))):
        share = shares[int(i)]
        rating, maturity = float(notches[j % len(notches)]), round(years[(j * 3) % len(years)], 2)
        attributes = {"rating": rating, "maturity": maturity, "adv": 2e6}
        yield replace(share, name=f"{share.issuer}.N", kind="corporate_bond", benchmark=0.0, attributes=attributes)
    for j, maturity in enumerate(years):
        country = ("US", "DE", "BR", "JP")[j % 4]
        attributes = {"rating": float(notches[(j * 5 + 1) % len(notches)]), "maturity": round(maturity, 2), "adv": 5e7}
        lists = frozenset(("Restricted List",)) if j == 2 else frozenset[str]()
        name = f"GOV{country}{j}"
        currency = CURRENCIES.get(country, "USD")
        yield Instrument(name, "government_bond", f"GOV{country}", "", "", country, currency, lists, 0.0, attributes)


def _funds(shares: Sequence[Instrument], rng: np.random.Generator) -> Iterator[Instrument]:
    for j in range(5):
        inside = rng.choice(len(shares), 6, replace=False)
        parts = rng.dirichlet(np.ones(6)) * rng.uniform(0.7, 1.0)
        holdings = {shares[int(i)].name: round(float(part), 4) for i, part in zip(inside, parts, strict=True)}
        lists = frozenset(("Affiliated Funds",)) if j % 2 else frozenset[str]()
        name = f"FUND{j}"
        yield Instrument(name, "fund", name, "", "", "US", ("USD", "EUR")[j % 2], lists, 0.0, {"adv": 1e7}, holdings)


def _futures() -> Iterator[Instrument]:
    yield Instrument("EQF1", "equity_future", currency="USD")
    yield Instrument("EQF2", "equity_future", currency="EUR")
    yield Instrument("BDF1", "bond_future", currency="USD")


def _cash() -> Iterator[Instrument]:
    for currency, bank in (("USD", 0), ("USD", 1), ("EUR", 0), ("EUR", 2), ("JPY", 1)):
        yield Instrument(f"CASH{currency}{bank}", "cash", _BANKS[bank], currency=currency)
