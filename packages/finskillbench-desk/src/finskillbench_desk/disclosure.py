"""Disclosure levels: how much of the law behind a case its documents state."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from finskillbench.domains.base import by_date
from finskillbench.domains.building import BuildContext
from finskillbench.episode import Disclosure, Episode, JsonObject


class PlannedCase(NamedTuple):
    """Number of a case from 0, its disclosure, the structure of its law (None with full disclosure), its tier."""

    number: int
    disclosure: Disclosure
    structure: str | None
    tier: str


def plan(
    context: BuildContext, count: int, structures: Collection[str], tiers: Collection[str]
) -> Iterator[PlannedCase]:
    """Yield at most `count` cases: structures in random order, disclosures and tiers evenly within each structure.

    Half of the cases are `described` and half `data`, unless the build is of one level. The order depends on the seed,
    so that nothing follows from a case's number.
    """
    names, levels = list(structures), list(tiers)
    rng = context.generator("desk", *names)
    order: list[int] = []
    for number in range(context.most(count)):
        if context.disclosure == "full":
            yield PlannedCase(number, "full", None, levels[number % len(levels)])
            continue
        if number % len(names) == 0:
            order = rng.permutation(len(names)).tolist()
        place = order[number % len(names)]
        turn = place + number // len(names)
        level = context.disclosure or ("described", "data")[turn % 2]
        yield PlannedCase(number, level, names[place], levels[turn % len(levels)])


def structure_of(episode: Episode, certificate: JsonObject) -> str:
    """Return the template of a case: the structure of its law, or the date with full disclosure of the only law."""
    return str(certificate.get("structure", by_date(episode)))
