"""Labels held against their own inputs by plain arithmetic: limits kept, units of one horizon, words and call alike."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from finskillbench.domains.checks.examination import Subject, each_label
from finskillbench.episode import Episode, JsonObject, Truth
from finskillbench.findings import Findings
from finskillbench.scoring.values import is_object, mapping, number, numbers
from finskillbench.sums import summed

_EXACT = 1e-8
_DUST = 1e-4
"""A weight below a basis point is no holding under any definition of one."""
_RISK_FREE_SHARE = 0.5
"""Annual returns of all names below this share of an annual risk-free rate are daily, or alphas."""
_FIGURE = re.compile(r"(?<!S&P )\b(\d+(?:\.\d+)?)\s*(%|per cent|percent|basis points|bps?\b)?")
"""A figure in words with its unit; the S&P 500 is a name."""
_UNITS = {"": 1.0, "%": 100.0, "per cent": 100.0, "percent": 100.0, "basis points": 1e4, "bp": 1e4, "bps": 1e4}


def feasible(subject: Subject, findings: Findings) -> None:
    """Every limit that an input sets holds for the weights of a published label."""
    if subject.built:
        findings.skip("labels of our own build are held to their limits when they are derived again")
        return

    def examine(episode: Episode, truth: Truth) -> None:
        _examine_limits(episode, subject.input_of(episode), truth.expected_output, findings)

    each_label(subject, findings, examine)


def units(subject: Subject, findings: Findings) -> None:
    """Expected returns, covariance and the risk-free rate are of one unit and horizon, and say so."""
    each_label(subject, findings, lambda episode, _: _examine_units(episode, subject.input_of(episode), findings))


def spec_agrees(subject: Subject, findings: Findings) -> None:
    """A mandate in words and the call that it implies hold the same figures, each as often."""

    def examine(episode: Episode, truth: Truth) -> None:
        _examine_call(episode, subject.input_of(episode), truth.expected_output, findings)

    each_label(subject, findings, examine)


def _examine_limits(episode: Episode, task_input: JsonObject, label: JsonObject, findings: Findings) -> None:
    named = (numbers(label.get(name)) for name in ("new_weights", "weights", "optimal_weights"))
    weights = next((found for found in named if found), None)
    if weights is None:
        return
    findings.add("labels")
    limits = mapping(task_input.get("constraints"))
    for name, excess in excesses(weights, limits, task_input):
        findings.expect(excess <= _EXACT, episode.task_id, f"the label exceeds it by {excess:.2g}", name)


def excesses(weights: Mapping[str, float], limits: JsonObject, task_input: JsonObject) -> Iterator[tuple[str, float]]:
    """By how much weights exceed each limit that needs no model."""
    yield "fully_invested", abs(summed(weights.values()) - 1)
    if limits.get("long_only", True):
        yield "long_only", -min(weights.values())
    if (cap := number(limits.get("max_weight"))) is not None:
        yield "max_weight", max(weights.values()) - cap
    held = sum(weight > _DUST for weight in weights.values())
    if (least := number(limits.get("min_names"))) is not None:
        yield "min_names", least - held
    sectors = mapping(task_input.get("sector_mapping"))
    for sector, most in numbers(limits.get("sector_limits")).items():
        yield f"sector_limits.{sector}", summed(w for name, w in weights.items() if sectors.get(name) == sector) - most
    before, turnover = numbers(task_input.get("current_portfolio")), number(limits.get("max_turnover"))
    if before and turnover is not None:
        moved = summed(abs(weights.get(name, 0.0) - before.get(name, 0.0)) for name in weights.keys() | before.keys())
        yield "max_turnover", moved / 2 - turnover


def _examine_units(episode: Episode, task_input: JsonObject, findings: Findings) -> None:
    returns, rate = numbers(task_input.get("expected_returns")), number(task_input.get("risk_free_rate"))
    if not returns:
        return
    findings.add("inputs")
    if "units" not in mapping(task_input.get("conventions")):
        findings.fail(episode.task_id, "are of a unit and horizon that nothing states", "expected_returns")
    if rate is not None and rate > 0:
        highest = max(returns.values())
        message = f"are at most {highest:.4f} beside an annual risk-free rate of {rate:.4f}: not of one horizon"
        findings.expect(highest > _RISK_FREE_SHARE * rate, episode.task_id, message, "expected_returns")


def _examine_call(episode: Episode, task_input: JsonObject, label: JsonObject, findings: Findings) -> None:
    words, call = task_input.get("scenario_description"), label.get("optimizer_call")
    if not isinstance(words, str) or not is_object(call) or "conventions" in task_input or "sectors" in task_input:
        return  # the texts of our own build are read word by word when their labels are derived again
    findings.add("mandates")
    said = Counter(round(float(figure) / _UNITS[unit or ""], 9) for figure, unit in _FIGURE.findall(words))
    asked = Counter(round(value, 9) for value in _figures(call))
    for figure in sorted(said - asked):
        message = f"the words state {figure:g} {_times(said[figure])}, the call {_times(asked[figure])}"
        findings.fail(episode.task_id, message, "optimizer_call")
    for figure in sorted((asked - said).keys() - {0.0, 1.0}):
        message = f"the call states {figure:g} {_times(asked[figure])}, the words {_times(said[figure])}"
        findings.fail(episode.task_id, message, "optimizer_call")


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times" if count else "never"


def _figures(value: Any) -> Iterator[float]:
    if is_object(value):
        for item in value.values():
            yield from _figures(item)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield float(value)
