"""The ladder of tool use: the call, an equal one, one limit wrong, another objective, no limit at all."""

from __future__ import annotations

import copy
from typing import Any

from finskillbench.domains.examples import GradedExample, Label
from finskillbench.domains.portfolio.tool_use.call import ANOTHER_OBJECTIVE
from finskillbench.engines.portfolio.problem import Objective
from finskillbench.episode import JsonObject

_NUMBERS = ("max_weight", "min_weight", "max_sector_weight", "max_turnover", "max_tracking_error")


def ladder(label: Label[Any]) -> list[GradedExample]:
    """Of tool use; a limit that is missing, wrong or in per cent costs half."""
    truth = label.truth.expected_output
    call = truth["optimizer_call"]
    limits: dict[str, Any] = call["constraints"]
    rungs = [
        GradedExample("the call", truth, 1.0, 1.0),
        GradedExample(
            "the same call in other words", _with(call, _spelled_out(limits, label.task_input["sectors"])), 1.0, 1.0
        ),
    ]
    demanded = [name for name in limits if name not in ("long_only", "neutrality_tolerance")]
    wrong = {name: limits[name] * 100 for name in _NUMBERS if name in limits}
    if wrong:
        first = min(wrong)
        rungs.append(GradedExample("one limit in per cent", _with(call, limits | {first: wrong[first]}), 0.3, 0.5))
    others = [name for name in Objective if name != call["objective"]]
    another = {**call, "objective": others[0].value}
    rungs.append(GradedExample("another objective", {"optimizer_call": another}, 0.05, ANOTHER_OBJECTIVE))
    if len(wrong) == len(demanded) and limits["long_only"] and "risk_aversion" not in call:
        rungs.append(GradedExample("every limit in per cent", _with(call, limits | wrong), 0.0, 0.0))
    alone = {"objective": call["objective"], "constraints": {"long_only": True}}
    rungs.append(GradedExample("the objective alone", {"optimizer_call": alone}, 0.0, 0.0))
    rungs.append(GradedExample("no call", {"optimizer_call": {}}, 0.0, 0.0))
    return rungs


def _with(call: JsonObject, constraints: JsonObject) -> JsonObject:
    return {"optimizer_call": {**call, "constraints": constraints}}


def _spelled_out(limits: JsonObject, sectors: list[str]) -> JsonObject:
    """Sector by sector instead of for all, a floor of nothing instead of long-only, defaults named."""
    said = copy.deepcopy(dict(limits))
    caps = said.pop("sector_limits", {})
    if "max_sector_weight" in said:
        caps = dict.fromkeys(sectors, said.pop("max_sector_weight")) | caps
    caps |= dict.fromkeys(said.pop("excluded_sectors", []), 0.0)
    if caps:
        said["sector_limits"] = caps
    if limits["long_only"] and "min_weight" not in limits:
        said |= {"long_only": False, "min_weight": 0.0}
    if "neutral_factors" in limits:
        said.setdefault("neutrality_tolerance", 0.01)
    return said
