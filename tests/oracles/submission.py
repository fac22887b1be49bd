"""Reading of a submission, one JSON object within limits, by a hand-written RFC 8259 reader."""

from __future__ import annotations

import math
import re
from typing import Any

MAX_DEPTH = 64
MAX_BYTES = 1 << 20
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_FENCE = re.compile(r"\A```[^\n`]*\n(.*?)\n?[ \t]*```\Z", re.DOTALL)
_PLAIN = re.compile(r'[^"\\\x00-\x1f]*')
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_WORDS = {"true": True, "false": False, "null": None}


class Malformed(ValueError):  # noqa: N818 - a state of the text, not an error of the oracle
    """The text is no RFC 8259 document that the benchmark accepts."""


class _Reader:
    """One pass over the text with a cursor; each method consumes what its name says."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def document(self) -> Any:
        """The one value of the whole text."""
        found = self.value(0)
        if self.peek():
            raise Malformed(f"text after the document at {self.at}")
        return found

    def peek(self) -> str:
        while self.at < len(self.text) and self.text[self.at] in " \t\n\r":
            self.at += 1
        return self.text[self.at : self.at + 1]

    def expect(self, mark: str) -> None:
        if self.peek() != mark:
            raise Malformed(f"{mark!r} expected at {self.at}")
        self.at += 1

    def value(self, depth: int) -> Any:
        head = self.peek()
        if head in ("{", "["):
            if depth == MAX_DEPTH:
                raise Malformed("nested deeper than 64")
            return self.container(head, depth + 1)
        if head == '"':
            return self.string()
        for word, meaning in _WORDS.items():
            if self.text.startswith(word, self.at):
                self.at += len(word)
                return meaning
        return self.number()

    def container(self, head: str, depth: int) -> Any:
        self.at += 1
        tail = "}" if head == "{" else "]"
        pairs: dict[str, Any] = {}
        items: list[Any] = []
        if self.peek() == tail:
            self.at += 1
            return pairs if head == "{" else items
        while True:
            if head == "{":
                if self.peek() != '"':
                    raise Malformed(f"a key expected at {self.at}")
                key = self.string()
                self.expect(":")
                if key in pairs:
                    raise Malformed(f"key {key!r} twice")
                pairs[key] = self.value(depth)
            else:
                items.append(self.value(depth))
            if self.peek() == tail:
                self.at += 1
                return pairs if head == "{" else items
            self.expect(",")

    def string(self) -> str:
        self.at += 1
        parts: list[str] = []
        while True:
            run = _PLAIN.match(self.text, self.at)
            assert run is not None
            parts.append(run.group())
            self.at = run.end()
            mark = self.text[self.at : self.at + 1]
            if mark == '"':
                self.at += 1
                break
            if mark != "\\":
                raise Malformed(f"a string broken off at {self.at}")
            letter = self.text[self.at + 1 : self.at + 2]
            if letter == "u":
                digits = self.text[self.at + 2 : self.at + 6]
                if not re.fullmatch("[0-9a-fA-F]{4}", digits):
                    raise Malformed(f"a bad escape at {self.at}")
                parts.append(chr(int(digits, 16)))
                self.at += 6
            elif letter in _ESCAPES and letter:
                parts.append(_ESCAPES[letter])
                self.at += 2
            else:
                raise Malformed(f"a bad escape at {self.at}")
        # Two escaped surrogates are one character.
        return "".join(parts).encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")

    def number(self) -> float | int:
        found = _NUMBER.match(self.text, self.at)
        if found is None:
            raise Malformed(f"no JSON value at {self.at}")
        self.at = found.end()
        as_float = float(found.group())
        if math.isinf(as_float):
            raise Malformed("a number that overflows a double")
        return as_float if found.group(1) or found.group(2) else int(found.group())


def parse(text: str) -> dict[str, Any]:
    """The object that a submission's text holds; raises `Malformed`."""
    try:
        size = len(text.encode("utf-8"))
    except UnicodeEncodeError as lone:
        raise Malformed("a surrogate outside an escape: no UTF-8") from lone
    if size > MAX_BYTES:
        raise Malformed("over 1 MiB")
    body = text.strip()
    fenced = _FENCE.match(body)
    if fenced:
        body = fenced.group(1).strip()
    try:
        found = _Reader(body).document()
    except Malformed:
        first, last = body.find("{"), body.rfind("}")
        if first < 0 or last < first:
            raise
        found = _Reader(body[first : last + 1]).document()
    if not isinstance(found, dict):
        raise Malformed("the top level is no object")
    return found


def outcome(text: str | None, ended: str = "submitted") -> tuple[str, bool, dict[str, Any] | None]:
    """(status, valid_json, answer) of a submission; the answer only where the status is `scored`."""
    if ended == "error":
        return "error", True, None
    if ended == "budget_exhausted":
        return "budget_exhausted", True, None
    if text is None:
        return ("max_turns_exhausted" if ended == "max_turns" else "incomplete_submission"), True, None
    try:
        return "scored", True, parse(text)
    except Malformed:
        return "invalid_submission", False, None
