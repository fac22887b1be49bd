"""Figures of the code's structure: lines, files, functions, names, import cycles, and functions that a build enters.

    python benchmarks/structure.py [--seed SEED] [--list]

Code lines hold a token other than a comment or docstring. Public names are classes and functions at the top level of
a module without a leading underscore. Hops of a run are the distinct functions from the command `run` to a row in the
journal. Hops of a subtask's build are the distinct functions of its domain that run while its episodes are built,
without those of other packages (`engines/`, `panels/`, ...). `--list` names the functions, the longest files and the
names.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import statistics
import sys
import tempfile
import tokenize
import traceback
from collections import defaultdict
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import grimp
from threadpoolctl import threadpool_limits

from finskillbench import cli
from finskillbench.domains import domains
from finskillbench.domains.building import BuildContext
from finskillbench.episode import PAPER_SUITE
from finskillbench.panels import build_panels
from finskillbench.runs.execute import backend, executor
from finskillbench.runs.execute.executor import Executor
from finskillbench.runs.plan.streams import default_edition
from finskillbench.runs.store.journal import Journal
from finskillbench.sources.edgar.collection import load_filings
from finskillbench.sources.market.collection import load_market
from finskillbench.sources.synthetic import write_collection

ROOT = Path(__file__).resolve().parents[1]
DESK = ROOT / "packages" / "finskillbench-desk"
TREES = {
    "core": [ROOT / "src" / "finskillbench"],
    "desk": [DESK / "src" / "finskillbench_desk"],
    "tests": [ROOT / "tests", DESK / "tests"],
}
LIMITS = {"core": 52_000, "desk": 15_500, "tests": 58_000}
"""Code lines of the two packages, and lines of the tests, at most."""
MOST_FILES, LONGEST_FILE, LONGEST_FUNCTION = 620, 400, 60
_IGNORED = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
_IGNORED |= {tokenize.ENCODING, tokenize.ENDMARKER}


def files(name: str) -> list[Path]:
    """Python files of a tree."""
    return sorted(path for folder in TREES[name] for path in folder.rglob("*.py"))


def code_lines(path: Path) -> int:
    """Lines of a file without blank ones, comments and docstrings."""
    with path.open("rb") as file:
        lines = {
            line
            for token in tokenize.tokenize(file.readline)
            if token.type not in _IGNORED
            for line in range(token.start[0], token.end[0] + 1)
        }
    for node in ast.walk(ast.parse(path.read_bytes())):
        body = getattr(node, "body", None)
        for each in body if isinstance(body, list) else []:
            if (
                isinstance(each, ast.Expr)
                and isinstance(each.value, ast.Constant)
                and isinstance(each.value.value, str)
            ):
                lines.difference_update(range(each.lineno, (each.end_lineno or each.lineno) + 1))
    return len(lines)


def sizes(*, listed: bool) -> None:
    """Print lines and files of each tree, the longest files and the longest functions."""
    counts = {name: {path: code_lines(path) for path in files(name)} for name in TREES}
    for name, code in counts.items():
        raw = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in code}
        docstrings = sum(map(docstring_lines, code))
        small, empty = sum(0 < lines < 30 for lines in code.values()), sum(not lines for lines in code.values())
        print(
            f"{name}: {docstrings:,} docstring lines, {sum(code.values()):,} code lines of {sum(raw.values()):,} "
            f"(limit {LIMITS[name]:,}) in "
            f"{len(code)} files; median {statistics.median(raw.values()):.0f} lines, longest {max(raw.values())} "
            f"(limit {LONGEST_FILE}); {small} of fewer than 30 code lines, {empty} of none"
        )
        if listed:
            for path, lines in sorted(raw.items(), key=lambda item: -item[1])[:10]:
                print(f"    {lines} {path.relative_to(ROOT)}")
    print(f"files of both packages: {len(counts['core']) + len(counts['desk'])} (limit {MOST_FILES})")
    long = [item for name in ("core", "desk") for path in counts[name] for item in functions(path)]
    long = sorted((item for item in long if item[0] > LONGEST_FUNCTION), reverse=True)
    print(f"functions over {LONGEST_FUNCTION} lines: {len(long)}, without a reason in the comment above: "
          f"{sum(not reason for _, _, reason in long)}")  # fmt: skip
    for size, where, reason in long if listed else []:
        print(f"    {size} {where} {reason or '(no reason stated)'}")


def functions(path: Path) -> Iterator[tuple[int, str, str]]:
    """Yield length, place and the comment above of every function of a file."""
    lines = path.read_text(encoding="utf-8").splitlines()
    for node in ast.walk(ast.parse("\n".join(lines))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            above = lines[first - 2].strip() if first > 1 else ""
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            yield length, f"{path.relative_to(ROOT)}: {node.name}", above if above.startswith("#") else ""


def docstring_lines(path: Path) -> int:
    """Count the lines of all docstrings of a file."""
    nodes = (node for node in ast.walk(ast.parse(path.read_bytes())) if isinstance(node, ast.Expr))
    texts = (node for node in nodes if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str))
    return sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in texts)


def names(*, listed: bool) -> None:
    """Print how many public names are defined in several modules."""
    homes: dict[str, list[str]] = defaultdict(list)
    for path in [*files("core"), *files("desk")]:
        if not {"skill", "skills"} & set(path.relative_to(ROOT).parts[3:-1]) or "harness" in path.parts:
            for node in ast.parse(path.read_bytes()).body:
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name[0] != "_":
                    homes[node.name].append(str(path.relative_to(ROOT)))
    several = {name: places for name, places in homes.items() if len(places) > 1}
    print(f"public names: {len(homes):,}, of which {len(several)} are defined in several modules")
    for name, places in sorted(several.items()) if listed else []:
        print(f"    {name}: {', '.join(places)}")


def imports() -> None:
    """Print the import cycles of both packages (imports for type checkers alone do not count), and upward imports."""
    packages = ["finskillbench", *(["finskillbench_desk"] if find_spec("finskillbench_desk") else [])]
    graph = grimp.build_graph(*packages, exclude_type_checking_imports=True, cache_dir=None)
    # The root names its public parts and imports each on first use.
    below = {each: graph.find_modules_directly_imported_by(each) - {each} for each in graph.modules - {packages[0]}}
    try:
        list(TopologicalSorter(below).static_order())
        print("import cycles: 0")
    except CycleError as error:
        print(f"import cycles: at least 1, through {' -> '.join(error.args[1])}")
    upward = sum(each.startswith("finskillbench.") and any("_desk" in name for name in below[each]) for each in below)
    print(f"modules of the core that import the desk suite: {upward}; `make layers` checks the other layers")


class Hops:
    """Distinct functions of domains that run, as the interpreter reports their starts."""

    folders = (str(TREES["core"][0] / "domains"), str(TREES["desk"][0]))

    def __init__(self) -> None:
        self.found: set[CodeType] = set()

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        """Count the start of a function that has a name."""
        del argument
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(self.folders) and code.co_name[0] not in "<_":
            self.found.add(code)


def builds(seed: int, *, listed: bool) -> None:
    """Print the hops of each subtask's build on synthetic raw files."""
    with tempfile.TemporaryDirectory() as raw, threadpool_limits(1):
        write_collection(Path(raw), seed=seed, names=30)
        filings = load_filings(Path(raw))
        context = BuildContext(build_panels(load_market(Path(raw)), filings), seed, filings)
        for domain in domains():
            objects = domain.prepare(context)
            for subtask in domain.subtasks:
                if subtask.build is None or not list(subtask.build(context, objects)):
                    continue
                hops = Hops()
                sys.setprofile(hops)
                list(subtask.build(context, objects))
                sys.setprofile(None)
                print(f"    {subtask.name:28} {len(hops.found):3}", flush=True)
                for code in sorted(hops.found, key=lambda code: code.co_qualname) if listed else []:
                    print(f"        {Path(code.co_filename).name}: {code.co_qualname}")


def run_path(*, listed: bool) -> None:
    """Print the hops from the command `run` to a row: functions of the package on the stack at four points of a run."""
    found: dict[str, None] = {}

    def spied(owner: Any, name: str) -> None:
        function = getattr(owner, name)

        def spy(*arguments: Any, **options: Any) -> Any:
            frames = [
                each for each, _ in traceback.walk_stack(None) if str(TREES["core"][0]) in each.f_code.co_filename
            ]
            names = [each.f_code.co_qualname for each in reversed(frames) if each.f_code.co_name[0] != "<"]
            found.update(dict.fromkeys([*names, f"{getattr(owner, '__name__', owner)}.{name}"]))
            return function(*arguments, **options)

        setattr(owner, name, spy)

    spied(Executor, "run")
    spied(backend, "task_prompt")
    spied(executor, "judge")
    spied(Journal, "append")
    with tempfile.TemporaryDirectory() as out, contextlib.redirect_stdout(io.StringIO()):
        path = default_edition(lambda stage: None, PAPER_SUITE, small=True)
        chosen = ("--model", "baseline/nop", "--condition", "no_skill", "--subtask", "rebalancing", "--limit", "1")
        cli.main(["run", "--edition", str(path), *chosen, "--out", f"{out}/run"])
    hops = [each for each in found if not each.startswith(("main", "command.<locals>"))]
    print(f"hops from `run` to a row: {len(hops)}")
    for each in hops if listed else []:
        print(f"    {each}")


def main() -> None:
    """Print every figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--list", action="store_true", help="name files, functions and names")
    options = parser.parse_args()
    sizes(listed=options.list)
    names(listed=options.list)
    imports()
    run_path(listed=options.list)
    print("hops of each subtask's build:")
    builds(options.seed, listed=options.list)


if __name__ == "__main__":
    main()
