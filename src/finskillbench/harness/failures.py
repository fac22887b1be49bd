"""Failure policy: one table for providers, models, tools and the disk.

`retried`: the call is repeated at most three times, after the provider's requested wait (at most 120 seconds) or 1, 2,
4 seconds. `graded`: the episode continues or ends with a verdict; otherwise its status is `error`, it has no scores,
and a resumed run repeats it. `stops`: the scope that ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from finskillbench.errors import Cause

Stops = Literal["nothing", "episode", "model", "run"]


@dataclass(frozen=True, slots=True)
class Policy:
    """Consequences of one cause, and their description in the documentation."""

    meaning: str
    retried: bool
    graded: bool
    stops: Stops
    shown: str


_RETRIED = "incidents; after 3 retries status error"
_AT_ONCE = "incidents; status error"
_NEVER_AGAIN = "incidents; status error; the model's other episodes are not run"
_STARTED_NO_MORE = "incidents; after 3 retries status error; the agent's other episodes are not run"
PROVIDER_POLICIES: Mapping[Cause, Policy] = MappingProxyType(
    {
        Cause.RATE_LIMIT: Policy("HTTP 429, with or without Retry-After", True, False, "episode", _RETRIED),
        Cause.SERVER: Policy(
            "HTTP 500, 502, 503, 504, 529; a failure that an answer states without a known cause",
            True,
            False,
            "episode",
            _RETRIED,
        ),
        Cause.CONNECTION: Policy("no connection, or none in time", True, False, "episode", _RETRIED),
        Cause.TIMEOUT: Policy("no answer in time, HTTP 408", True, False, "episode", _RETRIED),
        Cause.DROPPED: Policy("connection lost during the answer", True, False, "episode", _RETRIED),
        Cause.MALFORMED: Policy(
            "an answer that is not the protocol's JSON, or is beyond 8 MiB", True, False, "episode", _RETRIED
        ),
        Cause.EMPTY: Policy("an answer without choices", True, False, "episode", _RETRIED),
        Cause.BAD_REQUEST: Policy(
            "HTTP 400, 413, 422 and other refusals, redirects", False, False, "episode", _AT_ONCE
        ),
        Cause.AUTH: Policy("HTTP 401, 403", False, False, "model", _NEVER_AGAIN),
        Cause.QUOTA: Policy("HTTP 402, insufficient quota", False, False, "model", _NEVER_AGAIN),
        Cause.UNKNOWN_MODEL: Policy("HTTP 404", False, False, "model", _NEVER_AGAIN),
        Cause.ADAPTER: Policy("an adapter's own exception at its first call", False, False, "episode", _AT_ONCE),
        # The agent has read the task; starting further episodes would let it skip those it dislikes.
        Cause.NOT_STARTED: Policy(
            "an agent's command that fails before its first tool call", True, False, "model", _STARTED_NO_MORE
        ),
    }
)
"""Policy for each cause of a `finskillbench.errors.ProviderError`."""

Incident = Literal[
    "context_overflow",
    "max_tokens",
    "refused",
    "text_only",
    "invalid_arguments",
    "unknown_tool",
    "tool_failed",
    "too_many_calls",
    "call_repaired",
    "usage_unknown",
    "wait_capped",
    "adapter_failed",
    "no_answer",
    "out_of_time",
    "out_of_calls",
]
"""Events after which an episode continues or is graded; rows list them in order with the causes above."""

OTHER_POLICIES: Mapping[str, Policy] = MappingProxyType(
    {
        "context_overflow": Policy(
            "the conversation outgrew the model", False, True, "episode", "incidents; status incomplete_submission"
        ),
        "max_tokens": Policy(
            "an answer cut off by its length", False, True, "nothing", "incidents; continues with the received part"
        ),
        "refused": Policy("the model or a filter declined", False, True, "nothing", "incidents; a reminder is sent"),
        "text_only": Policy("text instead of a tool call", False, True, "nothing", "incidents; a reminder is sent"),
        "invalid_arguments": Policy(
            "arguments that are not JSON, or of the wrong type",
            False,
            True,
            "nothing",
            "incidents; the tool returns the error",
        ),
        "unknown_tool": Policy(
            "a tool that is not on offer", False, True, "nothing", "incidents; the tools on offer are named"
        ),
        "tool_failed": Policy(
            "a tool that declines, fails, crashes or takes too long",
            False,
            True,
            "nothing",
            "incidents; the tool returns the error",
        ),
        "too_many_calls": Policy(
            "more than 64 calls in one turn", False, True, "nothing", "incidents; further calls are dropped"
        ),
        "call_repaired": Policy(
            "a tool's name with a prefix, or arguments encoded twice, with one possible meaning",
            False,
            True,
            "nothing",
            "incidents; served after repair",
        ),
        "usage_unknown": Policy(
            "an answer without token counts, or with impossible ones",
            False,
            True,
            "nothing",
            "incidents; no cost; --max-cost counts its upper bound, --token-budget an estimate",
        ),
        "wait_capped": Policy(
            "a Retry-After of more than 120 seconds", False, True, "nothing", "incidents; retried after 120 seconds"
        ),
        "adapter_failed": Policy(
            "an adapter's own exception after an answer",
            False,
            True,
            "episode",
            "incidents; status incomplete_submission",
        ),
        "no_answer": Policy(
            "an agent that ends without an answer", False, True, "episode", "incidents; status incomplete_submission"
        ),
        "out_of_time": Policy(
            "an agent that takes longer than its `seconds`",
            False,
            True,
            "episode",
            "incidents; status incomplete_submission",
        ),
        "out_of_calls": Policy(
            "an agent that calls more tools than its `calls`",
            False,
            True,
            "episode",
            "incidents; status max_turns_exhausted",
        ),
        "out_of_turns": Policy(
            "no submission in the turns of an episode (--turns, 12)",
            False,
            True,
            "episode",
            "status max_turns_exhausted",
        ),
        "out_of_tokens": Policy(
            "no submission within the tokens of an episode (--token-budget)",
            False,
            True,
            "episode",
            "status budget_exhausted",
        ),
        "budget": Policy("--max-cost is reached", False, False, "run", "not run; exit code 1"),
        "interrupt": Policy("Ctrl-C, or kill", False, False, "run", "not run; exit code 130"),
        "disk": Policy("the run folder cannot be written", False, False, "run", "one line, exit code 2"),
    }
)
