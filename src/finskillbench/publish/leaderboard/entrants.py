"""Who is on a board: a submitter with an entry, whatever bundles it came in, each under a label of its own.

A label is for readers. It is made after everything that entrants choose, and is told apart from every other, so that no
name of a model stands in for another's line.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import polars as pl

from finskillbench.harness.models import NO_ARGUMENTS, Entry, labels
from finskillbench.harness.skills.given import GIVEN_ARM
from finskillbench.publish.bundle.judge import Judged
from finskillbench.runs.store.rows import Row, to_frame


@dataclass(frozen=True, slots=True)
class Listed:
    """An entry of a submitter as tables call it, with the bundles that it came in; all are whole, or none is."""

    label: str
    entry: Entry
    parts: tuple[Judged, ...]

    @property
    def partial(self) -> bool:
        """Whether episodes are missing."""
        return any(each.bundle.manifest.partial is not None for each in self.parts)

    @property
    def submitter(self) -> str:
        """Who submits it, by the name of the first bundle."""
        return self.parts[0].bundle.manifest.submitter.name

    @property
    def owner(self) -> str:
        """The normalised name of the submitter."""
        return normalized(self.submitter)

    def rows(self, part: Judged) -> list[Row]:
        """Its rows in a bundle."""
        return [row for row in part.rows if row.item.entry == self.entry]

    def under(self, condition: str) -> Judged:
        """The bundle in which it was played under a condition, by the name that tables have for it."""
        return next(part for part in self.parts if condition in {shown(row) for row in self.rows(part)})

    def frame(self) -> pl.DataFrame:
        """All of its rows under its label, with conditions as tables call them."""
        rows = [row for part in self.parts for row in self.rows(part)]
        conditions = pl.Series([shown(row) for row in rows], dtype=pl.String)
        return to_frame(rows).with_columns(
            model=pl.lit(self.label), arguments=pl.lit(NO_ARGUMENTS), condition=conditions
        )


def normalized(name: str) -> str:
    """Return a submitter's name without case and blanks, compatible forms of letters as one."""
    return "".join(unicodedata.normalize("NFKC", name).casefold().split())


def shown(row: Row) -> str:
    """What a board calls the condition of a row: skills of somebody's own by name and digest, since names are free."""
    return f"{row.condition} {row.mount[:12]}" if row.condition.startswith(GIVEN_ARM) else row.condition


def entrants_of(taken: Sequence[Judged]) -> tuple[Listed, ...]:
    """Every entry of every submitter, under labels that are told apart."""
    parts: dict[tuple[str, Entry], list[Judged]] = {}
    for judged in taken:
        who = normalized(judged.bundle.manifest.submitter.name)
        for entry in dict.fromkeys(row.item.entry for row in judged.rows):
            parts.setdefault((who, entry), []).append(judged)
    named = zip(_labels(parts), parts.items(), strict=True)
    return tuple(Listed(label, entry, tuple(each)) for label, ((_, entry), each) in named)


def _labels(parts: dict[tuple[str, Entry], list[Judged]]) -> list[str]:
    """The name of each entry; with its submitter where two have the same, with its number where that is not enough."""
    own = {
        who: labels(entry for other, entry in parts if other == who) for who in dict.fromkeys(who for who, _ in parts)
    }
    owners = [each[0].bundle.manifest.submitter.name for each in parts.values()]
    names = _apart([own[who][entry] for who, entry in parts], lambda place: f"({owners[place]})")
    while len(set(names)) < len(names):
        names = _apart(names, lambda place: f"#{place + 1}")
    return names


def _apart(names: Sequence[str], mark: Callable[[int], str]) -> list[str]:
    count = Counter(names)
    return [name if count[name] == 1 else f"{name} {mark(place)}" for place, name in enumerate(names)]
