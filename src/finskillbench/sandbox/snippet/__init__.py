"""Script that runs code like a notebook cell, in its own readable folder.

Payload: `code`; `names`, predefined variables; `files`, the working folder's content (name to base64); `search`,
folders to import from first. Result: `value` of the last expression, `error`, and `files` after the run, or `note` if
they cannot be kept. Standard library only, without this library.
"""

import ast
import base64
import json
import linecache
import os
import sys
import traceback
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MOST_BYTES, MOST_FILES = 8 * 1024 * 1024, 256
"""Limits of the files kept between calls."""
MOST_CHARS = 16 * 1024
"""Limit of a displayed value."""

_USUAL = """
import json, numpy as np, polars as pl, scipy.linalg
matrix = np.array(json.loads(json.dumps((np.eye(30) + 0.5).tolist())))
solved = scipy.linalg.solve(matrix, np.ones(30), assume_a="pos")
frame = pl.DataFrame({"name": [str(number) for number in range(30)], "x": solved})
text, inverse = repr(frame), np.linalg.inv(matrix) @ frame["x"].to_numpy()
dict(zip(frame["name"].to_list(), inverse))
"""
_CODE, _TEMPORARY = "<code>", ".temporary"
_ERROR_CHARS, _ERROR_FRAMES = 4_000, 8


def main(payload: dict[str, Any]) -> dict[str, Any]:
    """Run `payload["code"]` and return its result; exceptions are results too."""
    folder = Path.cwd()
    temporary = folder / _TEMPORARY
    temporary.mkdir()
    os.environ.update(HOME=str(temporary), TMPDIR=str(temporary))
    for name, content in payload["files"].items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(base64.b64decode(content))
    # Replaces this script's own folder; the empty part is the current folder.
    sys.path[:1] = [*payload["search"], ""]
    # Line buffering keeps output that precedes a limit.
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    module = types.ModuleType("__main__")
    module.__dict__.update(payload["names"])
    sys.modules["__main__"] = module
    result: dict[str, Any] = {"value": None, "error": None}
    try:
        result["value"] = _shown(_run(payload["code"], module.__dict__))
    except BaseException as error:  # noqa: BLE001 - any exception of the code is reported to its author
        result["error"] = _describe_error(error, folder, payload["search"])
    try:
        result["files"] = dict(_kept(folder))
    except (OSError, ValueError) as error:
        result["note"] = f"{error}; the files are as they were before this call"
    return result


def warm_up() -> dict[str, Any]:
    """Run typical code, to touch the memory it needs; starts no thread."""
    return {"value": _shown(_run(_USUAL, {}))}


def _run(code: str, names: dict[str, Any]) -> Any:
    linecache.cache[_CODE] = len(code), None, code.splitlines(keepends=True), _CODE
    tree = ast.parse(code, _CODE)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, _CODE, "exec", dont_inherit=True), names)
    if not isinstance(last, ast.Expr):
        return None
    return eval(compile(ast.Expression(last.value), _CODE, "eval", dont_inherit=True), names)


def _shown(value: Any) -> Any:
    """Convert a value to JSON if it consists of numbers and text, arrays included; else return its repr."""
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False, default=_listed)
        if len(text) <= MOST_CHARS:
            return json.loads(text.encode())
    except (TypeError, ValueError, RecursionError):
        pass
    text = _clean(repr(value))
    return text if len(text) <= MOST_CHARS else f"{text[:MOST_CHARS]}... (cut, {len(text)} characters)"


def _listed(value: Any) -> Any:
    if type(value).__module__ == "numpy":
        return value.tolist()
    raise TypeError


def _describe_error(error: BaseException, folder: Path, search: list[str]) -> str:
    ours = (*search, str(folder))
    try:
        steps = [
            f"{_place(step.filename)} {step.lineno}, in {step.name}: {step.line}"
            for step in traceback.extract_tb(error.__traceback__)
            if step.filename == _CODE or any(step.filename.startswith(f"{folder}/") for folder in ours)
        ]
        description = "".join(traceback.format_exception_only(error)).replace(f'File "{_CODE}", ', "").strip()
    except Exception:  # noqa: BLE001 - formatting the code's exception may raise
        return f"{type(error).__name__}, whose message cannot be shown"
    text = _clean("\n".join((*steps[-_ERROR_FRAMES:], description)))
    # Machine paths are private and vary between calls.
    for place in sorted({*ours, *sys.path, sys.prefix, sys.base_prefix} - {""}, key=len, reverse=True):
        text = text.replace(f"{place}/", "")
    return text[-_ERROR_CHARS:]


def _place(file: str) -> str:
    return "line" if file == _CODE else Path(file).name


def _clean(text: str) -> str:
    """Escape lone surrogates, which JSON cannot carry."""
    return text.encode("utf-8", "backslashreplace").decode()


def _kept(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the files below `folder`, without links and temporary files; ValueError beyond the limits."""
    found = (Path(parent, name) for parent, _, names in os.walk(folder) for name in names)
    ours = (path for path in found if path.relative_to(folder).parts[0] != _TEMPORARY)
    files = [path for path in ours if path.is_file() and not path.is_symlink()]
    size = sum(path.stat().st_size for path in files)
    if size > MOST_BYTES or len(files) > MOST_FILES:
        kept = f"at most {MOST_FILES} of {MOST_BYTES} are kept"
        raise ValueError(f"{len(files)} files of {size} bytes are in the working folder, {kept}")
    for path in sorted(files):
        yield _name(path.relative_to(folder)), base64.b64encode(path.read_bytes()).decode()


def _name(path: Path) -> str:
    name = path.as_posix()
    if name != _clean(name):
        raise ValueError(f"the file {_clean(name)!r} has a name that is not valid text")
    return name
