"""Determine the cause of a provider failure from the exception of its package.

The chain of causes is searched for an HTTP status, response headers and class names; importing ten packages to compare
classes would take seconds.

Order of precedence, also for failures stated in a reply of status 200: phrases for an empty account; the HTTP status,
or the one stated in the reply; the stated code or type; the exception's class; other phrases. Other stated failures
count as the server's.
"""

from __future__ import annotations

import json
import math
import socket
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError

from finskillbench.errors import Cause, ProviderError
from finskillbench.harness.providers.bounds import OversizedAnswerError
from finskillbench.harness.providers.replies import ReplyError
from finskillbench.scoring.values import is_object

_LONGEST_MESSAGE = 400
_CLIENTS = frozenset(
    {"httpx", "httpx2", "httpcore", "httpcore2", "aiohttp", "botocore", "urllib3", "openai", "anthropic", "groq"}
)
"""Packages whose exceptions are identified by the names in `_PRECISE` and `_VAGUE`."""
_PRECISE: Mapping[str, Cause] = MappingProxyType(
    {
        "ConnectError": Cause.CONNECTION,
        "ConnectTimeout": Cause.CONNECTION,
        "ConnectTimeoutError": Cause.CONNECTION,
        "ProxyError": Cause.CONNECTION,
        "ClientConnectorError": Cause.CONNECTION,
        "EndpointConnectionError": Cause.CONNECTION,
        "ReadTimeout": Cause.TIMEOUT,
        "WriteTimeout": Cause.TIMEOUT,
        "PoolTimeout": Cause.TIMEOUT,
        "ServerTimeoutError": Cause.TIMEOUT,
        "ReadTimeoutError": Cause.TIMEOUT,
        "ReadError": Cause.DROPPED,
        "WriteError": Cause.DROPPED,
        "RemoteProtocolError": Cause.DROPPED,
        "ServerDisconnectedError": Cause.DROPPED,
        "ClientPayloadError": Cause.DROPPED,
        "ConnectionClosedError": Cause.DROPPED,
        "ResponseStreamingError": Cause.DROPPED,
        "DecodingError": Cause.MALFORMED,
        "APIResponseValidationError": Cause.MALFORMED,
    }
)
_VAGUE: Mapping[str, Cause] = MappingProxyType(
    {"APITimeoutError": Cause.TIMEOUT, "APIConnectionError": Cause.CONNECTION, "APIError": Cause.SERVER}
)
"""Classes with several possible causes, used only if the chain has nothing more precise."""
_BUILT_IN: tuple[tuple[type[BaseException], Cause], ...] = (
    (OversizedAnswerError, Cause.MALFORMED),
    (TimeoutError, Cause.TIMEOUT),
    (ConnectionRefusedError, Cause.CONNECTION),
    (socket.gaierror, Cause.CONNECTION),
    (ConnectionError, Cause.DROPPED),
    (json.JSONDecodeError, Cause.MALFORMED),
    (UnicodeDecodeError, Cause.MALFORMED),
    (ValidationError, Cause.MALFORMED),
    # Inspect does not check the shape of answers; these exceptions mean a wrong shape.
    (TypeError, Cause.MALFORMED),
    (AttributeError, Cause.MALFORMED),
    (LookupError, Cause.MALFORMED),
    (RecursionError, Cause.MALFORMED),
    (AssertionError, Cause.MALFORMED),
)
_CODES: Mapping[str, Cause] = MappingProxyType(
    {
        **dict.fromkeys(("rate_limit_exceeded", "rate_limit_error", "too_many_requests"), Cause.RATE_LIMIT),
        **dict.fromkeys(("resource_exhausted", "throttlingexception", "ratelimiterror"), Cause.RATE_LIMIT),
        **dict.fromkeys(("server_error", "internal_error", "api_error", "overloaded_error"), Cause.SERVER),
        **dict.fromkeys(("internal", "unavailable", "internal_server_error", "internalservererror"), Cause.SERVER),
        **dict.fromkeys(("deadline_exceeded", "timeout_error", "timeout"), Cause.TIMEOUT),
        **dict.fromkeys(("unauthenticated", "permission_denied", "permission_error"), Cause.AUTH),
        **dict.fromkeys(("authentication_error", "invalid_api_key", "authenticationerror"), Cause.AUTH),
        **dict.fromkeys(("insufficient_quota", "billing_error", "insufficient_credits"), Cause.QUOTA),
        **dict.fromkeys(("not_found", "not_found_error", "model_not_found", "notfounderror"), Cause.UNKNOWN_MODEL),
        **dict.fromkeys(("invalid_argument", "invalid_request_error", "badrequesterror"), Cause.BAD_REQUEST),
    }
)
"""Lower-case codes and types of errors without an HTTP status: in a reply, in a stream, over gRPC."""
_PHRASES: tuple[tuple[tuple[str, ...], Cause], ...] = (
    (("rate limit", "rate-limit", "too many requests"), Cause.RATE_LIMIT),
    (("unauthorized", "api key", "authentication"), Cause.AUTH),
    (("timed out", "timeout"), Cause.TIMEOUT),
)
_STATUSES: Mapping[int, Cause] = MappingProxyType(
    {
        401: Cause.AUTH,
        402: Cause.QUOTA,
        403: Cause.AUTH,
        404: Cause.UNKNOWN_MODEL,
        408: Cause.TIMEOUT,
        429: Cause.RATE_LIMIT,
    }
)
_NO_CREDIT = (
    *("insufficient_quota", "insufficient quota", "insufficient credits", "insufficient balance"),
    *("credit balance is too low", "exceeded your current quota"),
)
_NO_CALL = "tool_use_failed"
"""Groq's code for an unreadable tool call, a mistake of the model and not of the provider."""
_UNREADABLE = "the model produced output that does not match the expected"
"""llama.cpp's message for the same, with HTTP 500."""
_TOO_LONG = (
    "context_length_exceeded",
    "maximum context length",
    "exceed_context_size",
    "exceeds the available context size",
    "exceed context window",
    "prompt is too long",
    "input is too long",
    "input length",
)
"""Phrases of servers for a conversation that is too long; Inspect knows only some of them."""


def provider_error(error: BaseException, name: str) -> ProviderError:
    """Convert an exception of the model called `name` to one line with a cause."""
    chain = list(_chain(error))
    status = next((found for link in chain if (found := _status(link)) is not None), None)
    stated = _stated(chain)
    text = _text(chain) if stated is None else str(stated)
    if stated is not None and stated.status is not None:
        where = f"{name}: error {stated.status} in an answer of HTTP 200"
    else:
        where = name if status is None else f"{name}: HTTP {status}"
    return ProviderError(f"{where}: {_shorten(text)}", _cause(chain, status, text), retry_after=_retry_after(chain))


def is_overflow(error: BaseException) -> bool:
    """Return True if a request was refused for the length of its conversation."""
    chain = list(_chain(error))
    stated = _stated(chain)
    statuses = {_status(link) for link in chain} if stated is None else {stated.status or 400}
    text = _text(chain) if stated is None else str(stated)
    return bool(statuses & {400, 413, 422}) and any(phrase in text.lower() for phrase in _TOO_LONG)


def failed_call(error: BaseException) -> str | None:
    """Return the model's text in place of a readable tool call; None for any other failure."""
    bodies = [body for link in _chain(error) if is_object(body := getattr(link, "body", None))]
    unreadable = (
        each for each in bodies if each.get("code") == _NO_CALL or _UNREADABLE in str(each.get("message")).lower()
    )
    return next((str(body.get("failed_generation") or "") for body in unreadable), None)


def _cause(chain: list[BaseException], status: int | None, text: str) -> Cause:
    stated, lowered = _stated(chain), text.lower()
    if stated is not None:
        if stated.cause is not None:
            return stated.cause
        status = stated.status
    refused = stated is not None if status is None else 400 <= status < 500
    if refused and any(phrase in lowered for phrase in _NO_CREDIT):
        return Cause.QUOTA
    if status is not None and status >= 300:
        return _STATUSES.get(status, Cause.SERVER if status >= 500 else Cause.BAD_REQUEST)
    for link in chain if stated is None else (stated,):
        for code in _codes(link):
            if code.lower() in _CODES:
                return _CODES[code.lower()]
    if stated is not None:
        return next((cause for phrases, cause in _PHRASES if any(each in lowered for each in phrases)), Cause.SERVER)
    for table in (_PRECISE, _VAGUE):
        for link in chain:
            found = _by_class(link, table)
            if found is not None:
                return found
    return Cause.ADAPTER


def _stated(chain: list[BaseException]) -> ReplyError | None:
    return next((link for link in chain if isinstance(link, ReplyError)), None)


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__


def _by_class(error: BaseException, table: Mapping[str, Cause]) -> Cause | None:
    for kind in type(error).__mro__:
        if kind.__module__.partition(".")[0] in _CLIENTS and kind.__name__ in table:
            return table[kind.__name__]
    if table is _PRECISE:
        return next((cause for kind, cause in _BUILT_IN if isinstance(error, kind)), None)
    return None


def _status(error: BaseException) -> int | None:
    response: object = getattr(error, "response", None)
    candidates: tuple[object, ...] = (
        getattr(error, "status_code", None),
        getattr(response, "status_code", None),
        _response_metadata(response).get("HTTPStatusCode"),
        getattr(error, "code", None),
    )
    return next((value for value in candidates if isinstance(value, int) and 100 <= value <= 599), None)


def _response_metadata(response: object) -> Mapping[str, Any]:
    """Return the metadata of a Bedrock response, which is a mapping; empty for other providers."""
    return response.get("ResponseMetadata", {}) if is_object(response) else {}


def _codes(error: BaseException) -> Iterator[str]:
    if isinstance(error, ReplyError):
        yield from error.codes
        return
    code: Any = getattr(error, "code", None)
    if callable(code):  # gRPC
        code = getattr(code(), "name", None)
    for value in (code, getattr(error, "type", None)):
        if isinstance(value, str):
            yield value


def _retry_after(chain: list[BaseException]) -> float | None:
    """Return the requested wait in seconds, from headers in milliseconds, seconds or as a date."""
    for link in chain:
        headers = _headers(link)
        for field, scale in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
            value = headers.get(field)
            if value is None:
                continue
            try:
                seconds = float(value) * scale
            except ValueError:
                pass
            else:
                if math.isfinite(seconds):
                    return max(seconds, 0.0)
                continue
            try:
                date = parsedate_to_datetime(value)
            except (ValueError, TypeError, OverflowError):
                continue
            aware = date if date.tzinfo is not None else date.replace(tzinfo=UTC)
            return max((aware - datetime.now(UTC)).total_seconds(), 0.0)
    return None


def _headers(error: BaseException) -> Mapping[str, str]:
    response: object = getattr(error, "response", None)
    if is_object(response):
        return _response_metadata(response).get("HTTPHeaders", {})
    headers: object = getattr(response, "headers", None)
    return headers if is_object(headers) else {}


def _text(chain: list[BaseException]) -> str:
    """Return the message of the innermost exception with a status or any message; outer ones add the whole request."""
    informative = [link for link in chain if _status(link) is not None] or chain
    for link in reversed(informative):
        if str(link).strip():
            return f"{type(link).__name__}: {' '.join(str(link).split())}"
    return type(chain[0]).__name__


def _shorten(text: str) -> str:
    return text if len(text) <= _LONGEST_MESSAGE else text[: _LONGEST_MESSAGE - 3] + "..."
