"""Log ratios by company and quarter from a table of statements, with stated corrections."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from finskillbench.arrays import Floats, Integers
from finskillbench.engines.fields import list_of, listed, table_of
from finskillbench.errors import InputError
from finskillbench_desk.engines.screening.fields import (
    index_of,
    list_column,
    number_column,
    number_field,
    object_entries,
    table_field,
    text_field,
)

KNOWN = (
    "statements",
    "versions",
    "ratios",
    "growth_line",
    "divide",
    "known_changes",
    "new_levels",
    "industry_paths",
    "seasons",
    "companies",
    "table_unit",
    "year_ends",
    "window",
    "freedom",
    "correlation",
)
"""Fields that define a panel and its innovations."""
_CELL = ("company", "quarter")
_FIELDS = {
    "ratios": ("name", "numerator", "denominator", "persistence", "innovation_sd", "growth_effect"),
    "divide": (*_CELL, "by", "lines"),
    "known_changes": (*_CELL, "effects"),
    "new_levels": _CELL,
    "year_ends": (*_CELL, "month"),
}
"""Permitted keys of an entry in each list of the payload."""


@dataclass(frozen=True, slots=True, eq=False)
class RatioPanel:
    """Log ratios `y` (n, T, R) of companies, quarters and ratios, less all stated effects.

    `persistence` is (R,), `new_level` (n,) the quarter of a new level, -1 for none; `applied` counts corrections.
    """

    companies: list[str]
    quarters: list[str]
    ratios: list[str]
    y: Floats
    persistence: Floats
    new_level: Integers
    applied: dict[str, int]


def ratio_panel(payload: Mapping[str, Any]) -> RatioPanel:
    """Read `statements`, `ratios`, `versions` and the optional corrections; InputError names the faulty field."""
    statements = table_field(payload, "statements")
    if statements is None:
        raise InputError("statements is missing; inject it from the task data")
    definitions = definitions_of(payload)
    if not definitions:
        raise InputError("ratios must list the ratios, each with name, numerator, denominator and persistence")
    names = [text_field(each, "name", "ratios") for each in definitions]
    companies, quarters, rows = _grid(statements, payload.get("versions"))
    used = {text_field(each, side, "ratios") for each in definitions for side in ("numerator", "denominator")}
    growth_line = payload.get("growth_line")
    if growth_line is not None:
        used.add(str(growth_line))
    lines = {name: number_column(statements, name, "statements")[rows] for name in used}
    divisions = _entries(payload, "divide")
    for entry in divisions:
        where = _cell(entry, "divide", companies, quarters)
        for name in _divided(entry, statements, used):
            lines[name][where] /= number_field(entry, "by", "divide")
    if any((values <= 0).any() for values in lines.values()):
        name = next(name for name, values in lines.items() if (values <= 0).any())
        raise InputError(f"statements: {name} is not positive everywhere, so that its ratio has no logarithm")
    y = np.stack(
        [np.log(lines[each["numerator"]]) - np.log(lines[each["denominator"]]) for each in definitions], axis=2
    )
    if growth_line is not None:
        growth = np.diff(np.log(lines[str(growth_line)]), axis=1, prepend=np.nan)
        growth[:, 0] = 0.0
        y -= growth[:, :, None] * np.array([number_field(each, "growth_effect", "ratios", 0.0) for each in definitions])
    y -= _industries(payload, companies, quarters, names)
    changes, levels = _entries(payload, "known_changes"), _entries(payload, "new_levels")
    for entry in changes:
        where = _cell(entry, "known_changes", companies, quarters)
        effects = by_ratio(entry, "effects", "known_changes", names)
        y[where[0], where[1] :] -= np.array(
            [number_field(effects, name, "known_changes.effects", 0.0) for name in names]
        )
    new_level = np.full(len(companies), -1)
    for entry in levels:
        company, quarter = _cell(entry, "new_levels", companies, quarters)
        new_level[company] = quarter
    persistence = np.array([number_field(each, "persistence", "ratios") for each in definitions])
    applied = {"divide": len(divisions), "known_changes": len(changes), "new_levels": len(levels)}
    applied["year_ends"] = len(_entries(payload, "year_ends"))
    return RatioPanel(companies, quarters, names, y, persistence, new_level, applied)


def definitions_of(payload: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the ratio definitions, after checking that they are complete and consistent."""
    definitions = _entries(payload, "ratios")
    stated = sum("innovation_sd" in each for each in definitions)
    if 0 < stated < len(definitions):
        raise InputError("ratios: innovation_sd must be stated of every ratio or of none, and then it is estimated")
    if payload.get("growth_line") is None and any(each.get("growth_effect") for each in definitions):
        raise InputError("ratios: growth_effect is stated, but not growth_line, the line whose growth it multiplies")
    return definitions


def by_ratio(entry: Mapping[str, Any], name: str, where: str, ratios: list[str]) -> Mapping[str, Any]:
    """Return a nonempty object that maps ratio names to numbers."""
    found = table_of(entry.get(name)) or {}
    if not found:
        raise InputError(f"{where}: {name} must map at least one ratio to a number; ratios are {listed(ratios)}")
    if unknown := [key for key in found if key not in ratios]:
        raise InputError(f"{where}: {name} of {listed(unknown)} belong to no ratio; ratios are {listed(ratios)}")
    return found


def _entries(payload: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    return object_entries(payload, name, _FIELDS[name])


def _divided(entry: Mapping[str, Any], statements: Mapping[str, Any], used: set[str]) -> list[str]:
    lines = [str(name) for name in list_of(entry.get("lines")) or ()]
    if unknown := [name for name in lines if name not in statements]:
        raise InputError(f"divide: lines has {listed(unknown)}, which the statements do not have")
    if not (found := [name for name in lines if name in used]):
        raise InputError(f"divide: lines must name a line that a ratio uses: {listed(sorted(used))}")
    return found


def _cell(entry: Mapping[str, Any], where: str, companies: list[str], quarters: list[str]) -> tuple[int, int]:
    return (
        index_of(companies, text_field(entry, "company", where), where),
        index_of(quarters, text_field(entry, "quarter", where), where),
    )


def _grid(statements: Mapping[str, Any], versions: object) -> tuple[list[str], list[str], Integers]:
    """Return companies, quarters, and the table row (n, T) of the first or last version of each."""
    if versions not in ("first", "last"):
        raise InputError('versions must be "first" or "last": which of several rows of a quarter counts')
    owner, when = list_column(statements, "company", "statements"), list_column(statements, "quarter", "statements")
    version = number_column(statements, "version", "statements")
    companies, quarters = sorted(set(owner)), sorted(set(when))
    place = {name: number for number, name in enumerate(companies)}
    at = {name: number for number, name in enumerate(quarters)}
    rows = np.full((len(companies), len(quarters)), -1)
    order = np.argsort(version if versions == "last" else -version, kind="stable")
    for row in order:
        rows[place[owner[row]], at[when[row]]] = row
    if (rows < 0).any():
        company, quarter = np.argwhere(rows < 0)[0]
        raise InputError(f"statements: {companies[company]} has no row for {quarters[quarter]}")
    return companies, quarters, rows


def _industries(payload: Mapping[str, Any], companies: list[str], quarters: list[str], names: list[str]) -> Floats:
    """Return the effect of industry paths and seasons on the log ratios (n, T, R), as far as the tables are given."""
    total = np.zeros((len(companies), len(quarters), len(names)))
    paths, seasons = table_field(payload, "industry_paths"), table_field(payload, "seasons")
    if seasons is None and payload.get("year_ends"):
        raise InputError("year_ends: seasons is missing, which they move; inject it from the task data")
    if paths is None and seasons is None:
        return total
    members = table_field(payload, "companies")
    if members is None:
        raise InputError("companies is missing (the industry of each company); inject it from the task data")
    unit = number_field(payload, "table_unit", "payload")
    owner = list(list_column(members, "company", "companies"))
    order = [index_of(owner, company, "companies") for company in companies]
    industry = [list_column(members, "industry", "companies")[place] for place in order]
    if paths is not None:
        known = _by_key(paths, "industry_paths", "quarter", names)
        total += unit * np.array([[known[each, quarter] for quarter in quarters] for each in industry])
    if seasons is not None:
        months = number_column(members, "year_end_month", "companies")[order].astype(int)
        ends = np.repeat(months[:, None], len(quarters), axis=1)
        for entry in _entries(payload, "year_ends"):
            company, quarter = _cell(entry, "year_ends", companies, quarters)
            ends[company, quarter:] = int(number_field(entry, "month", "year_ends"))
        fiscal = fiscal_quarters(np.array([3 * int(quarter[-1]) for quarter in quarters]), ends)
        known = _by_key(seasons, "seasons", "fiscal_quarter", names)
        total += unit * np.array(
            [[known[each, int(number)] for number in row] for each, row in zip(industry, fiscal, strict=True)]
        )
    return total


def fiscal_quarters(months: Integers, year_ends: Integers) -> Integers:
    """Return the fiscal quarter, 1 to 4, that ends in a month; a year end in 12 gives 1 for month 3."""
    return ((months - year_ends) // 3 - 1) % 4 + 1


def _by_key(values: Mapping[str, Any], where: str, key: str, names: list[str]) -> dict[tuple[Any, Any], Floats]:
    rows = np.stack([number_column(values, name, where) for name in names], axis=1)
    heads = zip(list_column(values, "industry", where), list_column(values, key, where), strict=True)
    return dict(zip(heads, rows, strict=True))
