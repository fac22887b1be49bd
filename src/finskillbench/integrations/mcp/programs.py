"""Agent programs with skill folders of their own, and the skills that they used according to their logs.

A skill counts as read once lines of its documents are in results that the agent got, however it opened the file. A
script counts as run if a shell command names it after an interpreter, or imports it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from finskillbench.errors import InputError
from finskillbench.harness.skills.loader import SkillPackage
from finskillbench.scoring.values import as_object, is_array, is_object

ToolUse = tuple[str, str]
"""Shell command, empty for other tools, and the result as text."""

_LINES = 5
"""Lines of a document that count as reading it; all lines of a shorter one."""
_MIN_CHARS = 20
_PREFIX = re.compile(r"^\s*(?:\S+\.md[:-])?(?:\d+\s*[\t→:|-])?\s*")
"""File name and line number, as editors and grep print them before a line."""


@dataclass(frozen=True, slots=True)
class Program:
    """An agent program: the folder of its skills below its working folder, and the reader of its log."""

    name: str
    folder: str
    read: Callable[[bytes], Iterator[ToolUse]]


def _objects(log: bytes) -> Iterator[Mapping[str, Any]]:
    """Yield the JSON objects of a log, one per line; other lines are messages of the program."""
    for line in log.splitlines():
        try:
            yield as_object(orjson.loads(line))
        except orjson.JSONDecodeError:
            continue


def _items(value: object) -> Iterator[Mapping[str, Any]]:
    yield from map(as_object, value if is_array(value) else ())


def _text(value: object) -> str:
    """Return all texts inside a value, in order."""
    if isinstance(value, str):
        return value
    parts = value.values() if is_object(value) else value if is_array(value) else ()
    return "\n".join(filter(None, map(_text, parts)))


def _claude_code(log: bytes) -> Iterator[ToolUse]:
    """Read `--output-format stream-json`; the text of a skill is a user message after the result of its call."""
    commands: dict[str, str] = {}
    for event in _objects(log):
        for block in _items(as_object(event.get("message")).get("content")):
            if event.get("type") == "assistant" and block.get("type") == "tool_use":
                commands[_text(block.get("id"))] = _text(as_object(block.get("input")).get("command"))
            elif event.get("type") == "user":
                yield commands.get(_text(block.get("tool_use_id")), ""), _text(block.get("content") or block)


def _codex(log: bytes) -> Iterator[ToolUse]:
    """Read the events of `codex exec --json`."""
    for event in _objects(log):
        item = as_object(event.get("item"))
        if event.get("type") == "item.completed" and item.get("type") in {"command_execution", "mcp_tool_call"}:
            yield _text(item.get("command")), _text(item.get("aggregated_output"))


def _openhands(log: bytes) -> Iterator[ToolUse]:
    """Read the events of `openhands --headless --json`."""
    commands: dict[str, str] = {}
    for event in _objects(log):
        number = _text(event.get("tool_call_id"))
        if event.get("kind") == "ActionEvent":
            commands[number] = _text(as_object(event.get("action")).get("command"))
        elif event.get("kind") == "ObservationEvent":
            yield commands.get(number, ""), _text(as_object(event.get("observation")).get("content"))


def _mini_swe_agent(log: bytes) -> Iterator[ToolUse]:
    """Read a trajectory, one JSON object; a result is text, or JSON that may leave out the middle of the output."""
    commands: dict[str, str] = {}
    try:
        messages = as_object(orjson.loads(log)).get("messages")
    except orjson.JSONDecodeError:
        return
    for message in _items(messages):
        extra = as_object(message.get("extra"))
        for action in _items(extra.get("actions")):
            commands[_text(action.get("tool_call_id"))] = _text(action.get("command"))
        if "raw_output" in extra:
            content = _text(message.get("content"))
            shown = next(_objects(content.translate({10: " ", 13: " "}).encode()), content)
            yield commands.get(_text(message.get("tool_call_id")), ""), _text(shown)


PROGRAMS: Mapping[str, Program] = {
    each.name: each
    for each in (
        Program("claude-code", ".claude/skills", _claude_code),
        Program("codex", ".agents/skills", _codex),
        Program("openhands", ".agents/skills", _openhands),
        Program("mini-swe-agent", ".agents/skills", _mini_swe_agent),
    )
}
"""Programs by their name in `--harness`."""


def program_named(name: str, others: str) -> Program:
    """Return a program by name; raise `InputError` that lists all of them and `others`."""
    if name not in PROGRAMS:
        raise InputError(f"--harness {name!r} is unknown; choose from: {', '.join((others, *PROGRAMS))}")
    return PROGRAMS[name]


def skills_used(
    uses: Iterable[ToolUse], packages: Mapping[str, SkillPackage], *, scripts: bool
) -> tuple[list[str], list[str]]:
    """Return the names of the packages that were read, and the scripts that were run as "package/scripts/x.py".

    Names are in the order of first reading, scripts in that of their runs. Lines that several packages share are
    ignored.
    """
    owners: dict[str, str | None] = {}
    for name, package in packages.items():
        for document in (package.body, *package.references.values()):
            for line in _lines(document):
                owners[line] = name if owners.setdefault(line, name) == name else None
    left = {name: min(_LINES, list(owners.values()).count(name)) for name in packages}
    seen: defaultdict[str, set[str]] = defaultdict(set)
    loaded: list[str] = []
    runs: list[str] = []
    for command, result in uses:
        if scripts and command:
            runs.extend(_scripts_run(command, packages, loaded))
        for line in _lines(result):
            if name := owners.get(line):
                seen[name].add(line)
                if len(seen[name]) == left[name] and name not in loaded:
                    loaded.append(name)
    return loaded, runs


def _lines(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if len(stripped := _PREFIX.sub("", line).rstrip()) >= _MIN_CHARS:
            yield stripped


def _scripts_run(command: str, packages: Mapping[str, SkillPackage], loaded: list[str]) -> Iterator[str]:
    """Yield the scripts that a command runs; a name in several packages is that of the one named or read last."""
    found: dict[str, str] = {}
    named = [name for name in packages if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", command)]
    for name in (*loaded, *named):  # the last one decides
        for script in packages[name].scripts:
            stem = re.escape(script.rpartition("/")[2].removesuffix(".py"))
            run = rf"\b(?:python[\d.]*|uv run)\b[^\n;|&]*\b{stem}\b|\b(?:from|import)\s+(?:\w+\.)*{stem}\b"
            if re.search(run, command):
                found[stem] = f"{name}/{script}"
    yield from found.values()
