"""Fundamental analysis: filings as they were public on their day, normalised, judged and compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from finskillbench.domains.base import Domain
from finskillbench.domains.building import BuildContext, load_catalog
from finskillbench.domains.fundamental import driver_decomposition, earnings_quality, normalization
from finskillbench.domains.fundamental.checks import data, panel, point_in_time, segments, truth
from finskillbench.domains.fundamental.shared import CATALOG, fundamental_pools


def _prepare(context: BuildContext) -> BuildContext:
    return context


def _parameters(objects: Any) -> dict[str, Any]:
    return {"fundamental": load_catalog(CATALOG), "fundamental_pools": fundamental_pools(objects)}


DOMAIN = Domain(
    name="fundamental_analysis",
    skills=(Path(__file__).parent / "skill" / "fundamental-analysis",),
    subtasks=(normalization.SUBTASK, earnings_quality.SUBTASK, driver_decomposition.SUBTASK),
    prepare=_prepare,
    checks={
        "coverage": data.coverage,
        "forms": data.forms,
        "durations": data.durations,
        "units": data.units,
        "point_in_time": point_in_time.point_in_time,
        "restatements": panel.restatements,
        "derived_quarters": panel.derived_quarters,
        "balance_sheet": panel.balance_sheet,
        "segments": segments.segments,
        "normalization": truth.normalization,
        "earnings_quality": truth.earnings_quality,
        "driver_decomposition": truth.driver_decomposition,
    },
    tools=("query_xbrl",),
    protocol_episodes=100,
    parameters=_parameters,
)
