"""Checks of what fundamental episodes are given; their labels are checked by the subtasks."""

from __future__ import annotations

from collections.abc import Mapping

from finskillbench.domains.base import DomainCheck
from finskillbench.domains.fundamental.checks.balance_sheet import balance_sheet
from finskillbench.domains.fundamental.checks.coverage import coverage
from finskillbench.domains.fundamental.checks.derived import derived_quarters
from finskillbench.domains.fundamental.checks.entities import entities
from finskillbench.domains.fundamental.checks.identities import identities
from finskillbench.domains.fundamental.checks.point_in_time import point_in_time
from finskillbench.domains.fundamental.checks.restatements import restatements
from finskillbench.domains.fundamental.checks.segments import segments
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
