"""`run.toml`: all that the command line of `run` and `plan` can say, in a file.

Keys are the names of the options, with `-` or `_`; an option that may be repeated takes a list, `model-args` a table. A
`[[model]]` is one entry of the run, with a `name` and arguments of its own. What the command line says goes before the
file, and before what a model of the file says of itself.
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

OF_A_MODEL = (
    *("base_url", "seed", "temperature", "max_tokens", "request_timeout", "attempt_timeout", "reasoning_effort"),
    *("model_args", "turns", "token_budget"),
)
"""Options that a `[[model]]` may have for itself."""
_NOT_IN_A_FILE = ("file", "help")
_KEY = re.compile(r"""\s*["']?([\w-]+)["']?\s*=""", re.ASCII)
_HEADER = re.compile(r"""\s*\[+\s*["']?([\w-]+)["']?\s*\]+""", re.ASCII)


@dataclass(frozen=True, slots=True)
class RunFile:
    """What a file says: for the whole run, by parameter of the command, and for each of its models.

    `lines` are those of its keys, by table and key; a model's table is ("model", its number), the whole run's ("", 0),
    and a table's own line stands under the key "".
    """

    path: Path
    content: Mapping[str, Any]
    lines: Mapping[tuple[tuple[str, int], str], int]
    models: tuple[Mapping[str, Any], ...] = ()

    def at(self, table: tuple[str, int], key: str) -> str:
        """File, line and key, as an error names them."""
        line = self.lines.get((table, key), self.lines.get((table, "")))
        return f"{self.path}{f', line {line}' if line else ''}: {key}"


def read_run_file(text: str) -> RunFile:
    """Read a file; its keys are checked by `apply_run_file`.

    Raises
    ------
    InputError : it cannot be read, or is no TOML.
    """
    path = Path(text)
    try:
        written = path.read_text(encoding="utf-8")
        content = tomllib.loads(written)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: no TOML ({error})") from None
    return RunFile(path, content, _lines(written))


def apply_run_file(context: typer.Context, file: RunFile | None) -> RunFile | None:
    """Have a command take what a file says where its command line says nothing.

    Raises
    ------
    InputError : a key that the command has not, or a value that its option does not take; with file, line and key.
    """
    if file is None:
        return None
    parameters = {each.name: each for each in context.command.params if each.name and each.name not in _NOT_IN_A_FILE}
    content = dict(file.content)
    models = content.pop("model", [])
    said = {} if not content else _taken(context, file, ("", 0), content, parameters)
    if not (is_array(models) and all(map(is_object, models))):
        said |= _taken(context, file, ("", 0), {"model": models}, parameters)
        context.default_map = {**(context.default_map or {}), **said}
        return file
    own = {name: parameters[name] for name in OF_A_MODEL}
    made: list[Mapping[str, Any]] = []
    for number, model in enumerate(models):
        table = "model", number
        if not isinstance(model.get("name"), str):
            raise InputError(f"{file.at(table, 'name')} is missing or no text; a [[model]] has a name as of --model")
        rest = {key: value for key, value in model.items() if key != "name"}
        made.append({"name": model["name"], **_taken(context, file, table, rest, own, ("name",))})
    if made:
        said["model"] = [model["name"] for model in made]
    context.default_map = {**(context.default_map or {}), **said}
    return RunFile(file.path, file.content, file.lines, tuple(made))


def _taken(
    context: typer.Context,
    file: RunFile,
    table: tuple[str, int],
    content: Mapping[str, Any],
    parameters: Mapping[str, Any],
    others: tuple[str, ...] = (),
) -> dict[str, Any]:
    """The values of a table by parameter, each one that its option takes."""
    taken: dict[str, Any] = {}
    for key, value in content.items():
        where, name = file.at(table, key), key.replace("-", "_")
        if name not in parameters:
            raise InputError(f"{where} is unknown; {_nearest(key, [*parameters, *others])}")
        if name in taken:
            raise InputError(f"{where} is given twice, with - and with _")
        taken[name] = _value(context, where, parameters[name], value)
    return taken


def _nearest(key: str, known: Iterable[str]) -> str:
    names = sorted(name.replace("_", "-") for name in known)
    like = get_close_matches(key.replace("_", "-"), names, n=1, cutoff=0.5)
    return f"did you mean {like[0]}?" if like else f"there are {', '.join(names)}"


def _value(context: typer.Context, where: str, parameter: Any, value: Any) -> Any:
    """A value as its option takes it: of the right type, in its bounds."""
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
    wanted, types = _kind(parameter)
    if any(type(each) not in types for each in values):
        raise InputError(f"{where} must be {wanted}{' or a list of it' if parameter.multiple else ''}, not {value!r}")
    try:
        parameter.process_value(context, list(values) if parameter.multiple else value)
    except typer.BadParameter as error:
        raise InputError(f"{where}: {error.message.rstrip('.')}") from None
    return list(values) if parameter.multiple else value


def _kind(parameter: Any) -> tuple[str, tuple[type, ...]]:
    """What an option takes in a file, in words and by type: TOML's types are not converted."""
    kind: object = parameter.type_descriptor.annotation
    if kind is bool:
        return "true or false", (bool,)
    if kind is int:
        return "a whole number", (int,)
    if kind is float:
        return "a number", (int, float)
    return "text", (str,)


def _lines(written: str) -> dict[tuple[tuple[str, int], str], int]:
    """The line of each key, which the parser does not tell."""
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
