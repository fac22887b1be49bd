"""Checks of what fundamental episodes are given; their labels are checked by the subtasks."""

from __future__ import annotations

from collections.abc import Mapping

from finskillbench.domains.base import DomainCheck
from finskillbench.domains.fundamental.checks.derived import balance_sheet, coverage, derived_quarters, entities
from finskillbench.domains.fundamental.checks.filings import identities, point_in_time, restatements
from finskillbench.domains.fundamental.checks.rows import segments
from finskillbench.domains.fundamental.checks.tables import durations, forms, units

CHECKS: Mapping[str, DomainCheck] = {
    "coverage": coverage,
    "forms": forms,
    "durations": durations,
    "units": units,
    "point_in_time": point_in_time,
    "restatements": restatements,
    "derived_quarters": derived_quarters,
    "balance_sheet": balance_sheet,
    "identities": identities,
    "entities": entities,
    "segments": segments,
}
"""In the order in which `data validate` prints them."""
