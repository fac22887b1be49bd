"""The script that runs a piece of somebody's code as a notebook runs a cell; in a folder of its own, which it may read.

Payload: `code`; `names`, the variables it finds; `files`, what its working folder holds (name to base64); `search`,
folders to import from before all others. Result: `value` of the last expression, `error`, `files` as they are after it,
and `note` instead of them where they cannot be kept. Standard library only, and nothing of this library.
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
"""Of the files that are kept from one piece to the next."""
MOST_CHARS = 16 * 1024
"""Of a value that is shown."""

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
    """Run `payload["code"]` and say what came of it; what it raises is a result too."""
    folder = Path.cwd()
    temporary = folder / _TEMPORARY
    temporary.mkdir()
    os.environ.update(HOME=str(temporary), TMPDIR=str(temporary))
    for name, content in payload["files"].items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(base64.b64decode(content))
    # In place of this script's own folder; the empty part is the current one.
    sys.path[:1] = [*payload["search"], ""]
    # What is printed before a limit ends the process shall be seen.
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    module = types.ModuleType("__main__")
    module.__dict__.update(payload["names"])
    sys.modules["__main__"] = module
    result: dict[str, Any] = {"value": None, "error": None}
    try:
        result["value"] = _shown(_run(payload["code"], module.__dict__))
    except BaseException as error:  # noqa: BLE001 - whatever the code raises is told to whoever wrote it
        result["error"] = _told(error, folder, payload["search"])
    try:
        result["files"] = dict(_kept(folder))
    except (OSError, ValueError) as error:
        result["note"] = f"{error}; the files are as they were before this call"
    return result


def warm_up() -> dict[str, Any]:
    """A little of what most code does, to touch the memory it needs before anybody waits; it starts no thread."""
    return {"value": _shown(_run(_USUAL, {}))}


def _run(code: str, names: dict[str, Any]) -> Any:
    """Execute `code`, and return the value of its last statement if that is an expression."""
    linecache.cache[_CODE] = len(code), None, code.splitlines(keepends=True), _CODE
    tree = ast.parse(code, _CODE)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, _CODE, "exec", dont_inherit=True), names)
    if not isinstance(last, ast.Expr):
        return None
    return eval(compile(ast.Expression(last.value), _CODE, "eval", dont_inherit=True), names)


def _shown(value: Any) -> Any:
    """The value as JSON where it is numbers and text in lists and dicts, arrays included; else as it shows itself."""
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False, default=_listed)
        if len(text) <= MOST_CHARS:
            return json.loads(text.encode())
    except (TypeError, ValueError, RecursionError):
        pass
    text = _clean(repr(value))
    return text if len(text) <= MOST_CHARS else f"{text[:MOST_CHARS]}... (cut, {len(text)} characters)"


def _listed(value: Any) -> Any:
    """A number or an array of numpy as Python's own."""
    if type(value).__module__ == "numpy":
        return value.tolist()
    raise TypeError


def _told(error: BaseException, folder: Path, search: list[str]) -> str:
    """The steps through the code and the modules it brings that led to an error, and the error in words."""
    ours = (*search, str(folder))
    try:
        steps = [
            f"{_place(step.filename)} {step.lineno}, in {step.name}: {step.line}"
            for step in traceback.extract_tb(error.__traceback__)
            if step.filename == _CODE or any(step.filename.startswith(f"{folder}/") for folder in ours)
        ]
        words = "".join(traceback.format_exception_only(error)).replace(f'File "{_CODE}", ', "").strip()
    except Exception:  # noqa: BLE001 - the exception belongs to the code: putting it into words may raise
        return f"{type(error).__name__}, which cannot be put into words"
    text = _clean("\n".join((*steps[-_ERROR_FRAMES:], words)))
    # Where this machine keeps things is nobody's business, and differs from call to call.
    for place in sorted({*ours, *sys.path, sys.prefix, sys.base_prefix} - {""}, key=len, reverse=True):
        text = text.replace(f"{place}/", "")
    return text[-_ERROR_CHARS:]


def _place(file: str) -> str:
    return "line" if file == _CODE else Path(file).name


def _clean(text: str) -> str:
    """Text that JSON can carry: a lone surrogate is spelled out."""
    return text.encode("utf-8", "backslashreplace").decode()


def _kept(folder: Path) -> Iterator[tuple[str, str]]:
    """Every file below `folder`, links and temporary ones apart; ValueError if they are more than may be kept."""
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
    """A name that JSON can carry; ValueError otherwise."""
    name = path.as_posix()
    if name != _clean(name):
        raise ValueError(f"the file {_clean(name)!r} has a name that is no text")
    return name
