"""The registry of domains: portfolio construction, risk management, fundamental analysis, and those from outside.

A package that is installed beside ours hands in a `Domain`, or an `Extension` of one that exists, by an entry point of
the group `finskillbench.domains`; `data build`, `validate`, `run`, `score`, `skills` and the tables then know it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import Any

from finskillbench.domains.base import Answer, Domain, Extension, Naive, Scorer, Subtask, by_date
from finskillbench.domains.catalog import CatalogFile
from finskillbench.episode import Episode
from finskillbench.errors import InputError
from finskillbench.extensions import DOMAINS, Registered, registered

__all__ = [
    "EVERY_SUITE",
    "Answer",
    "Domain",
    "Extension",
    "Naive",
    "Scorer",
    "Subtask",
    "by_method",
    "by_name",
    "catalog_files",
    "cluster_of",
    "domain",
    "domain_of",
    "domains",
    "subtasks",
    "suite_of",
    "suites",
    "suites_named",
]

EVERY_SUITE = "all"
"""Names all suites at once, as in `--suite all`."""
_OURS = ("portfolio", "risk", "fundamental")
_ELSEWHERE = {"desk": "finskillbench-desk"}
"""Suites of this repository's other distributions, by the name of the distribution."""


@cache
def domains() -> tuple[Domain, ...]:
    """Every domain: ours first, then those from outside by the name of their entry point; both with their extensions.

    Raises
    ------
    InputError : an entry point that cannot be loaded, is neither a Domain nor an Extension, extends a domain that does
        not exist, or brings a name, prefix or method that is taken.
    """
    known: dict[str, Domain] = {}
    for name in _OURS:
        ours: Domain = import_module(f"{__name__}.{name}").DOMAIN
        known[ours.name] = ours
    found = [(where, where.load(Domain, Extension)) for where in registered(DOMAINS).values()]
    # Domains before extensions, which may be of any of them.
    for where, added in sorted(found, key=lambda one: isinstance(one[1], Extension)):
        if isinstance(added, Domain):
            if added.name in known:
                raise InputError(f"{where}: domain {added.name} exists; hand in an Extension of it")
            known[added.name] = added
        elif added.domain not in known:
            raise InputError(f"{where}: extends unknown domain {added.domain}; known are {', '.join(known)}")
        else:
            known[added.domain] = _extended(known[added.domain], added, where)
    _refuse_twice(known)
    return tuple(known.values())


def _extended(base: Domain, more: Extension, where: Registered) -> Domain:
    twice = sorted((base.checks.keys() & more.checks.keys()) | (base.audits.keys() & more.audits.keys()))
    if twice:
        raise InputError(f"{where}: {base.name} has a check {twice[0]} already; rename it")
    return replace(
        base,
        subtasks=base.subtasks + more.subtasks,
        skills=base.skills + more.skills,
        checks={**base.checks, **more.checks},
        audits={**base.audits, **more.audits},
    )


def _refuse_twice(known: dict[str, Domain]) -> None:
    seen: dict[tuple[str, str], str] = {}
    for subtask in (subtask for one in known.values() for subtask in one.subtasks):
        stated = {"name": subtask.name, "prefix": subtask.prefix, "method": subtask.verification.method}
        for key in stated.items():
            if key in seen:
                raise InputError(
                    f"subtasks {seen[key]} and {subtask.name} have the same {key[0]} {key[1]!r}; rename one"
                )
            seen[key] = subtask.name


def catalog_files() -> tuple[CatalogFile[Any], ...]:
    """Every file that a user's catalog may hold, by the domains that read them."""
    return tuple(file for one in domains() for file in one.catalog)


@cache
def subtasks() -> tuple[Subtask, ...]:
    """Every subtask in the order of tables: by domain, those outside the headline last."""
    every = [subtask for one in domains() for subtask in one.subtasks]
    return tuple(sorted(every, key=lambda subtask: not subtask.headline))


@cache
def suites() -> tuple[str, ...]:
    """Names of the suites that the registered domains belong to, in the order of the domains."""
    return tuple(dict.fromkeys(one.suite for one in domains()))


def suites_named(name: str) -> tuple[str, ...]:
    """Return the suites that `--suite` names, one or all.

    Raises
    ------
    InputError : it is unknown, listing those that are known, or belongs to a distribution that is not installed.
    """
    if name == EVERY_SUITE:
        return suites()
    if name not in suites():
        if name in _ELSEWHERE:
            raise InputError(
                f"suite {name!r} is not installed; use pip install {_ELSEWHERE[name]}, in a checkout "
                f"pip install -e packages/{_ELSEWHERE[name]}"
            )
        raise InputError(f"unknown suite {name!r}; choose from: {', '.join((*suites(), EVERY_SUITE))}")
    return (name,)


def suite_of(sub_task: str) -> str | None:
    """Return the suite of a subtask; None where the subtask is not registered here."""
    return domain_of(sub_task).suite if sub_task in _by_name() else None


def by_name(name: str) -> Subtask:
    """Return the subtask an episode's `sub_task` names; InputError lists the known ones."""
    try:
        return _by_name()[name]
    except KeyError:
        raise InputError(f"unknown subtask {name!r}; known are {', '.join(_by_name())}") from None


@cache
def _by_name() -> dict[str, Subtask]:
    return {subtask.name: subtask for subtask in subtasks()}


def cluster_of(episode: Episode) -> str:
    """What an episode shares with others of its subtask; the market date where the subtask is not known here."""
    known = _by_name().get(episode.sub_task)
    return (known.cluster if known else by_date)(episode)


def by_method(method: str) -> Subtask:
    """Return the subtask that a published `verification.method` belongs to; InputError lists the known ones."""
    for subtask in subtasks():
        if subtask.verification.method == method:
            return subtask
    known = ", ".join(one.verification.method for one in subtasks())
    raise InputError(f"unknown verification method {method!r}; known are {known}")


def domain(name: str) -> Domain:
    """Return the domain an episode's `skill` names; InputError lists the known ones."""
    for one in domains():
        if one.name == name:
            return one
    raise InputError(f"unknown domain {name!r}; known are {', '.join(one.name for one in domains())}")


@cache
def domain_of(sub_task: str) -> Domain:
    """Return the domain of a subtask; InputError lists the known ones."""
    by_name(sub_task)  # refuses an unknown one
    return next(one for one in domains() if any(subtask.name == sub_task for subtask in one.subtasks))
