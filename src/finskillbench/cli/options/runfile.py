"""Options of `run` and `plan` from a TOML file.

Keys are option names, with `-` or `_`. A repeatable option takes a list, `model-args` a table. Each `[[model]]` adds a
model with a `name` and its own arguments. The command line overrides the file, including its `[[model]]` tables.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import typer

from finskillbench.errors import InputError
from finskillbench.scoring.values import is_array, is_object

MODEL_TABLE_OPTIONS = (
    *("base_url", "seed", "temperature", "max_tokens", "request_timeout", "attempt_timeout", "reasoning_effort"),
    *("model_args", "turns", "token_budget"),
)
"""Options allowed in a `[[model]]` table."""
_NOT_IN_A_FILE = ("file", "help")
_KEY = re.compile(r"""\s*["']?([\w-]+)["']?\s*=""", re.ASCII)
_HEADER = re.compile(r"""\s*\[+\s*["']?([\w-]+)["']?\s*\]+""", re.ASCII)


@dataclass(frozen=True, slots=True)
class RunFile:
    """Contents of a file: options of the run, and a table for each model.

    `lines` maps (table, key) to line numbers. Tables are ("", 0) for the run and ("model", index) for models; key ""
    is the header of a table.
    """

    path: Path
    content: Mapping[str, Any]
    lines: Mapping[tuple[tuple[str, int], str], int]
    models: tuple[Mapping[str, Any], ...] = ()

    def at(self, table: tuple[str, int], key: str) -> str:
        """Return file, line and key for an error message."""
        line = self.lines.get((table, key), self.lines.get((table, "")))
        return f"{self.path}{f', line {line}' if line else ''}: {key}"


def read_run_file(text: str) -> RunFile:
    """Read a file; refuse one that is unreadable or not valid TOML. `apply_run_file` checks its keys."""
    path = Path(text)
    try:
        text_read = path.read_text(encoding="utf-8")
        content = tomllib.loads(text_read)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not valid TOML ({error})") from None
    return RunFile(path, content, _lines(text_read))


def apply_run_file(context: typer.Context, file: RunFile | None) -> RunFile | None:
    """Use a file's options as command-line defaults; refuse unknown keys and invalid values."""
    if file is None:
        return None
    parameters = {each.name: each for each in context.command.params if each.name and each.name not in _NOT_IN_A_FILE}
    content = dict(file.content)
    models = content.pop("model", [])
    values = {} if not content else _checked_values(context, file, ("", 0), content, parameters)
    if not (is_array(models) and all(map(is_object, models))):
        values |= _checked_values(context, file, ("", 0), {"model": models}, parameters)
        context.default_map = {**(context.default_map or {}), **values}
        return file
    model_parameters = {name: parameters[name] for name in MODEL_TABLE_OPTIONS}
    models_read: list[Mapping[str, Any]] = []
    for number, model in enumerate(models):
        table = "model", number
        if not isinstance(model.get("name"), str):
            raise InputError(f"{file.at(table, 'name')} is missing or not text; name a model, as for --model")
        rest = {key: value for key, value in model.items() if key != "name"}
        models_read.append(
            {"name": model["name"], **_checked_values(context, file, table, rest, model_parameters, ("name",))}
        )
    if models_read:
        values["model"] = [model["name"] for model in models_read]
    context.default_map = {**(context.default_map or {}), **values}
    return RunFile(file.path, file.content, file.lines, tuple(models_read))


def _checked_values(
    context: typer.Context,
    file: RunFile,
    table: tuple[str, int],
    content: Mapping[str, Any],
    parameters: Mapping[str, Any],
    extra_keys: tuple[str, ...] = (),
) -> dict[str, Any]:
    """Return the checked values of a table by parameter name."""
    checked: dict[str, Any] = {}
    for key, value in content.items():
        where, name = file.at(table, key), key.replace("-", "_")
        if name not in parameters:
            raise InputError(f"{where} is unknown; {_suggestion(key, [*parameters, *extra_keys])}")
        if name in checked:
            raise InputError(f"{where} is given twice, with - and with _")
        checked[name] = _checked_value(context, where, parameters[name], value)
    return checked


def _suggestion(key: str, known: Iterable[str]) -> str:
    names = sorted(name.replace("_", "-") for name in known)
    like = get_close_matches(key.replace("_", "-"), names, n=1, cutoff=0.5)
    return f"did you mean {like[0]}?" if like else f"choose from: {', '.join(names)}"


def _checked_value(context: typer.Context, where: str, parameter: Any, value: Any) -> Any:
    """Return a value after checking its type and bounds."""
    if parameter.name == "model_args":
        from finskillbench.harness.providers.settings import parse_model_args

        if not is_object(value):
            raise InputError(f"{where} must be a table, such as {{ top_p = 0.9 }}")
        text = json.dumps(value, default=str)
        try:
            parse_model_args(text)
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
        return text
    values = value if parameter.multiple and is_array(value) else [value]
    expected, types = _accepted_types(parameter)
    if any(type(each) not in types for each in values):
        raise InputError(f"{where} must be {expected}{' or a list of it' if parameter.multiple else ''}, not {value!r}")
    try:
        parameter.process_value(context, list(values) if parameter.multiple else value)
    except typer.BadParameter as error:
        raise InputError(f"{where}: {error.message.rstrip('.')}") from None
    return list(values) if parameter.multiple else value


def _accepted_types(parameter: Any) -> tuple[str, tuple[type, ...]]:
    """Return a description and the accepted types of an option; TOML types are not converted."""
    kind: object = parameter.type_descriptor.annotation
    if kind is bool:
        return "true or false", (bool,)
    if kind is int:
        return "a whole number", (int,)
    if kind is float:
        return "a number", (int, float)
    return "text", (str,)


def _lines(written: str) -> dict[tuple[tuple[str, int], str], int]:
    """Return the line number of each key, which `tomllib` does not provide."""
    found: dict[tuple[tuple[str, int], str], int] = {}
    table, models = ("", 0), -1
    for number, line in enumerate(written.splitlines(), start=1):
        if header := _HEADER.match(line):
            models += header[1] == "model"
            found.setdefault((("", 0), header[1]), number)
            table = header[1], max(models, 0)
            found.setdefault((table, ""), number)
        elif key := _KEY.match(line):
            found.setdefault((table, key[1]), number)
    return found
