"""Check and repair JSON replies before the provider's package parses them, and cache answers on disk.

A successful HTTP reply may state a failure, which is raised, or have side fields of wrong types, which are repaired.
Text, names and arguments of calls are never changed.

The cache key is everything that determines an answer, including the repetition, so that repetitions remain independent
draws. The cache is a SQLite database that processes of one machine may share. Its answers are without this process's
secrets.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Mapping, MutableMapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from finskillbench.errors import Cause, InputError
from finskillbench.harness.model import Turn
from finskillbench.redaction import logger
from finskillbench.scoring.values import is_array, is_object

_CHAT, _RESPONSES = "/chat/completions", "/responses"
_FAILED = frozenset({"error", "failed", "network_error", "engine_error", "insufficient_system_resource"})
"""Finish reasons that state a provider failure, including those of gateways, z.AI and DeepSeek."""
_MODEL_MISTAKES = frozenset({"malformed_function_call", "unexpected_tool_call"})
"""Finish reasons of Google for a model's mistake, which gateways report as an error."""
_FINISH = {
    **dict.fromkeys(("max_tokens", "max_output_tokens", "max_length"), "length"),
    **dict.fromkeys(("safety", "recitation", "prohibited_content", "blocklist", "sensitive"), "content_filter"),
    **dict.fromkeys(("end_turn", "eos", "eos_token", "stop_sequence", *_MODEL_MISTAKES), "stop"),
    "tool_use": "tool_calls",
}
"""Finish reasons of other protocols."""
_DECLINED = frozenset({"content_filter", "content_policy_violation", "invalid_prompt"})
"""Error codes of filters, equivalent to a refusal by the model."""
_TEXT_FIELDS = ("refusal", "reasoning", "reasoning_content")
_COUNTS = (("prompt_tokens", "completion_tokens"), ("input_tokens", "output_tokens"))
"""Token counts of the two protocols; some servers use the names of the other one."""
_DETAILS = ("prompt_tokens_details", "completion_tokens_details", "input_tokens_details", "output_tokens_details")
_SHOWN = 200
"""Characters of an unreadable reply in its error message."""


class ReplyError(Exception):
    """A successful HTTP reply that states a failure or is invalid.

    `status` and `codes` are those stated in the reply; `cause` is set if its shape determines it.
    """

    def __init__(
        self, message: str, status: int | None = None, codes: Sequence[str] = (), cause: Cause | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.codes, self.cause = status, tuple(codes), cause


def read_reply(path: str, headers: MutableMapping[str, str], body: bytes) -> bytes:
    """Return the body of a successful reply to a request of `path`, with side fields repaired.

    Sets the content type to JSON. Raises `ReplyError` for a stated failure, other than JSON objects, or no answer.
    """
    if not path.endswith((_CHAT, _RESPONSES)):
        return body
    try:
        value: object = json.loads(body)
        if is_array(value) and len(value) == 1:  # Google returns errors in a list
            value = value[0]
        if not is_object(value):
            raise ReplyError(f"an answer that is no JSON object: {_start(body)}", cause=Cause.MALFORMED)
        reply = repaired(dict(value), chat=path.endswith(_CHAT))
        headers["content-type"] = "application/json"
        return body if reply == value else json.dumps(reply).encode()
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise ReplyError(f"an answer that is no JSON ({reason}): {_start(body)}", cause=Cause.MALFORMED) from None


def repaired(reply: dict[str, Any], *, chat: bool) -> dict[str, Any]:
    """Return a parsed reply with its side fields repaired; raises `ReplyError` for a stated failure or no answer."""
    error: object = reply.get("error")
    if is_object(error) and _text(error.get("code")) in _DECLINED:
        reply = {**reply, "choices": [{"message": {}, "finish_reason": "content_filter"}]}
    else:
        _raise_error(reply)
    fixed = {**reply, **{name: _text(reply.get(name)) or "" for name in ("id", "model")}}
    fixed["usage"] = _usage(reply.get("usage"), _COUNTS[0] if chat else _COUNTS[1])
    if not chat:
        if reply.get("status") in ("failed", "cancelled"):
            raise ReplyError(f"an answer of status {reply['status']}")
        return fixed
    choices = reply.get("choices")
    if not choices or not is_array(choices):
        raise ReplyError(f"an answer without choices: {_start(json.dumps(reply).encode())}", cause=Cause.EMPTY)
    first = min(filter(is_object, choices), key=lambda choice: _count(choice.get("index")) or 0, default=None)
    if first is None:
        raise ReplyError("an answer whose choices are no objects", cause=Cause.MALFORMED)
    fixed.pop("prompt_logprobs", None)
    return {**fixed, "choices": [_choice(dict(first))]}


def _raise_error(reply: Mapping[str, Any]) -> None:
    """Raise a failure stated in `error`, or as a body that is only an error."""
    error: object = reply.get("error")
    if error is True or (not error and "choices" not in reply and "output" not in reply):
        error = reply if reply.get("object") == "error" else reply.get("detail") or reply.get("message") or error
    if not is_object(error):
        if error:
            raise ReplyError(str(error))
        return
    code = error.get("code")
    parts = [_text(error.get("message")), _raw(error.get("metadata"))]
    codes = [text for text in (_text(code), _text(error.get("type")), _text(error.get("status"))) if text]
    if message := ": ".join(part for part in parts if part) or ", ".join(codes) or str(code or ""):
        status = next((number for number in map(_count, (code, error.get("status"))) if number), None)
        raise ReplyError(message, status if status and 400 <= status < 600 else None, codes)


def _raw(metadata: object) -> str | None:
    """Return the upstream provider's message, as forwarded by OpenRouter."""
    raw: object = metadata.get("raw") if is_object(metadata) else None
    return json.dumps(raw) if is_object(raw) else _text(raw)


def _choice(choice: dict[str, Any]) -> dict[str, Any]:
    _raise_error({"choices": (), "error": choice.get("error")})
    message: object = choice.get("message")
    native, finish = (
        (_text(choice.get(name)) or "").strip().lower() for name in ("native_finish_reason", "finish_reason")
    )
    if native not in _MODEL_MISTAKES and (failed := _FAILED & {native, finish}):
        text = _content(message.get("content")) if is_object(message) else None
        raise ReplyError(f"an answer that finished with {'/'.join(failed)}{f': {text[:_SHOWN]}' if text else ''}")
    if not is_object(message):
        raise ReplyError("a choice without a message", cause=Cause.MALFORMED)
    fixed = _message(dict(message))
    reason = _FINISH.get(finish, finish)
    if not reason or reason in _FAILED:
        reason = "tool_calls" if fixed.get("tool_calls") else "stop"
    return {**choice, "index": 0, "message": fixed, "finish_reason": reason, "logprobs": None}


def _message(message: dict[str, Any]) -> dict[str, Any]:
    made: object = message.get("tool_calls")
    calls = [made] if is_object(made) else list(made) if is_array(made) else []
    legacy: object = message.pop("function_call", None)
    if not calls and is_object(legacy):
        calls = [{"function": legacy}]
    fixed = _typed(message, **dict.fromkeys(_TEXT_FIELDS, str))
    details: object = fixed.get("reasoning_details")
    if details is not None and not (is_array(details) and all(map(is_object, details))):
        del fixed["reasoning_details"]
    seen: set[str] = set()
    fixed["tool_calls"] = [_call(call, number, seen) for number, call in enumerate(calls)] or None
    return {**fixed, "role": "assistant", "content": _content(message.get("content"))}


def _call(call: object, number: int, seen: set[str]) -> dict[str, Any]:
    """Return a tool call with a unique id and its arguments as text."""
    if not is_object(call):
        raise ReplyError("a tool call that is no object", cause=Cause.MALFORMED)
    if call.get("type") == "custom":
        return dict(call)
    function: object = call.get("function", call)
    name = function.get("name") if is_object(function) else None
    if not is_object(function) or not isinstance(name, str):
        raise ReplyError("a tool call without a name", cause=Cause.MALFORMED)
    arguments: object = function.get("arguments")
    text = "" if arguments is None else arguments if isinstance(arguments, str) else json.dumps(arguments)
    stated = call.get("id")
    known = str(stated) if stated and isinstance(stated, str | int) else f"call_{number}"
    while known in seen:
        known = f"{known}_"
    seen.add(known)
    return {**call, "id": known, "type": "function", "function": {**function, "arguments": text}}


def _content(content: object) -> str | None:
    """Return the text of a message, without other parts such as reasoning."""
    if content is None or isinstance(content, str):
        return content
    parts = [content] if is_object(content) and "type" in content else content
    if not is_array(parts):
        return json.dumps(content)
    texts: list[object] = [part.get("text") if is_object(part) else part for part in parts]
    return "".join(text for text in texts if isinstance(text, str))


def _usage(usage: object, names: tuple[str, str]) -> dict[str, Any] | None:
    """Return usage with integer counts; None if input or output is unknown."""
    if not is_object(usage):
        return None
    stated = [_count(usage.get(ours, usage.get(theirs))) for ours, theirs in zip(*_COUNTS, strict=True)]
    total = _count(usage.get("total_tokens"))
    known = [count for count in stated if count is not None]
    if len(known) == 1 and total is not None:
        known = [total - known[0] if count is None else count for count in stated]
    if len(known) < len(names):
        return None
    details = {name: _details(usage[name]) for name in _DETAILS if name in usage}
    counts = dict(zip(names, known, strict=True))
    return {**usage, **details, **counts, "total_tokens": sum(known) if total is None else total}


def _details(details: object) -> dict[str, Any] | None:
    counts = {name: _count(value) for name, value in details.items()} if is_object(details) else {}
    return {name: value for name, value in counts.items() if value is not None} or None


def _count(value: object) -> int | None:
    """Return an integer count given as an integer, a float or text; else None."""
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 20:
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if type(value) is int else None


def _typed(fields: dict[str, Any], **kinds: type) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in kinds or isinstance(value, kinds[name])}


def _text(value: object) -> str | None:
    return value.strip() or None if isinstance(value, str) else None


def _start(body: bytes) -> str:
    return repr(body[:_SHOWN].decode("utf-8", "replace"))


_LOG = logger(__name__)
_FORMAT = 1
_WAIT_SECONDS = 30.0
"""Longest wait for another process that is writing."""
_TABLE = "CREATE TABLE IF NOT EXISTS answers (request TEXT PRIMARY KEY, model TEXT, kept TEXT, turn BLOB, replay TEXT)"


class CachedAnswer(NamedTuple):
    """An answer, and the adapter's own form of it as JSON text, None if it has only text."""

    turn: Turn
    replay: str | None


class ResponseCache:
    """Answers in one file, created if absent, readable by its owner only; raises `InputError` for other files."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._has_warned = False
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
            # A run may move between threads, but uses one at a time.
            self._database = sqlite3.connect(path, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False)
            self._database.execute("PRAGMA journal_mode = WAL")
            # Answers lost in a power cut are requested again.
            self._database.execute("PRAGMA synchronous = NORMAL")
            found = self._database.execute("PRAGMA user_version").fetchone()[0]
            if found not in (0, _FORMAT):
                raise InputError(f"{path}: a response cache of format {found}, not {_FORMAT}; name another file")
            self._database.execute(_TABLE)
            self._database.execute(f"PRAGMA user_version = {_FORMAT}")
        except OSError as error:
            raise InputError(f"{path}: cannot be written ({error.strerror}); name another file") from None
        except sqlite3.Error as error:
            raise InputError(f"{path}: is not a response cache ({error}); name another file") from None

    def find(self, request: bytes) -> CachedAnswer | None:
        """Return the answer to a request, None if there is no readable one."""
        try:
            row = self._database.execute(
                "SELECT turn, replay FROM answers WHERE request = ?", (_key(request),)
            ).fetchone()
            return None if row is None else CachedAnswer(msgspec.json.decode(row[0], type=Turn), row[1])
        except (sqlite3.Error, msgspec.MsgspecError) as error:
            self._warn_once(error)
            return None

    def store(self, model: str, request: bytes, answer: CachedAnswer) -> None:
        """Store an answer, unless another process did or the disk is full."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        line = (_key(request), model, now, msgspec.json.encode(answer.turn), answer.replay)
        try:
            self._database.execute("INSERT OR IGNORE INTO answers VALUES (?, ?, ?, ?, ?)", line)
        except sqlite3.Error as error:
            self._warn_once(error)

    def close(self) -> None:
        """Close the file; this object cannot be used afterwards."""
        self._database.close()

    def _warn_once(self, error: Exception) -> None:
        if not self._has_warned:
            self._has_warned = True
            _LOG.warning("%s: the response cache failed; answers are requested again (%s)", self.path, error)


def _key(request: bytes) -> str:
    return hashlib.sha256(request).hexdigest()
