"""Checks of a table of statements: broken identities, unit errors, several versions, and leaps of growth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from finskillbench.engines.fields import refuse_unknown, table_of
from finskillbench.errors import InputError
from finskillbench_desk.engines.screening.fields import list_column, number_column, table_field

SHOWN = 60
"""Most entries shown of a list; results also give the total number."""


def statement_checks(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Find broken identities, quarters with several versions, and leaps of revenue."""
    refuse_unknown(payload, ("statements", "layout", "growth_line"), "statement_checks")
    statements = table_field(payload, "statements")
    layout = table_of(payload.get("layout"))
    identities = table_of(layout.get("identities")) if layout is not None else None
    if statements is None or identities is None:
        raise InputError("statements and layout (with identities) are needed; inject both from the task data")
    broken = _broken(statements, identities)
    versions = _versions(statements)
    growth_line = str(payload.get("growth_line") or "net_revenue")
    leaps = _leaps(statements, growth_line)
    return {
        "identities_checked": len(identities),
        "broken": broken[:SHOWN],
        "broken_in_all": len(broken),
        "restated": versions[:SHOWN],
        "restated_in_all": len(versions),
        "fastest_growth": leaps[:20],
        "units": sorted({str(unit) for unit in statements.get("unit", ())}),
        "used": {"growth_line": growth_line},
    }


def _broken(statements: Mapping[str, Any], identities: Mapping[str, Any]) -> list[dict[str, Any]]:
    owner, when = list_column(statements, "company", "statements"), list_column(statements, "quarter", "statements")
    found: list[dict[str, Any]] = []
    for total, parts in identities.items():
        stated = number_column(statements, total, "statements")
        added = np.zeros_like(stated)
        for part, sign in (table_of(parts) or {}).items():
            added += float(sign) * number_column(statements, part, "statements")
        found.extend(
            {
                "company": owner[row],
                "quarter": when[row],
                "total": total,
                "stated": float(stated[row]),
                "added_up": float(added[row]),
                "stated_over_added_up": round(float(stated[row] / added[row]), 6) if added[row] else None,
            }
            for row in np.flatnonzero(stated != added).tolist()
        )
    return found


def _versions(statements: Mapping[str, Any]) -> list[dict[str, Any]]:
    """List companies with several rows per quarter: the range of quarters and the lines that differ most."""
    owner, when = list_column(statements, "company", "statements"), list_column(statements, "quarter", "statements")
    version = number_column(statements, "version", "statements")
    rows: dict[tuple[str, str], list[int]] = {}
    for row, key in enumerate(zip(owner, when, strict=True)):
        rows.setdefault(key, []).append(row)
    by_company: dict[str, list[tuple[str, int, int]]] = {}
    for (company, quarter), places in rows.items():
        if len(places) > 1:
            first, *_, last = sorted(places, key=lambda row: version[row])
            by_company.setdefault(company, []).append((quarter, first, last))
    names = [name for name, values in statements.items() if len(values) and isinstance(values[0], int | float)]
    lines = {name: number_column(statements, name, "statements") for name in names if by_company and name != "version"}
    found: list[dict[str, Any]] = []
    for company, pairs in by_company.items():
        before, after = np.array([first for _, first, _ in pairs]), np.array([last for _, _, last in pairs])
        moved = {name: float(np.abs(_log_change(values, before, after)).max()) for name, values in lines.items()}
        largest = sorted(moved, key=lambda name: -moved[name])[:4]
        found.append(
            {
                "company": company,
                "from": min(quarter for quarter, _, _ in pairs),
                "to": max(quarter for quarter, _, _ in pairs),
                "quarters": len(pairs),
                "largest_log_changes": {name: round(moved[name], 4) for name in largest},
            }
        )
    return found


def _log_change(values: Any, before: Any, after: Any) -> Any:
    first, last = values[before], values[after]
    positive = (first > 0) & (last > 0)
    return np.where(positive, np.log(np.where(positive, last, 1.0) / np.where(positive, first, 1.0)), 0.0)


def _leaps(statements: Mapping[str, Any], line: str) -> list[dict[str, Any]]:
    """List the fastest revenue growth over any four quarters by company, from the last version of each quarter."""
    owner, when = list_column(statements, "company", "statements"), list_column(statements, "quarter", "statements")
    version, revenue = number_column(statements, "version", "statements"), number_column(statements, line, "statements")
    latest: dict[str, dict[str, float]] = {}
    for row in np.argsort(version, kind="stable"):
        latest.setdefault(owner[row], {})[when[row]] = float(revenue[row])
    found: list[dict[str, Any]] = []
    for company, series in latest.items():
        quarters = sorted(series)
        logs = np.log(np.maximum([series[quarter] for quarter in quarters], 1.0))
        if len(logs) > 4:
            year = logs[4:] - logs[:-4]
            place = int(year.argmax())
            entry = {
                "company": company,
                "until": quarters[place + 4],
                "log_growth_of_a_year": round(float(year[place]), 3),
            }
            found.append(entry)
    return sorted(found, key=lambda entry: -entry["log_growth_of_a_year"])
