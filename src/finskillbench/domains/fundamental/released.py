"""How the published release carries the fundamental subtasks."""

from __future__ import annotations

from finskillbench.domains.base import Released

RELEASED = {
    "normalization": Released(lambda _: ("symbol", "period_end", "xbrl_ref")),
    "earnings_quality": Released(lambda _: ("symbol", "period_end", "xbrl_ref")),
    "driver_decomposition": Released(lambda _: ("symbol", "current_period_end", "prior_period_end", "xbrl_ref")),
}
