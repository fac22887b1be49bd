"""One finished episode of a run as a sample of an Inspect log: its row and its trajectory, nothing of its truth."""

from __future__ import annotations

from typing import Any

import msgspec
from inspect_ai.log import EvalError, EvalSample, EvalSampleLimit
from inspect_ai.model import ChatCompletionChoice, ChatMessageAssistant, ModelOutput

from finskillbench.harness.providers.inspect_words import to_chat, to_usage
from finskillbench.harness.trace import Trace
from finskillbench.integrations.verdict_scores import SCORER, to_score
from finskillbench.runs.store.rows import Row

_ELSEWHERE = frozenset({"task_id", "run_idx", "model", "score", "scores", "score_profile", "scoring_details"})
"""Columns of a row that have a place of their own in a sample, or none: the details of a verdict tell of the truth."""


def make_sample(row: Row, trace: Trace) -> EvalSample:
    """Build the sample of one episode from its row and its trace."""
    usage = to_usage(trace.usage)
    messages = to_chat(trace.messages)
    answers = [message for message in messages if isinstance(message, ChatMessageAssistant)]
    score = to_score(row.status, row.scores, trace.answer)
    return EvalSample(
        id=row.task_id,
        epoch=row.run_idx + 1,
        input=trace.messages[1].content,
        target="",
        messages=messages,
        output=ModelOutput(
            model=row.model,
            choices=[ChatCompletionChoice(message=answers[-1], stop_reason="unknown")] if answers else [],
            completion=trace.answer or "",
            usage=usage,
            time=row.latency_seconds,
        ),
        scores={} if score is None else {SCORER: score},
        metadata=_metadata(row, trace),
        model_usage={} if usage is None else {row.model: usage},
        started_at=None if row.started is None else row.started.isoformat(),
        completed_at=None if row.ended is None else row.ended.isoformat(),
        total_time=row.latency_seconds + row.queue_seconds + row.retry_seconds,
        working_time=row.latency_seconds,
        uuid=f"{row.task_id}-{row.run_idx}",
        error=None if trace.error is None else EvalError(message=trace.error, traceback="", traceback_ansi=""),
        limit=_limit(trace),
        turn_count=row.episodes,
    )


def _metadata(row: Row, trace: Trace) -> dict[str, Any]:
    columns: dict[str, Any] = msgspec.to_builtins(row)
    shown = {name: value for name, value in columns.items() if name not in _ELSEWHERE and value is not None}
    return {**shown, "ended": trace.ended, "prompt": trace.prompt_digest}


def _limit(trace: Trace) -> EvalSampleLimit | None:
    if trace.ended == "max_turns":
        return EvalSampleLimit(type="turn", limit=trace.turns, reason=f"no submission in {trace.turns} turns")
    if trace.ended == "budget_exhausted":
        generated = trace.usage.output_tokens
        told = "its tokens" if generated is None else f"{generated} tokens"
        return EvalSampleLimit(type="token", limit=generated or 0, reason=f"no submission in {told} of output")
    if trace.ended == "context_overflow":
        return EvalSampleLimit(type="context", limit=0, reason="the conversation outgrew the model")
    return None
