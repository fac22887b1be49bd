"""Shortcuts and graded examples of tool use."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any

from finskillbench.domains.examples import GradedExample, Label
from finskillbench.domains.portfolio.examples.exploits import Answers
from finskillbench.domains.portfolio.inputs import ToolUseInput
from finskillbench.domains.portfolio.tool_use import ANOTHER_OBJECTIVE
from finskillbench.engines.portfolio.mandates.text import read_mandate
from finskillbench.engines.portfolio.problem import Objective
from finskillbench.episode import JsonObject

_SENTENCE = re.compile(r"(?<=[.])\s+(?=[A-Z])")
_SHARES = ("max_weight", "min_weight", "max_sector_weight", "max_turnover", "max_tracking_error")


def shortcuts(task_input: ToolUseInput) -> Answers:
    """Return calls of careless readings, without those equal to the correct call."""
    text, sectors = task_input["scenario_description"], task_input.get("sectors", [])

    def read(change: Callable[[str], str | None]) -> dict[str, Any]:
        """Return the call of a text with changed sentences; None drops a sentence."""
        changed = (change(sentence) for sentence in _SENTENCE.split(text))
        return read_mandate(" ".join(filter(None, changed)), sectors).call()

    right = read(lambda sentence: sentence)
    limits: dict[str, Any] = right["constraints"]
    sentences = _SENTENCE.split(text)
    half = set(sentences[: (len(sentences) + 1) // 2])
    objectives = [name for name in Objective if name != right["objective"]]
    found = {
        "amendments ignored": read(lambda one: None if " amendment" in one else one),
        "conditional limits ignored": read(lambda one: None if one.startswith("Once ") else one),
        "every clause taken as in force": read(_in_force),
        "excess over the benchmark read as the limit": read(_absolute),
        "months and two-way turnover not converted": read(_unconverted),
        "percentages not converted to decimals": {**right, "constraints": _in_percent(limits)},
        "first half of the mandate only": read(lambda one: one if one in half else None),
        "sector limits left out": {**right, "constraints": _without_sectors(limits)},
        "another objective": {**right, "objective": objectives[0].value},
    }
    return {name: {"optimizer_call": call} for name, call in found.items() if call != right}


def _in_force(sentence: str) -> str:
    """Rewrite conditions as met, and past statements as present ones."""
    sentence = re.sub(r"^Once the account has reached USD \d+ million: ", "First amendment: ", sentence)
    sentence = re.sub(
        r"^(Last year|Until now|Previously|At the last review|In the past),? ", "First amendment: ", sentence
    )
    return re.sub(r"had been|came to", "may not exceed", sentence)


def _absolute(sentence: str) -> str:
    relative = r",? (?:which )?weighs .* may exceed that by (?:no more than )?"
    return re.sub(relative, " may not exceed ", sentence) if "of the benchmark" in sentence else sentence


def _unconverted(sentence: str) -> str:
    sentence = re.sub(r"a month|by month|square root of twelve", "", sentence)
    return re.sub(r"[Tt]wo-way|[Pp]urchases (?:plus|and) sales", "Turnover", sentence)


def _in_percent(limits: dict[str, Any]) -> dict[str, Any]:
    found = {name: 100 * value if name in _SHARES else value for name, value in limits.items()}
    if "sector_limits" in limits:
        found["sector_limits"] = {name: 100 * cap for name, cap in limits["sector_limits"].items()}
    return found


def _without_sectors(limits: dict[str, Any]) -> dict[str, Any]:
    dropped = ("sector_limits", "max_sector_weight", "excluded_sectors")
    return {name: value for name, value in limits.items() if name not in dropped}


_NUMBERS = ("max_weight", "min_weight", "max_sector_weight", "max_turnover", "max_tracking_error")


def graded_examples(label: Label[Any]) -> list[GradedExample]:
    """Return graded answers; a limit that is missing, wrong or in per cent costs half."""
    truth = label.truth.expected_output
    call = truth["optimizer_call"]
    limits: dict[str, Any] = call["constraints"]
    graded = [
        GradedExample("the call", truth, 1.0, 1.0),
        GradedExample(
            "the same call in other words", _with(call, _spelled_out(limits, label.task_input["sectors"])), 1.0, 1.0
        ),
    ]
    demanded = [name for name in limits if name not in ("long_only", "neutrality_tolerance")]
    wrong = {name: limits[name] * 100 for name in _NUMBERS if name in limits}
    if wrong:
        first = min(wrong)
        graded.append(GradedExample("one limit in per cent", _with(call, limits | {first: wrong[first]}), 0.3, 0.5))
    other_objectives = [name for name in Objective if name != call["objective"]]
    another = {**call, "objective": other_objectives[0].value}
    graded.append(GradedExample("another objective", {"optimizer_call": another}, 0.05, ANOTHER_OBJECTIVE))
    if len(wrong) == len(demanded) and limits["long_only"] and "risk_aversion" not in call:
        graded.append(GradedExample("every limit in per cent", _with(call, limits | wrong), 0.0, 0.0))
    alone = {"objective": call["objective"], "constraints": {"long_only": True}}
    graded.append(GradedExample("the objective alone", {"optimizer_call": alone}, 0.0, 0.0))
    graded.append(GradedExample("no call", {"optimizer_call": {}}, 0.0, 0.0))
    return graded


def _with(call: JsonObject, constraints: JsonObject) -> JsonObject:
    return {"optimizer_call": {**call, "constraints": constraints}}


def _spelled_out(limits: JsonObject, sectors: list[str]) -> JsonObject:
    """Rewrite a call equivalently: caps by sector, a zero floor instead of long-only, explicit defaults."""
    rewritten = copy.deepcopy(dict(limits))
    caps = rewritten.pop("sector_limits", {})
    if "max_sector_weight" in rewritten:
        caps = dict.fromkeys(sectors, rewritten.pop("max_sector_weight")) | caps
    caps |= dict.fromkeys(rewritten.pop("excluded_sectors", []), 0.0)
    if caps:
        rewritten["sector_limits"] = caps
    if limits["long_only"] and "min_weight" not in limits:
        rewritten |= {"long_only": False, "min_weight": 0.0}
    if "neutral_factors" in limits:
        rewritten.setdefault("neutrality_tolerance", 0.01)
    return rewritten
