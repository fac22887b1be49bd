"""One finished episode of a run as a sample of an Inspect log: its row and its trajectory, nothing of its truth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inspect_ai.log import EvalError, EvalSample, EvalSampleLimit
from inspect_ai.model import ChatCompletionChoice, ChatMessageAssistant, ModelOutput

from finskillbench.harness.loop import MAX_TURNS
from finskillbench.harness.model import Message, ToolCall, Usage
from finskillbench.harness.providers.inspect_words import to_chat, to_usage
from finskillbench.interop.verdict_scores import SCORER, to_score

_ELSEWHERE = frozenset({"task_id", "run_idx", "model", "score", "scores", "score_profile", "scoring_details"})
"""Columns of a row that have a place of their own in a sample, or none: the details of a verdict tell of the truth."""


def make_sample(row: Mapping[str, Any], trajectory: Mapping[str, Any]) -> EvalSample:
    """Build the sample of one episode.

    Parameters
    ----------
    row : its row, as `rows.parquet` holds it.
    trajectory : its trajectory, as `finskillbench.runs.store.trajectories.read_trajectory` gives it.

    Raises
    ------
    KeyError, TypeError : the trajectory is not one of ours.
    """
    model = row["model"]
    usage = to_usage(Usage(**trajectory["usage"]))
    messages = to_chat([_message(entry) for entry in trajectory["messages"]])
    answers = [message for message in messages if isinstance(message, ChatMessageAssistant)]
    score = to_score(row["status"], row["scores"], trajectory["answer"])
    error = trajectory["error"]
    return EvalSample(
        id=row["task_id"],
        epoch=row["run_idx"] + 1,
        input=trajectory["messages"][1]["content"],
        target="",
        messages=messages,
        output=ModelOutput(
            model=model,
            choices=[ChatCompletionChoice(message=answers[-1], stop_reason="unknown")] if answers else [],
            completion=trajectory["answer"] or "",
            usage=usage,
            time=row["latency_seconds"],
        ),
        scores={} if score is None else {SCORER: score},
        metadata=_metadata(row, trajectory),
        model_usage={model: usage},
        total_time=row["latency_seconds"],
        uuid=f"{row['task_id']}-{row['run_idx']}",
        error=None if error is None else EvalError(message=error, traceback="", traceback_ansi=""),
        limit=_limit(trajectory["ended"]),
        turn_count=row["episodes"],
    )


def _metadata(row: Mapping[str, Any], trajectory: Mapping[str, Any]) -> dict[str, Any]:
    known = {name: value for name, value in row.items() if name not in _ELSEWHERE and value is not None}
    known["as_of_date"] = str(row["as_of_date"])
    return {**known, "ended": trajectory["ended"], "prompt": trajectory["prompt_digest"]}


def _message(entry: Mapping[str, Any]) -> Message:
    calls = tuple(ToolCall(**call) for call in entry["tool_calls"])
    return Message(entry["role"], entry["content"], calls, entry["tool_call_id"])


def _limit(ended: str) -> EvalSampleLimit | None:
    if ended == "max_turns":
        return EvalSampleLimit(type="turn", limit=MAX_TURNS, reason=f"no submission in {MAX_TURNS} turns")
    if ended == "context_overflow":
        return EvalSampleLimit(type="context", limit=0, reason="the conversation outgrew the model")
    return None
