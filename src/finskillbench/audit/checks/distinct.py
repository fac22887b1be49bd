"""Whether the episodes of a subtask are as many tasks as they count: labels that repeat, markets that hardly differ."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray

from finskillbench.audit.reads import leaves
from finskillbench.audit.seen import Bench
from finskillbench.episode import Episode, JsonObject
from finskillbench.findings import Findings
from finskillbench.scoring.values import is_object, numbers
from finskillbench.sums import summed

LEAST_DISTINCT = 0.875
"""Share of the labels of a subtask that differ from every other, at least: 35 of 40."""
SAME_WEIGHTS = 0.05
"""Two tables of numbers nearer than this in L2 are one label: weights that a portfolio manager would not tell apart."""
_FEW_MARKETS = 2.0
_DIGITS = 3

Vector = dict[str, float]


def distinct(bench: Bench, episodes: Sequence[Episode], findings: Findings) -> None:
    """At least seven in eight labels differ from all before them; the number of markets that they amount to."""
    labels = [bench.edition.truth(episode.task_id).expected_output for episode in episodes]
    repeats = list(_repeats(labels))
    name = episodes[0].sub_task
    share = 1 - len(repeats) / len(labels)
    findings.figures["distinct"] = {name: f"{len(labels) - len(repeats)} of {len(labels)}"}
    for place, first in repeats:
        message = f"its label is that of {episodes[first].task_id}; {share:.0%} of {name} are distinct"
        findings.expect(share >= LEAST_DISTINCT, episodes[place].task_id, message, "expected_output")
    markets = _effective_markets(episodes)
    if markets is not None:
        dates, effective = markets
        findings.figures["markets"] = {name: f"{effective:.1f} of {dates} dates"}
        if dates > 1 and effective < _FEW_MARKETS:
            findings.warn(name, f"the expected returns of {dates} dates amount to {effective:.1f} different markets")


def _repeats(labels: Sequence[JsonObject]) -> Iterator[tuple[int, int]]:
    """Each label that repeats an earlier one, and which."""
    seen: dict[str, int] = {}
    tables: list[tuple[int, Vector]] = []
    for place, label in enumerate(labels):
        table = _table(label)
        if table is None:
            first = seen.setdefault(_rounded(label), place)
        else:
            first = next((other for other, known in tables if _distance(table, known) < SAME_WEIGHTS), place)
            tables += [(place, table)] if first == place else []
        if first != place:
            yield place, first


def _table(label: JsonObject) -> Vector | None:
    """The table of weights that a label is, where it is one: numbers by name that add up to about 1."""
    for part in label.values():
        found = numbers(part) if is_object(part) else {}
        if len(found) > 1 and abs(summed(found.values()) - 1) < SAME_WEIGHTS:
            return found
    return None


def _distance(left: Mapping[str, float], right: Mapping[str, float]) -> float:
    names = left.keys() | right.keys()
    return float(np.sqrt(math.fsum((left.get(name, 0.0) - right.get(name, 0.0)) ** 2 for name in names)))


def _rounded(label: JsonObject) -> str:
    """A label's leaves with numbers to three digits, as a text that equal labels share."""
    parts: list[str] = []
    for path, leaf in leaves(label):
        number = isinstance(leaf, int | float) and not isinstance(leaf, bool)
        parts.append(f"{path}={leaf:.{_DIGITS}g}" if number else f"{path}={leaf!r}")
    return "\n".join(parts)


def _effective_markets(episodes: Sequence[Episode]) -> tuple[int, float] | None:
    """Dates with expected returns, and how many uncorrelated ones they amount to: n^2 over the sum of r^2."""
    by_date: dict[object, Vector] = {}
    for episode in episodes:
        returns = numbers(episode.input.get("expected_returns"))
        if returns:
            by_date.setdefault(episode.as_of_date, returns)
    if not by_date:
        return None
    every = list(by_date.values())
    common = sorted(name for name in every[0] if all(name in one for one in every))
    if len(common) < 3:
        return None
    table = np.array([[one[name] for name in common] for one in every])
    if not (table.std(axis=1) > 0).all():
        return None
    correlation = cast("NDArray[np.float64]", np.atleast_2d(np.corrcoef(table)))
    return len(table), float(len(table) ** 2 / (correlation**2).sum())
