"""What a rule is and what it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from finskillbench.runs.afterwards.failures.attempt import Attempt


@dataclass(frozen=True, slots=True)
class Found:
    """A cause that applies.

    cause : its name.
    evidence : one sentence with the values.
    explains : paths of the wrong leaves of the answer that it explains.
    explains_all : whether whatever is wrong in the answer may come of it.
    """

    cause: str
    evidence: str
    explains: frozenset[str] = field(default_factory=frozenset[str])
    explains_all: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    """One way to look for causes; `needs_truth` says that it cannot be tried without the edition's truth.

    `find` is given what was found before; `causes` are those that it may find.
    """

    causes: tuple[str, ...]
    find: Callable[[Attempt, Sequence[Found]], Iterator[Found]]
    needs_truth: bool = False


def shown(value: object) -> str:
    """A value in a sentence."""
    words = f"{value:.12g}" if isinstance(value, float) else repr(value)
    return words if len(words) <= 60 else words[:57] + "..."


def several(places: Sequence[str], most: int = 3) -> str:
    """The first of some names, and how many more there are."""
    more = len(places) - most
    return ", ".join(places[:most]) + (f" and {more} more" if more > 0 else "")
