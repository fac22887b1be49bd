"""JSON that a user wrote by hand: every mistake is found, and told with file, line, field and remedy."""

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
"""Where a value stands in a document: keys, and places in lists."""


def within(low: float, high: float, remedy: str) -> AfterValidator:
    """A number from `low` to `high`; `remedy` says in which unit it is to be written."""

    def check(value: float | None) -> float | None:
        if value is not None and not low <= value <= high:
            raise ValueError(f"not from {low:g} to {high:g}; {remedy}")
        return value

    return AfterValidator(check)


def _spelt(pattern: str, remedy: str) -> AfterValidator:
    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(f"no name; {remedy}")
        return text

    return AfterValidator(check)


Identity = Annotated[str, _spelt(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}", "use up to 40 letters, digits, _ and -")]
"""An id, which becomes part of names of tasks."""
Title = Annotated[str, _spelt(r"[^\x00-\x1f\x7f]{1,200}", "use up to 200 characters on one line")]
"""A name for people."""

LARGEST = 2**22
"""Bytes of one file, at most: a hundred times what anybody writes by hand."""
MOST_MISTAKES = 50
"""Mistakes of one file that are told; a file of more is of another format."""
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
    """What is wrong with one file."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.found: list[tuple[int, str]] = []

    def add(self, line: int | None, problem: str, remedy: str) -> None:
        """Note one mistake."""
        told = line or 0, f"{located(self.file, line)}: {problem}; {remedy}"
        if told not in self.found:
            self.found.append(told)

    def alone(self, line: int | None, problem: str, remedy: str) -> CatalogError:
        """The error to raise about a mistake that leaves nothing to look for others in."""
        self.add(line, problem, remedy)
        return CatalogError([self.found[-1][1]])

    def raise_if_any(self) -> None:
        """Raise CatalogError with the first `MOST_MISTAKES`, in the order of their lines."""
        if self.found:
            told = [message for _, message in sorted(self.found, key=lambda one: one[0])]
            hidden = len(told) - MOST_MISTAKES
            more = [f"{self.file}: {hidden} more mistakes; correct these first"] if hidden > 0 else []
            raise CatalogError([*told[:MOST_MISTAKES], *more])


def located(file: str, line: int | None) -> str:
    """A file, and the line where there is one, as messages name them."""
    return file if line is None else f"{file}, line {line}"


def decoded(data: bytes, mistakes: Mistakes) -> str:
    """The text of a file that a user wrote, as of `text_of`.

    Raises
    ------
    CatalogError : the file is empty, too large or no text in UTF-8.
    """
    if len(data) > LARGEST:
        raise mistakes.alone(None, f"{len(data):,} bytes, more than {LARGEST:,}", "leave out what is not needed")
    if not data.strip():
        raise mistakes.alone(1, "the file is empty", "fill it, or remove it to keep what is built in")
    try:
        return text_of(data)
    except NoTextError as error:
        raise mistakes.alone(error.line, error.problem, error.remedy) from None


class Document:
    """A JSON file: its value, and the mistakes found in it, which name the line of what they are about.

    Raises
    ------
    CatalogError : it is no JSON object.
    """

    def __init__(self, file: str, data: bytes) -> None:
        self.mistakes = Mistakes(file)
        text = decoded(data, self.mistakes)
        try:
            self.value: Any = orjson.loads(text)
        except orjson.JSONDecodeError as error:
            raise self.mistakes.alone(error.lineno, f"not valid JSON ({error.msg})", _JSON) from None
        if not isinstance(self.value, dict):
            raise self.mistakes.alone(1, "not a JSON object", _JSON)
        self._lines, twice = lines_of(text)
        for place in twice:
            self.add(place, "is given twice", "keep one of them")

    def add(self, place: Place, problem: str, remedy: str) -> None:
        """Note a mistake at a place; one that is not there is told at the line of what it should be part of."""
        self.mistakes.add(self.line(place), f"{_named(place)}: {problem}" if place else problem, remedy)

    def items(self, *place: str | int) -> Iterator[tuple[Place, dict[str, Any]]]:
        """The objects of a list, each with its place; nothing where there is no such list, which its type says."""
        found = self._at(place)
        for at, item in enumerate(cast("list[Any]", found) if isinstance(found, list) else ()):
            if isinstance(item, dict):
                yield (*place, at), cast("dict[str, Any]", item)

    def _at(self, place: Place) -> Any:
        """The value at a place; None where there is none."""
        found: Any = self.value
        for key in place:
            try:
                found = found[key]
            except (LookupError, TypeError):
                return None
        return found

    def check_fields(self, row: Mapping[str, Any], known: Collection[str], place: Place) -> None:
        """Note every field of an object that its kind does not have."""
        for name in sorted(row.keys() - set(known)):
            self.add((*place, name), "is an unknown field", _instead(name, known, row))

    def line(self, place: Place) -> int | None:
        """The line of a place, or of the innermost one around it that is there."""
        while place and place not in self._lines:
            place = place[:-1]
        return self._lines.get(place)

    def where(self, place: Place) -> str:
        """File, line and place in one text, for what turns out to be wrong later."""
        return f"{located(self.mistakes.file, self.line(place))}: {_named(place)}"

    def typed(self, adapter: TypeAdapter[T], value: object, place: Place = ()) -> T | None:
        """A value as its type has it; None, and every mistake noted, where it does not fit."""
        try:
            return adapter.validate_python(value, strict=True)
        except ValidationError as error:
            for one in error.errors(include_url=False):
                kind, given = one["type"], one.get("input")
                if kind == "missing":
                    told = "is missing", "add it"
                elif kind == "extra_forbidden":
                    beside = self._at((*place, *one["loc"][:-1]))
                    told = "is an unknown field", _instead(one["loc"][-1], _fields(adapter.json_schema()), beside)
                elif kind in _KINDS:
                    told = f"is {shown(given)}, not {_KINDS[kind]}", "correct it"
                elif kind == "literal_error":
                    told = f"is {shown(given)}", f"choose {one.get('ctx', {})['expected']}"
                elif kind == "too_short":
                    told = "is empty", "add at least one"
                elif kind == "value_error":
                    problem, _, remedy = str(one.get("ctx", {})["error"]).partition("; ")
                    told = f"is {shown(given)}, {problem}", remedy
                else:
                    told = f"is {shown(given)}: {one['msg'][0].lower()}{one['msg'][1:]}", "correct it"
                self.add((*place, *one["loc"]), *told)
        return None


_JSON = "JSON has double quotes, no comma after a last entry and no comments; data catalog OUT writes an example"


def _instead(given: object, known: Collection[str], beside: Collection[str]) -> str:
    """What to do about a field that is unknown, among the fields `beside` it."""
    near = difflib.get_close_matches(str(given), sorted(set(known) - set(beside)), 1)
    return f"write {near[0]}" if near else "remove it, or correct its name"


def _fields(schema: object) -> set[str]:
    """Every field of a JSON schema, at any depth."""
    if isinstance(schema, list):
        return set[str]().union(*map(_fields, cast("list[object]", schema)))
    if not isinstance(schema, dict):
        return set()
    table = cast("dict[str, object]", schema)
    own = table.get("properties")
    return set(cast("dict[str, object]", own) if isinstance(own, dict) else ()).union(*map(_fields, table.values()))


def _named(place: Place) -> str:
    """A place as people write it: `mandates[0].constraints[2].value`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).removeprefix(".")


def shown(value: object) -> str:
    """A value as the file has it, short enough for one line."""
    text = orjson.dumps(value, default=str).decode()
    return text if len(text) <= 40 else f"{text[:40]}..."


def lines_of(text: str) -> tuple[dict[Place, int], list[Place]]:
    """The line (1-based) of every value of a valid JSON text, by its place, and the keys that are given twice."""
    lines: dict[Place, int] = {}
    twice: list[Place] = []
    parts: list[str | int] = []
    """The place of the value that comes next, a key or number for each object or list around it."""
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
