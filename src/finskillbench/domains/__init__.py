"""Registry of domains: built-in ones, and those registered as entry points of the group `finskillbench.domains`."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from finskillbench.domains.base import Answer, Domain, Extension, Naive, Scorer, Subtask, by_date
from finskillbench.domains.catalog import CatalogFile
from finskillbench.episode import PAPER_SUITE, Episode
from finskillbench.errors import InputError
from finskillbench.extensions import DOMAINS, Registered, registered_extensions

__all__ = [
    "EVERY_SUITE",
    "Answer",
    "Domain",
    "Extension",
    "Naive",
    "Scorer",
    "Subtask",
    "by_method",
    "catalog_files",
    "cluster_of",
    "domain",
    "domain_of",
    "domains",
    "subtask_named",
    "subtasks",
    "suite_of",
    "suites",
    "suites_named",
]

EVERY_SUITE = "all"
"""Value of `--suite` that selects all suites."""
_OURS = ("portfolio", "risk", "fundamental")
_ELSEWHERE = {"desk": "finskillbench-desk"}
"""Suites of other distributions in this repository, with the name of the distribution."""


@cache
def domains() -> tuple[Domain, ...]:
    """Return all domains with their extensions: built-in ones first, then others in the order of their entry points.

    Raises InputError if an entry point cannot be loaded, has another type, extends an unknown domain, or repeats a
    name.
    """
    known: dict[str, Domain] = {}
    for name in _OURS:
        ours: Domain = import_module(f"{__name__}.{name}").DOMAIN
        known[ours.name] = ours
    found = [(where, where.load(Domain, Extension)) for where in registered_extensions(DOMAINS).values()]
    # Add domains before extensions: an extension may belong to any of them.
    for where, added in sorted(found, key=lambda one: isinstance(one[1], Extension)):
        if isinstance(added, Domain):
            if added.name in known:
                raise InputError(f"{where}: domain {added.name} exists already; register an Extension of it instead")
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
    """Return the catalog files that the domains read."""
    return tuple(file for one in domains() for file in one.catalog)


def withheld_folders() -> list[Path]:
    """Return the folders that scripts and agents' code cannot read."""
    return [folder for one in domains() for folder in one.withheld]


@cache
def subtasks() -> tuple[Subtask, ...]:
    """Return all subtasks in table order: by suite and domain, subtasks outside a suite's headline last."""
    every = [(one.suite != PAPER_SUITE, not subtask.headline, subtask) for one in domains() for subtask in one.subtasks]
    return tuple(subtask for *_, subtask in sorted(every, key=lambda each: each[:2]))


@cache
def suites() -> tuple[str, ...]:
    """Return the suite names of the registered domains, in the order of the domains."""
    return tuple(dict.fromkeys(one.suite for one in domains()))


def suites_named(name: str) -> tuple[str, ...]:
    """Return the suites selected by `--suite`; raise InputError if the suite is unknown or not installed."""
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
    """Return the suite of a subtask, or None if the subtask is not registered."""
    return domain_of(sub_task).suite if sub_task in _subtasks_by_name() else None


def subtask_named(name: str) -> Subtask:
    """Return the subtask with this `sub_task` name; raise InputError for unknown names."""
    try:
        return _subtasks_by_name()[name]
    except KeyError:
        raise InputError(f"unknown subtask {name!r}; known are {', '.join(_subtasks_by_name())}") from None


def find_subtask(name: str, method: str | None = None) -> Subtask | None:
    """Return the subtask with a name or a verification method, by default the name; None if neither is registered."""
    found = _subtasks_by_name().get(name)
    wanted = name if method is None else method
    return found or next((one for one in subtasks() if one.verification.method == wanted), None)


@cache
def _subtasks_by_name() -> dict[str, Subtask]:
    return {subtask.name: subtask for subtask in subtasks()}


def cluster_of(episode: Episode) -> str:
    """Return the resampling cluster of an episode; use the market date if its subtask is not registered."""
    known = _subtasks_by_name().get(episode.sub_task)
    return (known.cluster if known else by_date)(episode)


def by_method(method: str) -> Subtask:
    """Return the subtask with this `verification.method`; raise InputError for unknown methods."""
    for subtask in subtasks():
        if subtask.verification.method == method:
            return subtask
    known = ", ".join(one.verification.method for one in subtasks())
    raise InputError(f"unknown verification method {method!r}; known are {known}")


def domain(name: str) -> Domain:
    """Return the domain with this `skill` name; raise InputError for unknown names."""
    for one in domains():
        if one.name == name:
            return one
    raise InputError(f"unknown domain {name!r}; known are {', '.join(one.name for one in domains())}")


@cache
def domain_of(sub_task: str) -> Domain:
    """Return the domain of a subtask; raise InputError for unknown subtasks."""
    subtask_named(sub_task)  # raises InputError if unknown
    return next(one for one in domains() if any(subtask.name == sub_task for subtask in one.subtasks))
