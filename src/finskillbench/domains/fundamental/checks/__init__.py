"""Checks of the facts given to fundamental episodes; each subtask checks its own labels."""

from __future__ import annotations

from collections.abc import Mapping

from finskillbench.domains.base import DomainCheck
from finskillbench.domains.fundamental.checks import derived, filings
from finskillbench.domains.fundamental.checks.rows import check_segments
from finskillbench.domains.fundamental.checks.tables import check_durations, check_forms, check_metric_units

CHECKS: Mapping[str, DomainCheck] = {
    "coverage": derived.check_fundamental_coverage,
    "forms": check_forms,
    "durations": check_durations,
    "units": check_metric_units,
    "point_in_time": filings.check_facts_point_in_time,
    "restatements": filings.check_restatements,
    "derived_quarters": derived.check_derived_quarters,
    "balance_sheet": derived.check_balance_sheet,
    "identities": filings.check_identities,
    "entities": derived.check_entities,
    "segments": check_segments,
}
"""Checks in the order of `data validate`."""
