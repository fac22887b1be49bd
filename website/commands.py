"""A page for every command, from the command line itself: usage, what it does, arguments, options, examples."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from finskillbench.cli import app

PROGRAM = "finskillbench"
_BOUND = re.compile(r"^x<=\d{19}$|<=\d{19}")
"""The largest integer that the command line reads bounds nothing that anybody would type."""


def pages() -> dict[str, str]:
    """Markdown of each page by its place in the site: `commands/index.md`, `commands/data-build.md`, ..."""
    commands = dict(walk())
    index = ["# Commands", "", "Every command and option, as `--help` prints them.", ""]
    index += ["| command | what it does |", "|---|---|"]
    index += [
        f"| [`{PROGRAM} {' '.join(path)}`]({_file(path)}) | {_cell(_first(command.help))} |"
        for path, command in commands.items()
    ]
    made = {f"commands/{_file(path)}": _page(path, command) for path, command in commands.items()}
    return {"commands/index.md": "\n".join([*index, "", *_options(get_command(app), (), "Options")]) + "\n", **made}


def walk(group: Any = None, path: tuple[str, ...] = (), parent: Any = None) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command with the words that call it, in the order of the help: those of a group come after its own."""
    group = group or get_command(app)
    context = group.make_context(path[-1] if path else PROGRAM, [], parent=parent, resilient_parsing=True)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if hasattr(command, "commands"):
            yield from walk(command, (*path, name), context)
        elif not command.hidden:
            yield (*path, name), command


def _file(path: tuple[str, ...]) -> str:
    return "-".join(path) + ".md"


def _page(path: tuple[str, ...], command: Any) -> str:
    name = " ".join((PROGRAM, *path))
    usage = " ".join([name, *_context(command, path).command.collect_usage_pieces(_context(command, path))])
    lines = [f"# {name}", "", *_paragraphs(command.help), "", "```bash", usage, "```", ""]
    lines += _options(command, path, "Arguments", arguments=True)
    lines += _options(command, path, "Options")
    if command.epilog:
        head, _, rest = command.epilog.replace("\b", "").strip().partition(":")
        lines += [f"## {head}", "", "```bash", textwrap.dedent(rest.strip("\n")).strip(), "```", ""]
    return "\n".join(lines) + "\n"


def _context(command: Any, path: tuple[str, ...]) -> Any:
    return command.make_context(" ".join((PROGRAM, *path)), [], resilient_parsing=True)


def _options(command: Any, path: tuple[str, ...], title: str, *, arguments: bool = False) -> list[str]:
    """A list of a command's arguments, or of its options, as its help page words them."""
    context = _context(command, path)
    items: list[str] = []
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is None or (parameter.param_type_name == "argument") != arguments:
            continue
        said, bounds = _split(record[1].strip())
        items += [_code(record[0]), f":   {_cell(said)}{f' *{_cell(bounds)}*' if bounds else ''}", ""]
    return [f"## {title}", "", *items] if items else []


def _split(said: str) -> tuple[str, str]:
    """What an option is, and its default and bounds, which the help page puts into brackets at the end."""
    if not said.endswith("]"):
        return said, ""
    text, _, bounds = said.removesuffix("]").rpartition("[")
    return text.strip(), _BOUND.sub("", bounds).strip("; ")


def _code(text: str) -> str:
    return f"`{' '.join(text.split())}`"


def _cell(text: str | None) -> str:
    """Text for a cell of a table: what Markdown would read as markup is shown as it stands, code stays code."""
    parts = re.split(r"(`[^`]*`)", " ".join((text or "").split()))
    return "".join(
        part.replace("|", "\\|") if part.startswith("`") else re.sub(r"([|<>*_\\{}])", r"\\\1", part) for part in parts
    )


def _paragraphs(text: str | None) -> list[str]:
    return [_cell(each) + "\n" for each in (text or "").replace("\b", "").split("\n\n")]


def _first(text: str | None) -> str:
    return (text or "").split("\n\n")[0]
