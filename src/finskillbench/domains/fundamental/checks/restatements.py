"""The check of restated figures: the old one is served before the day of the new one, the new one from then on."""

from __future__ import annotations

from datetime import date, timedelta
from itertools import pairwise

import polars as pl

from finskillbench.domains.checks.examination import Subject, examining
from finskillbench.domains.fundamental.checks.reporting import fail_rows
from finskillbench.domains.fundamental.checks.rows import Row, companies
from finskillbench.errors import InputError
from finskillbench.findings import Findings
from finskillbench.panels.filings.query import FactStore

_ASKED = 200
"""Restated figures that are asked for before and after."""


def restatements(subject: Subject, findings: Findings) -> None:
    """A figure, or its tag, is new where it is there again; before that day the old one is served, then the new one."""
    panels = subject.panels(findings)
    if panels is None:
        return
    twice = panels.facts.filter(pl.struct("symbol", "metric", "start", "end", "filed").is_duplicated())
    fail_rows(twice, "facts: two figures of one period were filed on one day", findings)
    restated: list[tuple[str, Row, Row]] = []
    for company in companies(panels.facts, findings):
        for table in (company.filed, company.differences):
            for rows in table.values():
                for before, after in pairwise(rows):
                    changed = before.value != after.value
                    where = f"{company.symbol} {after.where}"
                    new = changed or before.tag != after.tag
                    findings.expect(new, where, f"repeats what was filed on {before.filed}")
                    if changed and not before.derived and not after.derived:
                        restated.append((company.symbol, before, after))
    findings.figures["restated"] = len(restated)
    filings = subject.edition.filings
    if filings is None:
        return
    store = filings.references.facts
    step = max(1, len(restated) // _ASKED)
    for symbol, before, after in restated[::step][:_ASKED]:
        where = f"{symbol} {after.where}"
        with examining(where, findings):
            for row, day in ((before, after.filed - timedelta(days=1)), (after, after.filed)):
                served = _served(store, symbol, row, day)
                findings.expect(
                    served == row.value, where, f"is served as {served} on {day}, where {row.value:.12g} was current"
                )
            findings.add("asked")


def _served(store: FactStore, symbol: str, row: Row, day: date) -> float | None:
    """The value of a metric and period that scripts are given on a day."""
    try:
        facts = store.visible(symbol, day, row.end)["facts"]
    except InputError:
        return None
    subject = row.metric, None if row.start is None else str(row.start), str(row.end)
    return next((fact["value"] for fact in facts if (fact["metric"], fact["start"], fact["end"]) == subject), None)
