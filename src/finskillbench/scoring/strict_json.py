"""Strict parsing of submissions: RFC 8259 with limits on size, depth and numbers.

Python's parser accepts `NaN`, keeps the last of two equal keys, turns `1e999` into infinity and recurses as deep as the
text. Each of these has allowed a score without an answer, so all are refused. A linear scan checks size and depth
before parsing.

Rules: a submission is one JSON object, alone or within white space, one Markdown fence or prose. Any other text scores
0 under every profile.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn, cast

import numpy as np

from finskillbench.arrays import Integers
from finskillbench.errors import InputError

MAX_BYTES = 1 << 20
"""Maximum submission size in bytes of UTF-8, before stripping (1 MiB)."""

MAX_DEPTH = 64
"""Maximum nesting of objects and arrays; the top-level object is at depth 1."""

_MAX_INTEGER_CHARACTERS = 310
# A sign and 309 digits: JSON forbids leading zeros, so longer numbers exceed the largest double (1.8e308).

_FENCE = re.compile(r"```[^\n`{\[]*(.*?)```", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
# One string, closed or not. The possessive match cannot fail once begun, so the scan is linear on text full of quotes
# and
# backslashes.
_LARGE_EXPONENT = re.compile(r"[eE]\+?\d{3}")
_MANY_DIGITS = 200
# Fewer digits than this before an exponent of at most 99 are a finite number.
_STEPS = np.zeros(256, np.int8)
_STEPS[list(b"[{")], _STEPS[list(b"]}")] = 1, -1
# Change in depth per character outside of strings.


class InvalidSubmission(InputError):  # noqa: N818 - named after the status it leads to
    """The text is no valid submission; `reason` is one line."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"invalid submission: {reason}")
        self.reason = reason


def parse_submission(text: str) -> dict[str, Any]:
    """Parse one submission into its top-level object.

    White space and one surrounding Markdown fence are stripped. If the rest is not JSON, the text from the first `{` to
    the last `}` is tried, so prose around an object is harmless. A well-formed value that is no object is refused at
    once.

    Parameters
    ----------
    text : the submission verbatim.

    Returns
    -------
    A dict of JSON values: integers exact, all other numbers finite doubles, every integer within a double's range.

    Raises
    ------
    InvalidSubmission : over 1 MiB, not encodable as UTF-8, not JSON, `NaN` or infinities, a number beyond a double, a
        duplicate key, nesting deeper than 64, or a top level that is not an object.
    """
    _check_size(text)
    body = _without_fence(text.strip())
    try:
        value = _load(body)
    except InvalidSubmission as failure:
        start, end = body.find("{"), body.rfind("}")
        if start < 0 or end < start or (start, end) == (0, len(body) - 1):
            raise
        try:
            value = _load(body[start : end + 1])
        except InvalidSubmission as second:
            raise second from failure
    if not isinstance(value, dict):
        raise InvalidSubmission(f"the top level is {_kind(value)}, not an object")
    return cast("dict[str, Any]", value)


def _check_size(text: str) -> None:
    if len(text) > MAX_BYTES:
        raise InvalidSubmission(f"{len(text)} characters, more than {MAX_BYTES} bytes")
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise InvalidSubmission(f"a lone surrogate at character {error.start} is not UTF-8") from None
    if size > MAX_BYTES:
        raise InvalidSubmission(f"{size} bytes, more than {MAX_BYTES}")


def _without_fence(text: str) -> str:
    if not (text.startswith("```") and text.endswith("```")):
        return text
    match = _FENCE.fullmatch(text)
    return match.group(1).strip() if match else text


def _load(text: str) -> Any:
    outside = _STRING.sub("", text)
    characters = np.frombuffer(outside.encode(), np.uint8)
    _check_depth(characters)
    # A callback per number is slower than the parser itself.
    careful = _may_overflow(outside, characters)
    try:
        return json.loads(
            text,
            object_pairs_hook=_unique,
            parse_constant=_refuse_constant,
            parse_float=_finite_float if careful else None,
            parse_int=_bounded_int if careful else None,
        )
    except json.JSONDecodeError as error:
        raise InvalidSubmission(f"not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from None


def _check_depth(characters: Integers) -> None:
    """Refuse text that nests too deeply; `characters` are its bytes outside of strings."""
    if np.cumsum(_STEPS[characters], dtype=np.int32).max(initial=0) > MAX_DEPTH:
        raise InvalidSubmission(f"nesting deeper than {MAX_DEPTH}")


def _may_overflow(outside: str, characters: Integers) -> bool:
    """Test for numbers that may exceed a double: many digits, or a large exponent."""
    non_digits = np.flatnonzero((characters < ord("0")) | (characters > ord("9")))
    longest = int(np.diff(non_digits, prepend=-1, append=len(characters)).max()) - 1
    return longest >= _MANY_DIGITS or _LARGE_EXPONENT.search(outside) is not None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise InvalidSubmission(f"duplicate key {ascii(key)[:80]}")
            seen.add(key)
    return result


def _refuse_constant(literal: str) -> NoReturn:
    raise InvalidSubmission(f"{literal} is not a JSON number")


def _finite_float(literal: str) -> float:
    value = float(literal)
    if math.isinf(value):
        raise InvalidSubmission(f"the number {literal[:40]} overflows a double")
    return value


def _bounded_int(literal: str) -> int:
    if len(literal) <= _MAX_INTEGER_CHARACTERS:
        value = int(literal)
        try:
            float(value)
        except OverflowError:
            pass
        else:
            return value
    raise InvalidSubmission(f"the integer {literal[:40]}... overflows a double")


def _kind(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, (int, float)):
        return "a number"
    return "a string" if isinstance(value, str) else "an array"
