"""Hand-written JSON files, with all mistakes reported by line, field and remedy."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Annotated, Any, TypeAlias, TypeVar, cast

import orjson
from pydantic import AfterValidator, TypeAdapter, ValidationError

from finskillbench.errors import CatalogError
from finskillbench.sources.files import NoTextError, text_of

T = TypeVar("T")
Place: TypeAlias = tuple[str | int, ...]
"""Path of a value in a document: keys, and indices in lists."""


def within(low: float, high: float, remedy: str) -> AfterValidator:
    """Validate a number from `low` to `high`; `remedy` states the unit."""

    def check(value: float | None) -> float | None:
        if value is not None and not low <= value <= high:
            raise ValueError(f"not from {low:g} to {high:g}; {remedy}")
        return value

    return AfterValidator(check)


def _spelt(pattern: str, remedy: str) -> AfterValidator:
    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(f"not a valid name; {remedy}")
        return text

    return AfterValidator(check)


Identity = Annotated[
    str, _spelt(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}", "use up to 40 characters of A-Z, a-z, 0-9, _ and -")
]
"""Identifier that becomes part of task names."""
Title = Annotated[str, _spelt(r"[^\x00-\x1f\x7f]{1,200}", "use up to 200 characters on one line")]
"""Display name."""

LARGEST = 2**22
"""Maximum size of one file in bytes, a hundred times that of large hand-written ones."""
MOST_MISTAKES = 50
"""Maximum number of reported mistakes; a file with more has another format."""
_TOKEN = re.compile(r'\s*(?:(?P<mark>[{}\[\],:])|(?P<text>"(?:[^"\\]|\\.)*")|[^\s{}\[\],:"]+)')
_KINDS = {
    "float_type": "a number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "string_type": "text in quotes",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "an object",
}


class Mistakes:
    """Mistakes of one file, with their lines."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.found: list[tuple[int, str]] = []

    def add(self, line: int | None, problem: str, remedy: str) -> None:
        mistake = line or 0, f"{located(self.file, line)}: {problem}; {remedy}"
        if mistake not in self.found:
            self.found.append(mistake)

    def alone(self, line: int | None, problem: str, remedy: str) -> CatalogError:
        """Return an error about a mistake after which the file cannot be read further."""
        self.add(line, problem, remedy)
        return CatalogError([self.found[-1][1]])

    def raise_if_any(self) -> None:
        """Raise CatalogError with the first `MOST_MISTAKES`, sorted by line."""
        if self.found:
            messages = [message for _, message in sorted(self.found, key=lambda one: one[0])]
            hidden = len(messages) - MOST_MISTAKES
            more = [f"{self.file}: {hidden} more mistakes; correct these first"] if hidden > 0 else []
            raise CatalogError([*messages[:MOST_MISTAKES], *more])


def located(file: str, line: int | None) -> str:
    """Format a file and an optional line for messages."""
    return file if line is None else f"{file}, line {line}"


def decoded(data: bytes, mistakes: Mistakes) -> str:
    """Decode a user's file; CatalogError if it is empty, too large or not UTF-8."""
    if len(data) > LARGEST:
        raise mistakes.alone(None, f"{len(data):,} bytes, more than {LARGEST:,}", "leave out what is not needed")
    if not data.strip():
        raise mistakes.alone(1, "the file is empty", "fill it, or remove it to keep what is built in")
    try:
        return text_of(data)
    except NoTextError as error:
        raise mistakes.alone(error.line, error.problem, error.remedy) from None


class Document:
    """A JSON object in a file, with the lines of its values and its mistakes; CatalogError if it is not one."""

    def __init__(self, file: str, data: bytes) -> None:
        self.mistakes = Mistakes(file)
        text = decoded(data, self.mistakes)
        try:
            self.value: Any = orjson.loads(text)
        except orjson.JSONDecodeError as error:
            raise self.mistakes.alone(error.lineno, f"not valid JSON ({error.msg})", _JSON) from None
        if not isinstance(self.value, dict):
            raise self.mistakes.alone(1, "not a JSON object", _JSON)
        self._lines, twice = value_lines(text)
        for place in twice:
            self.add(place, "is given twice", "keep one of them")

    def add(self, place: Place, problem: str, remedy: str) -> None:
        """Record a mistake at a place, or at the line of its parent if it is absent."""
        self.mistakes.add(self.line(place), f"{_named(place)}: {problem}" if place else problem, remedy)

    def items(self, *place: str | int) -> Iterator[tuple[Place, dict[str, Any]]]:
        """Yield the objects of a list with their places; nothing if there is no such list."""
        found = self._at(place)
        for at, item in enumerate(cast("list[Any]", found) if isinstance(found, list) else ()):
            if isinstance(item, dict):
                yield (*place, at), cast("dict[str, Any]", item)

    def _at(self, place: Place) -> Any:
        found: Any = self.value
        for key in place:
            try:
                found = found[key]
            except (LookupError, TypeError):
                return None
        return found

    def check_fields(self, row: Mapping[str, Any], known: Collection[str], place: Place) -> None:
        """Record every field of an object that is not among `known`."""
        for name in sorted(row.keys() - set(known)):
            self.add((*place, name), "is an unknown field", _suggest_field(name, known, row))

    def line(self, place: Place) -> int | None:
        """Return the line of a place, or of its closest existing parent."""
        while place and place not in self._lines:
            place = place[:-1]
        return self._lines.get(place)

    def where(self, place: Place) -> str:
        """Format file, line and place for a later message."""
        return f"{located(self.mistakes.file, self.line(place))}: {_named(place)}"

    def typed(self, adapter: TypeAdapter[T], value: object, place: Place = ()) -> T | None:
        """Validate a value against its type; record every mistake and return None if it does not fit."""
        try:
            return adapter.validate_python(value, strict=True)
        except ValidationError as error:
            for one in error.errors(include_url=False):
                kind, found = one["type"], one.get("input")
                if kind == "missing":
                    message = "is missing", "add it"
                elif kind == "extra_forbidden":
                    siblings = self._at((*place, *one["loc"][:-1]))
                    message = (
                        "is an unknown field",
                        _suggest_field(one["loc"][-1], _fields(adapter.json_schema()), siblings),
                    )
                elif kind in _KINDS:
                    message = f"is {short_json(found)}, not {_KINDS[kind]}", "correct it"
                elif kind == "literal_error":
                    message = f"is {short_json(found)}", f"choose {one.get('ctx', {})['expected']}"
                elif kind == "too_short":
                    message = "is empty", "add at least one"
                elif kind == "value_error":
                    problem, _, remedy = str(one.get("ctx", {})["error"]).partition("; ")
                    message = f"is {short_json(found)}, {problem}", remedy
                else:
                    message = f"is {short_json(found)}: {one['msg'][0].lower()}{one['msg'][1:]}", "correct it"
                self.add((*place, *one["loc"]), *message)
        return None


_JSON = "JSON has double quotes, no comma after a last entry and no comments; data catalog OUT writes an example"


def _suggest_field(unknown: object, known: Collection[str], siblings: Collection[str]) -> str:
    near = difflib.get_close_matches(str(unknown), sorted(set(known) - set(siblings)), 1)
    return f"write {near[0]}" if near else "remove it, or correct its name"


def _fields(schema: object) -> set[str]:
    if isinstance(schema, list):
        return set[str]().union(*map(_fields, cast("list[object]", schema)))
    if not isinstance(schema, dict):
        return set()
    table = cast("dict[str, object]", schema)
    properties = table.get("properties")
    return set(cast("dict[str, object]", properties) if isinstance(properties, dict) else ()).union(
        *map(_fields, table.values())
    )


def _named(place: Place) -> str:
    """Format a place as `mandates[0].constraints[2].value`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).removeprefix(".")


def short_json(value: object) -> str:
    """Return a value as JSON of at most 43 characters."""
    text = orjson.dumps(value, default=str).decode()
    return text if len(text) <= 40 else f"{text[:40]}..."


def value_lines(text: str) -> tuple[dict[Place, int], list[Place]]:
    """Return the line (1-based) of every value of a JSON text by place, and the duplicate keys."""
    lines: dict[Place, int] = {}
    twice: list[Place] = []
    parts: list[str | int] = []
    """Place of the next value: a key or index for each open object or list."""
    inside: list[str] = []
    line, seen, key_next = 1, 0, False
    for token in _TOKEN.finditer(text):
        start = token.end() - len(token[0].lstrip())
        line += text.count("\n", seen, start)
        seen = start
        mark = token["mark"]
        if key_next and token["text"]:
            parts[-1], key_next = orjson.loads(token["text"]), False
            if tuple(parts) in lines:
                twice.append(tuple(parts))
            lines[tuple(parts)] = line
        elif mark in ("}", "]"):
            inside.pop()
            parts.pop()
            key_next = False
        elif mark == ",":
            key_next = inside[-1] == "{"
            if isinstance(number := parts[-1], int):
                parts[-1] = number + 1
        elif mark != ":":
            lines.setdefault(tuple(parts), line)
            if mark is not None:
                inside.append(mark)
                parts.append("" if mark == "{" else 0)
                key_next = mark == "{"
    return lines, twice
