"""The definitions and fixed settings that a portfolio task states, held against the engine's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from finskillbench.domains.definitions import examine_definitions
from finskillbench.domains.portfolio import black_litterman, tool_use_parameterization
from finskillbench.domains.portfolio.rebalancing import TWO_STAGES
from finskillbench.domains.portfolio.tiers import CONVENTIONS, OBJECTIVE_TEXT, UNITS
from finskillbench.engines.portfolio.black_litterman import RISK_AVERSION, TAU
from finskillbench.engines.portfolio.rebalance import OBJECTIVE_TOLERANCE
from finskillbench.episode import Episode
from finskillbench.findings import Findings
from finskillbench.scoring.values import mapping

_SETTINGS: Mapping[str, Mapping[str, float]] = {
    "rebalancing": {"objective_tolerance": OBJECTIVE_TOLERANCE},
    "black_litterman": {"risk_aversion": RISK_AVERSION, "tau": TAU},
}
"""Numbers of an input that are no draw: every episode of the subtask has them."""


def examine(episode: Episode, findings: Findings, *, built: bool) -> None:
    """Every definition is the engine's, every limit that is set is defined, and fixed settings are the engine's.

    An imported release has no definitions; what it does state is held against ours all the same.
    """
    stated = built and episode.sub_task != tool_use_parameterization.NAME  # its texts say everything themselves
    examine_definitions(episode, _known(episode), findings, needed={"tolerance"} if stated else ())
    if not stated:
        return
    given, limits = mapping(episode.input.get("conventions")), mapping(episode.input.get("constraints"))
    missing = sorted(name for name in limits if limits[name] and name in CONVENTIONS and name not in given)
    findings.expect(not missing, episode.task_id, f"conventions: {', '.join(missing)} is set but not defined")
    for name, value in _SETTINGS.get(episode.sub_task, {}).items():
        findings.expect(
            episode.input.get(name) == value, episode.task_id, f"{name} is not {value:g}, by which the truth is made"
        )


def _known(episode: Episode) -> Mapping[str, Any]:
    """Every definition that an input of this subtask may state."""
    if episode.sub_task == black_litterman.NAME:
        return black_litterman.MODEL
    objective = {name.value: text for name, text in OBJECTIVE_TEXT.items()}.get(str(episode.input.get("objective")))
    return {**CONVENTIONS, "units": UNITS, "two_stages": TWO_STAGES, "objective": objective}
