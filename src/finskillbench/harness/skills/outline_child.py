"""Child process that parses a package's scripts, using only the standard library and executing none of them.

Standard input: a JSON object of sources by name. Standard output: one JSON object per script, in the same order.
Arguments: processor seconds per script, beyond which the process ends, and bytes of memory.
"""

import ast
import json
import resource
import signal
import sys
import warnings
from contextlib import suppress
from typing import Any


def outline(source: str) -> dict[str, Any]:
    """Return the outline of a script, or its syntax error, or the parser's limit."""
    try:
        tree = ast.parse(source)
    except RecursionError:
        return {"limit": "an expression is nested too deeply"}
    except MemoryError:
        return {"limit": "it is too large or nested too deeply"}
    except (SyntaxError, ValueError) as error:
        return {"error": " ".join(str(error).split())}
    mains = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "main"]
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    return {
        "docstring": ast.get_docstring(tree, clean=False),
        "main": _signature(mains[-1]) if mains else None,
        "modules": [name for node in tree.body for name in modules(node)],
        "imported": [name for node in imports for name in (*modules(node), *(each.name for each in node.names))],
    }


def modules(node: ast.AST) -> list[str]:
    """Return the modules that a statement imports."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module] if isinstance(node, ast.ImportFrom) and node.module is not None else []


def _signature(main: ast.FunctionDef) -> dict[str, Any]:
    positional = (*main.args.posonlyargs, *main.args.args)
    one = len(positional) == 1 and not (main.args.vararg or main.args.kwarg or main.args.kwonlyargs)
    typed = one and is_dict(positional[0].annotation) and is_dict(main.returns)
    return {"line": main.lineno, "takes_one": one, "typed": typed}


def is_dict(annotation: ast.expr | None) -> bool:
    """Return True for `dict`, `dict[...]` and `JsonObject`."""
    if isinstance(annotation, ast.Subscript):
        annotation = annotation.value
    return isinstance(annotation, ast.Name) and annotation.id in {"dict", "JsonObject"}


if __name__ == "__main__":
    seconds, memory = float(sys.argv[1]), int(sys.argv[2])
    with suppress(OSError, ValueError):  # macOS refuses it
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")
    for text in json.load(sys.stdin).values():
        # The default action also ends the process inside the parser, where handlers do not run.
        signal.setitimer(signal.ITIMER_PROF, seconds)
        # A docstring may hold lone surrogates, which UTF-8 cannot encode.
        line = json.dumps(outline(text), ensure_ascii=False).encode("utf-8", "replace")
        sys.stdout.buffer.write(line + b"\n")
        sys.stdout.buffer.flush()
