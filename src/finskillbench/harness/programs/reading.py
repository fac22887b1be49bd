"""How a baseline reads a conversation: all it may know is what stands in the messages."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import orjson

from finskillbench.errors import Cause, ProviderError
from finskillbench.harness.model import Message, ToolCall, Turn
from finskillbench.harness.prompts import APPENDIX

ANSWER_KEYS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "unconstrained_optimization": ("weights",),
        "constrained_optimization": ("weights", "constraint_satisfaction"),
        "tool_use_parameterization": ("optimizer_call",),
        "rebalancing": ("trade_list", "new_weights", "turnover"),
        "black_litterman": ("posterior_returns", "optimal_weights"),
        "infeasibility_detection": ("feasible", "minimum_turnover"),
        "constraint_monitoring": ("overall_compliant", "violations_count", "constraints"),
        "risk_identification": ("top_risk_exposures",),
        "stress_testing": ("estimated_pnl_pct", "attribution"),
        "risk_remediation": ("trades", "total_turnover", "post_trade_compliant"),
        "normalization": ("metrics",),
        "earnings_quality": (
            "piotroski_score",
            "piotroski_components",
            "beneish_m_score",
            "beneish_flag",
            "accruals_ratio",
            "income_quality_ratio",
            "flags",
        ),
        "driver_decomposition": ("revenue_delta", "top_revenue_drivers", "margin_drivers"),
    }
)
"""Top-level keys of each subtask's answer (specification, Subtasks)."""

_SUB_TASK = re.compile(r"^Subtask: (\S+)$", re.MULTILINE)


def prompt_of(messages: Sequence[Message]) -> str:
    """The task prompt, the first message of the user, without what an arm appended: the same in every condition."""
    return _opening(messages).partition(APPENDIX)[0]


def appended_of(messages: Sequence[Message]) -> str:
    """What the arm appended to the task prompt: a document, an instruction, or nothing."""
    return _opening(messages).partition(APPENDIX)[2]


def _opening(messages: Sequence[Message]) -> str:
    return next(message.content for message in messages if message.role == "user")


def sub_task_of(messages: Sequence[Message]) -> str:
    """The subtask named by the task prompt.

    Raises
    ------
    ProviderError : the prompt names none.
    """
    found = _SUB_TASK.search(prompt_of(messages))
    if found is None:
        raise ProviderError("baseline: the task prompt names no subtask", Cause.BAD_REQUEST)
    return found[1]


def turns_taken(messages: Sequence[Message]) -> int:
    """Model calls answered so far."""
    return sum(message.role == "assistant" for message in messages)


def fields_read(messages: Sequence[Message]) -> dict[str, Any]:
    """Values that `get_task_data` has returned so far, by field; a field that it refused is absent."""
    values: dict[str, Any] = {}
    for message in messages:
        if message.role == "tool":
            result = orjson.loads(message.content)
            if isinstance(result, dict) and "field" in result and "value" in result:
                values[result["field"]] = result["value"]
    return values


def pick(messages: Sequence[Message], count: int) -> int:
    """A number below `count` fixed by the task prompt, so that episodes differ and repeats agree."""
    digest = hashlib.sha256(prompt_of(messages).encode()).digest()
    return int.from_bytes(digest[:8]) % count


def call(name: str, number: int, /, **arguments: Any) -> ToolCall:
    """A well-formed tool call; `number` makes its id."""
    return ToolCall(f"call-{number}", name, orjson.dumps(arguments).decode())


def read_fields(*fields: str) -> Turn:
    """A turn that asks for input fields, in parallel."""
    return Turn(tool_calls=tuple(call("get_task_data", i, field=name) for i, name in enumerate(fields)))


def submit(answer: Any) -> Turn:
    """A turn that submits `answer`: a text as it is, anything else as JSON."""
    text = answer if isinstance(answer, str) else orjson.dumps(answer).decode()
    return Turn(tool_calls=(call("submit_answer", 0, answer=text),))
