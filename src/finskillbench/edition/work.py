"""How much work an episode takes: what has to be read, decided and computed, counted and not judged.

`difficulty` names a stratum; these figures say what its episodes ask for, so that a reader sees whether hard is more
work than easy. All three are counted from what the build has at hand, so that they cost it nothing:

- reads: fields of the input, and figures as filed that an episode may see;
- decisions: limits, views, shocks and holdings that the answer has to heed one by one, the entries that it lists, and
  the figures for which one of several things that filings state has to be chosen;
- computations: numbers that were derived for the answer or, for an optimum, conditions that hold it in place, over all
  the programs that were solved.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass
from statistics import median
from typing import Any

from finskillbench.domains.building import Task
from finskillbench.scoring.values import array, is_array, is_object, mapping, number

_LISTED = ("constraints", "limits", "analyst_views", "views", "shocks", "market_shocks", "sector_limits", "holdings")
"""Fields whose entries are heeded one by one."""
LEVELS = ("easy", "medium", "hard")


@dataclass(frozen=True, slots=True)
class Work:
    """The work of one episode."""

    reads: int
    decisions: int
    computations: int


def work_of(task: Task, resolved: Mapping[str, Any]) -> Work:
    """The work of a task whose input has its references resolved."""
    filed = sum(len(array(part)) for value in resolved.values() for part in _tables(value))
    return Work(
        reads=len(resolved) + filed,
        decisions=_entries(task.episode.input) + _listed(task.truth.expected_output) + _chosen(task.certificate),
        computations=_computed(task.certificate) or _derived(task.truth.proof),
    )


def summary(works: Iterable[tuple[str, Work]]) -> dict[str, dict[str, float]]:
    """Median reads, decisions and computations by difficulty, in the order of the levels."""
    by_level: dict[str, list[Work]] = {}
    for level, work in works:
        by_level.setdefault(level, []).append(work)
    known = sorted(by_level, key=lambda level: LEVELS.index(level) if level in LEVELS else len(LEVELS))
    names = ("reads", "decisions", "computations")
    found: dict[str, dict[str, float]] = {}
    for level in known:
        columns = zip(*map(astuple, by_level[level]), strict=True)
        found[level] = {name: float(median(column)) for name, column in zip(names, columns, strict=True)}
    return found


def _tables(value: object) -> list[object]:
    """Tables of rows as filed; a matrix is one read however large it is."""
    return [value[name] for name in ("facts", "segments") if name in value] if is_object(value) else []


def _entries(value: object) -> int:
    """Entries of the fields of an input that are heeded one by one, however deep."""
    if not is_object(value):
        return 0
    own = sum(len(part) for name, part in value.items() if name in _LISTED and (is_object(part) or is_array(part)))
    return own + sum(_entries(part) for name, part in value.items() if name not in ("conventions", "covariance_matrix"))


def _listed(answer: object) -> int:
    """Entries that an answer lists: weights held, trades, statuses, exposures, drivers."""
    if not is_object(answer):
        return len(array(answer))
    return sum(_listed(one) if is_object(one) or is_array(one) else one not in (0, None) for one in answer.values())


def _chosen(certificate: object) -> int:
    return int(number(mapping(certificate).get("decisions")) or 0)


def _computed(certificate: object) -> int:
    """Conditions of the programs of a certificate, each as often as programs were solved."""
    if not is_object(certificate):
        return 0
    programs = number(certificate.get("programs_solved")) or 1
    own = int(programs) * len(array(certificate.get("multipliers")))
    return own + sum(_computed(part) for part in certificate.values() if is_object(part))


def _derived(proof: object) -> int:
    return int(number(mapping(proof).get("numbers")) or 0)
