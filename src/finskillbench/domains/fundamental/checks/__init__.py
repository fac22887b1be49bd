"""Checks of the facts given to fundamental episodes; each subtask checks its own labels."""

from __future__ import annotations

from collections.abc import Mapping

from finskillbench.domains.base import DomainCheck
from finskillbench.domains.fundamental.checks.derived import (
    check_balance_sheet,
    check_derived_quarters,
    check_entities,
    check_fundamental_coverage,
)
from finskillbench.domains.fundamental.checks.filings import (
    check_facts_point_in_time,
    check_identities,
    check_restatements,
)
from finskillbench.domains.fundamental.checks.rows import check_segments
from finskillbench.domains.fundamental.checks.tables import check_durations, check_forms, check_metric_units

CHECKS: Mapping[str, DomainCheck] = {
    "coverage": check_fundamental_coverage,
    "forms": check_forms,
    "durations": check_durations,
    "units": check_metric_units,
    "point_in_time": check_facts_point_in_time,
    "restatements": check_restatements,
    "derived_quarters": check_derived_quarters,
    "balance_sheet": check_balance_sheet,
    "identities": check_identities,
    "entities": check_entities,
    "segments": check_segments,
}
"""Checks in the order of `data validate`."""
