"""Who takes part in a run: a model, and the arguments that it was called with.

One model may take part several times with different arguments, say with more and with less reasoning; rows, journal
and trajectories tell such entries apart by `Entry.arguments`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from finskillbench.harness.allowance import FULL, Allowance

NO_ARGUMENTS = "{}"


@dataclass(frozen=True, slots=True, order=True)
class Entry:
    """A model by name, and its arguments as canonical JSON: keys in order, and none for what was not said."""

    model: str
    arguments: str = NO_ARGUMENTS

    def __str__(self) -> str:
        return self.model if self.arguments == NO_ARGUMENTS else f"{self.model} {self.arguments}"

    @property
    def said(self) -> dict[str, Any]:
        """The arguments by name."""
        return orjson.loads(self.arguments)

    def under(self, harness: str) -> Entry:
        """The same played by another harness than ours, which goes without saying."""
        return Entry(self.model, canonical({**self.said, "harness": harness}))


def canonical(arguments: Mapping[str, Any]) -> str:
    """Arguments as they identify an entry."""
    said = {name: value for name, value in arguments.items() if value is not None}
    return orjson.dumps(said, option=orjson.OPT_SORT_KEYS).decode()


def allowance_of(entry: Entry) -> Allowance:
    """The turns and tokens that an entry has for an episode."""
    said = entry.said
    return Allowance(said.get("turns", FULL.turns), said.get("token_budget", FULL.tokens))


def labels(entries: Iterable[Entry]) -> dict[Entry, str]:
    """What a table calls each entry: its model, and where a model has several entries the arguments that differ."""
    by_model: dict[str, list[Entry]] = {}
    for entry in dict.fromkeys(entries):
        by_model.setdefault(entry.model, []).append(entry)
    return {entry: _label(entry, alike) for alike in by_model.values() for entry in alike}


def _label(entry: Entry, alike: list[Entry]) -> str:
    names = sorted({name for each in alike for name in each.said})
    values = {name: [canonical({name: each.said.get(name)}) for each in alike] for name in names}
    differing = [name for name in names if len(set(values[name])) > 1]
    return " ".join((entry.model, *(f"{name}={_value(entry.said.get(name))}" for name in differing)))


def _value(value: object) -> str:
    if value is None:
        return "-"
    return value if isinstance(value, str) else orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
