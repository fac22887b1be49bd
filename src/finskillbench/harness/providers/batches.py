"""What Inspect's adapters of batch interfaces lack: one failed line must not fail a batch, and nothing is printed.

A batch of OpenAI's, and of those who copy it, is a file with a line for each request. A line of a refused request has
the refusal in place of an answer, one of a request that was not reached in time has a word in place of a status.
Inspect reads both as an answer, stumbles, and gives up the whole batch: a thousand paid calls for one that was too
long. Here each line fails or succeeds by itself.
"""

from __future__ import annotations

from typing import Any

from finskillbench.errors import Cause, ProviderError
from finskillbench.harness.providers.replies import repaired
from finskillbench.redaction import logger

_LOG = logger(__name__)
PROVIDERS = ("anthropic", "google", "grok", "openai", "together")
"""Those for whose batch interface the pinned Inspect has an adapter."""
SECONDS = 26 * 3600.0
"""A batch is answered within a day, or expires; two hours more for what waits before and after it."""
RETRIES = 8
"""Of asking how a batch stands, and of its results: a failure there would fail all that is in it."""


def prepare() -> None:
    """Have Inspect read each line by itself, and tell our log, not the terminal, how batches stand."""
    from inspect_ai.model._providers._openai_batch import OpenAIBatcher
    from inspect_ai.model._providers.util.batch_log import set_batch_log_callback

    set_batch_log_callback(_LOG.info)
    batcher: Any = OpenAIBatcher
    if batcher._parse_jsonl_line is not _line:
        _parsers.append(batcher._parse_jsonl_line)
        batcher._parse_jsonl_line = _line


_parsers: list[Any] = []
"""Inspect's own reader of a line."""


def _line(self: Any, line: dict[str, Any]) -> tuple[str, Any]:
    """The id of a request, and its answer or why there is none."""
    name = str(line.get("custom_id"))
    try:
        refusal = _refusal(self, line)
        if refusal is not None:
            return name, refusal
        response = line["response"]
        body = repaired(response["body"], chat="output" not in response["body"])
        return _parsers[0](self, {**line, "response": {**response, "body": body}})
    except Exception as failure:  # noqa: BLE001 - whatever an answer lacks is its own call's failure
        return name, failure


def _refusal(batcher: Any, line: dict[str, Any]) -> Exception | None:
    """Why a request has no answer, None where it has one."""
    error: dict[str, Any] | None = line.get("error")
    if error is not None and not isinstance(error.get("code"), int):
        return ProviderError(f"{error.get('code')}: {error.get('message')}", Cause.TIMEOUT)
    response: dict[str, Any] = line.get("response") or {}
    status = response.get("status_code", 200) if error is None else error["code"]
    if status == 200:
        return None
    import httpx2

    body = response.get("body", {}) if error is None else {"error": error}
    told = httpx2.Response(status, json=body, request=httpx2.Request("POST", str(batcher.endpoint)))
    return batcher._openai_client._make_status_error_from_response(told)


def failure(error: Exception, name: str) -> ProviderError | None:
    """What Inspect tells in words alone, a batch that was refused whole or a line of Google's; else None."""
    if isinstance(error, ProviderError):
        return ProviderError(f"{name}: {error}", error.cause)
    if type(error) is RuntimeError:
        return ProviderError(f"{name}: {error}", Cause.SERVER)
    return None
