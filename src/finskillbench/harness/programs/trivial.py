"""`baseline/trivial`: for each subtask the best answer that needs no thought about the episode.

It is the floor to clear: equal weights, every constraint said to hold, the portfolio left as it is, everything
compliant, nothing unusual. It loads no skill and runs no script.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from finskillbench.domains import Naive
from finskillbench.harness.model import Message, ToolSpec, Turn
from finskillbench.harness.programs.program import Program
from finskillbench.harness.programs.reading import (
    fields_read,
    naive_answer,
    read_fields,
    submit,
    subtask_of,
    turns_taken,
)

_FIELDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "unconstrained_optimization": ("expected_returns",),
        "constrained_optimization": ("expected_returns", "constraints"),
        "rebalancing": ("current_portfolio",),
        "black_litterman": ("market_cap_weights",),
    }
)
_FLAGS = (
    "long_only",
    "max_weight",
    "min_weight",
    "sector_limits",
    "min_names",
    "max_names",
    "max_turnover",
    "max_tracking_error",
    "factor_neutrality",
)
_CONSTANT: Mapping[str, dict[str, Any]] = MappingProxyType(
    {
        "tool_use_parameterization": {
            "optimizer_call": {"objective": "max_sharpe", "constraints": {"long_only": True}}
        },
        "infeasibility_detection": {"feasible": True, "minimum_turnover": 0.0},
    }
)


class Trivial(Program):
    """`baseline/trivial`: reads at most the field that lists the tickers, then submits."""

    name = "baseline/trivial"

    def respond(self, messages: Sequence[Message], tools: Sequence[ToolSpec], tool_choice: str) -> Turn:
        """Ask for the fields that this subtask needs, then submit its constant answer."""
        subtask = subtask_of(messages)
        naive = subtask and (subtask.trivial or _table(subtask.name))
        if naive is not None and naive.fields and turns_taken(messages) == 0:
            return read_fields(*naive.fields)
        return submit(naive_answer(naive, fields_read(messages)))


def _table(sub_task: str) -> Naive:
    """What a subtask whose domain does not say it yet is answered."""
    return Naive(_FIELDS.get(sub_task, ()), lambda data: _answer(sub_task, data))


def _answer(sub_task: str, data: Mapping[str, Any]) -> dict[str, Any]:
    match sub_task:
        case "unconstrained_optimization":
            return {"weights": _equal(data.get("expected_returns"))}
        case "constrained_optimization":
            flags = {name: True for name in _FLAGS if _is_set((data.get("constraints") or {}).get(name))}
            return {"weights": _equal(data.get("expected_returns")), "constraint_satisfaction": flags}
        case "rebalancing":
            held = data.get("current_portfolio") or {}
            return {"trade_list": {}, "new_weights": held, "turnover": 0.0}
        case "black_litterman":
            weights = _equal(data.get("market_cap_weights"))
            return {"posterior_returns": dict.fromkeys(weights, 0.0), "optimal_weights": weights}
        case _:
            return _CONSTANT.get(sub_task, {})


def _equal(names: Mapping[str, Any] | None) -> dict[str, float]:
    return dict.fromkeys(names, 1.0 / len(names)) if names else {}


def _is_set(limit: Any) -> bool:
    return limit is not None and limit is not False
