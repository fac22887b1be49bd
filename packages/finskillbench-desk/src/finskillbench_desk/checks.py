"""Checks of the desk: its scripts are single steps, and tables of its cases are what their inputs say.

An answer is known by its keys. So every dict that a script's source writes out is compared with the keys of every
object of every desk answer; a script that wrote all keys of one would do the work that is measured.

The market of the desk's cases: 120 names in twelve industries of ten, the names of the edition among them.

The core's universe is a sector-stratified sample of this market: its names keep symbol and sector here, and further
names are invented beside them, from the edition's seed. Histories belong to a case: each is a world of its own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from finskillbench.arrays import SECTORS
from finskillbench.domains.base import Answer
from finskillbench.domains.building import BuildContext
from finskillbench.domains.checks.examination import Subject, examining
from finskillbench.domains.tables import Table
from finskillbench.findings import Findings
from finskillbench.sources.synthetic.market.companies import invent_companies

PER_INDUSTRY = 10
_INDUSTRIES = {sector: (sector,) for sector in SECTORS} | {"Technology": ("Software", "Hardware")}
"""The industries of each sector; Technology has two, so that there are twelve."""
INDUSTRIES = tuple(industry for sector in SECTORS for industry in _INDUSTRIES[sector])
NAMES = PER_INDUSTRY * len(INDUSTRIES)


@dataclass(frozen=True, slots=True)
class Listed:
    """A name of the market; `core` is whether the edition's other domains know it."""

    symbol: str
    sector: str
    industry: str
    core: bool


def market(context: BuildContext) -> tuple[Listed, ...]:
    """The 120 names, by industry in the order of `INDUSTRIES` and by symbol within one."""
    known: dict[str, list[str]] = {sector: [] for sector in SECTORS}
    for symbol in context.panels.universe:
        if (sector := context.panels.sectors.get(symbol)) in known:
            known[sector].append(symbol)
    room = {sector: PER_INDUSTRY * len(industries) for sector, industries in _INDUSTRIES.items()}
    # As many as could be needed if every one of them bore a name that is taken.
    invented = invent_companies(
        {sector: 2 * count for sector, count in room.items()}, context.generator("desk", "names")
    )
    taken = set(context.panels.universe)
    found: list[Listed] = []
    for sector, industries in _INDUSTRIES.items():
        new = [each.security.symbol for each in invented if each.security.sector == sector]
        core = known[sector][: room[sector]]
        names = [*core, *(symbol for symbol in new if symbol not in taken)][: room[sector]]
        for place, symbol in enumerate(names):
            found.append(Listed(symbol, sector, industries[place % len(industries)], symbol in taken))
    order = {industry: place for place, industry in enumerate(INDUSTRIES)}
    return tuple(sorted(found, key=lambda each: (order[each.industry], each.symbol)))


def objects_of(answer: type[Answer]) -> dict[str, frozenset[str]]:
    """The keys of every object of an answer, by its name; of one with a single key, only if it is the whole answer."""
    schema = answer.model_json_schema()
    parts = {answer.__name__: schema, **schema.get("$defs", {})}
    keys = {name: frozenset(part.get("properties", {})) for name, part in parts.items()}
    return {name: each for name, each in keys.items() if len(each) > (name != answer.__name__)}


def finished(script: Path, objects: Mapping[str, frozenset[str]]) -> Iterator[tuple[int, str]]:
    """Lines of a script that write an object with all keys of one of these, and what that is called there."""
    for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
        written = _keys(node)
        for name, keys in objects.items():
            if keys and keys <= written:
                yield getattr(node, "lineno", 0), name


def _keys(node: ast.AST) -> frozenset[str]:
    """The keys that are texts of a dict display or of a call of `dict`."""
    if isinstance(node, ast.Dict):
        return frozenset(key.value for key in node.keys if isinstance(key, ast.Constant) and isinstance(key.value, str))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict":
        return frozenset(word.arg for word in node.keywords if word.arg is not None)
    return frozenset()


def primitives(skills: Sequence[Path], answers: Sequence[type[Answer]], findings: Findings) -> None:
    """No script of these packages writes an answer."""
    objects = {name: keys for answer in answers for name, keys in objects_of(answer).items()}
    for script in sorted(script for folder in skills for script in folder.glob("scripts/*.py")):
        findings.add("scripts")
        found = next(finished(script, objects), None)
        if found is None:
            findings.expectations += 1
        else:
            findings.fail(f"{script.parents[1].name}/{script.name}, line {found[0]}", f"writes a finished {found[1]}")


def tables(subject: Subject, findings: Findings) -> None:
    """Every table that an input names is there, with the rows and columns that the input says."""
    for episode in subject.episodes:
        with examining(episode.task_id, findings):
            for name, value in subject.input_of(episode).items():
                if isinstance(value, Table):
                    stated = episode.input[name]
                    same = (value.rows, list(value)) == (stated["rows"], stated["columns"])
                    findings.expect(same, episode.task_id, f"its table {name} has other rows or columns than it says")
