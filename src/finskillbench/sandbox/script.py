"""Command line of skill scripts: `python script.py --input FILE` prints the JSON that `main` returns."""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn, cast

from finskillbench.errors import FinSkillBenchError
from finskillbench.sandbox.limits import JsonObject


class _OneLineParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        _fail(message)


def _fail(message: str) -> NoReturn:
    print(f"error: {' '.join(message.split())}", file=sys.stderr)
    raise SystemExit(2)


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a JSON number")


DIGITS = 10
"""Decimals of output numbers: more than tasks need, fewer than arithmetic noise has."""


def rounded(result: JsonObject) -> JsonObject:
    """Round every number of a result to `DIGITS` decimals."""
    return {key: _rounded(value) for key, value in result.items()}


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, DIGITS) + 0.0  # no -0.0
    if isinstance(value, dict):
        return rounded(cast("JsonObject", value))
    return [_rounded(item) for item in cast("list[Any]", value)] if isinstance(value, list) else value


def cli(main: Callable[[JsonObject], JsonObject], arguments: Sequence[str] | None = None) -> None:
    """Run `main` on the JSON object in a file and print its result as JSON.

    On a bad file, or an error in `main` (FinSkillBenchError, ValueError, TypeError, KeyError), prints one line to the
    error stream and exits with 2.

    Parameters
    ----------
    main : the script's entry, payload in and result out.
    arguments : command-line arguments, those of the process by default.
    """
    parser = _OneLineParser(description=(sys.modules[main.__module__].__doc__ or "").strip() or None)
    parser.add_argument("--input", required=True, metavar="FILE", help="JSON object to work on, - for standard input")
    name = parser.parse_args(arguments).input
    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
        payload: object = json.loads(text, parse_constant=_refuse_constant)
    except (OSError, ValueError, RecursionError) as error:
        _fail(f"{name}: cannot be read as JSON: {error}")
    if not isinstance(payload, dict):
        _fail(f"{name}: holds a JSON {type(payload).__name__}, expected an object")
    try:
        print(json.dumps(main(cast("JsonObject", payload)), allow_nan=False))
    except KeyError as error:
        _fail(f"{name}: field {error} is missing or unknown")
    except (FinSkillBenchError, ValueError, TypeError) as error:
        _fail(f"{name}: {error}")
