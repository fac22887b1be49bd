"""The definitions and settings that an input states, held against those by which its truth was computed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from finskillbench.edition.validate.report import Findings
from finskillbench.engines.portfolio.black_litterman import RISK_AVERSION, TAU
from finskillbench.engines.portfolio.rebalance import OBJECTIVE_TOLERANCE
from finskillbench.engines.risk import exposures, stress
from finskillbench.episode import Episode
from finskillbench.scoring.values import mapping
from finskillbench.subtasks import black_litterman, fundamental, risk
from finskillbench.subtasks.constraint_monitoring import MONITORING
from finskillbench.subtasks.driver_decomposition import DECOMPOSITION
from finskillbench.subtasks.earnings_quality import QUALITY
from finskillbench.subtasks.normalization import NORMALISATION
from finskillbench.subtasks.portfolio import CONVENTIONS, OBJECTIVE_TEXT, UNITS
from finskillbench.subtasks.rebalancing import TWO_STAGES
from finskillbench.subtasks.risk_remediation import REMEDIATION

_SETTINGS: Mapping[str, Mapping[str, float]] = {
    "rebalancing": {"objective_tolerance": OBJECTIVE_TOLERANCE},
    "black_litterman": {"risk_aversion": RISK_AVERSION, "tau": TAU},
}
"""Numbers of an input that are no draw: every episode of the subtask has them."""
_DEFINED: Mapping[str, Mapping[str, str]] = {
    "constraint_monitoring": risk.conventions(risk.CONVENTIONS, MONITORING),
    "risk_identification": risk.conventions({"units": risk.UNITS}, exposures.CONVENTIONS),
    "stress_testing": risk.conventions({"units": risk.UNITS}, stress.CONVENTIONS),
    "risk_remediation": risk.conventions(risk.CONVENTIONS, REMEDIATION),
    "normalization": fundamental.CONVENTIONS | NORMALISATION,
    "earnings_quality": fundamental.CONVENTIONS | QUALITY,
    "driver_decomposition": fundamental.CONVENTIONS | DECOMPOSITION,
}
"""The definitions of the risk and the fundamental subtasks, the same in every episode."""
_UNDEFINED = frozenset({"tool_use_parameterization"})
"""Subtasks whose texts say everything themselves."""


def examine_definitions(episode: Episode, findings: Findings, *, built: bool) -> None:
    """Every definition is the engine's, every limit that is set is defined, and fixed settings are the engine's.

    An imported release has no definitions; what it does state is held against ours all the same.
    """
    where, given = episode.task_id, mapping(episode.input.get("conventions"))
    known = _known(episode)
    for name, text in sorted(given.items()):
        findings.expect(text == known.get(name), where, f"conventions: {name} is not defined as the engine computes it")
    if not built or episode.sub_task in _UNDEFINED:
        return
    needed = set(_DEFINED.get(episode.sub_task, ())) or {"tolerance"}
    absent = sorted(needed - set(given))
    findings.expect(not absent, where, f"conventions: {', '.join(absent)} is not defined")
    limits = mapping(episode.input.get("constraints"))
    missing = sorted(name for name in limits if limits[name] and name in CONVENTIONS and name not in given)
    findings.expect(not missing, where, f"conventions: {', '.join(missing)} is set but not defined")
    for name, value in _SETTINGS.get(episode.sub_task, {}).items():
        findings.expect(episode.input.get(name) == value, where, f"{name} is not {value:g}, by which the truth is made")


def _known(episode: Episode) -> Mapping[str, Any]:
    """Every definition that an input of this subtask may state."""
    if episode.sub_task in _DEFINED:
        return _DEFINED[episode.sub_task]
    if episode.sub_task == black_litterman.NAME:
        return black_litterman.MODEL
    objective = {name.value: text for name, text in OBJECTIVE_TEXT.items()}.get(str(episode.input.get("objective")))
    return {**CONVENTIONS, "units": UNITS, "two_stages": TWO_STAGES, "objective": objective}
