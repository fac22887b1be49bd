"""The shape of the house in figures: files, functions, and how many stops it takes to follow a subtask's build.

    python benchmarks/house.py [--seed SEED]

A stop is a function of this package that runs while a subtask draws and proves its episodes; what lies inside
`engines/` is pure maths with a documented contract and counts as one stop for each of its functions that is called from
outside.
"""

from __future__ import annotations

import argparse
import ast
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from threadpoolctl import threadpool_limits

import finskillbench
from finskillbench.domains import domains
from finskillbench.domains.building import BuildContext
from finskillbench.panels import build_panels
from finskillbench.sources.edgar.collection import load_filings
from finskillbench.sources.market import load_market
from finskillbench.sources.synthetic import write_collection

HOUSE = Path(finskillbench.__file__).parent
LONGEST_FILE, MEDIAN_FILE, LONGEST_FUNCTION, MOST_STOPS = 400, 150, 60, 25


def files() -> None:
    """Lines of the source and of the tests, and the longest files and functions."""
    for name, folder in (("source", HOUSE), ("tests", HOUSE.parents[1] / "tests")):
        lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in folder.rglob("*.py")}
        counts = {path: len(list(path.glob("*.py"))) for path in {file.parent for file in lengths}}
        print(
            f"{name}: {sum(lengths.values()):,} lines in {len(lengths)} files; "
            f"median file {statistics.median(lengths.values()):.0f} (at most {MEDIAN_FILE}), "
            f"longest {max(lengths.values())} (at most {LONGEST_FILE}), fullest folder {max(counts.values())} files"
        )
    long = sorted((each for each in functions() if each[0] > LONGEST_FUNCTION), reverse=True)
    unsaid = sum(not reason for _, _, reason in long)
    print(f"functions over {LONGEST_FUNCTION} lines: {len(long)}, without a stated reason: {unsaid}")
    for size, where, reason in long:
        print(f"  {size} {where} {reason or '(no reason stated)'}")


def functions() -> Iterator[tuple[int, str, str]]:
    """Length and place of every function of the source, and the comment above it."""
    for path in sorted(HOUSE.rglob("*.py")):
        lines = path.read_text(encoding="utf-8").splitlines()
        for node in ast.walk(ast.parse("\n".join(lines))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
                above = lines[first - 2].strip() if first > 1 else ""
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                yield length, f"{path.relative_to(HOUSE)}: {node.name}", above if above.startswith("#") else ""


class Walk:
    """Counts the distinct functions of the package that run, as `sys.setprofile` tells them."""

    def __init__(self) -> None:
        self.stops: set[CodeType] = set()
        self.folders: set[str] = set()

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        """Count a call of a named function of the package."""
        code = frame.f_code
        if event != "call" or not _ours(code) or code.co_name.startswith("<"):
            return
        caller = frame.f_back
        while caller is not None and (caller.f_code.co_name.startswith("<") or not _ours(caller.f_code)):
            caller = caller.f_back
        if _engine(code) and caller is not None and _engine(caller.f_code):
            return
        self.stops.add(code)
        self.folders.add(str(Path(code.co_filename).parent))


def _ours(code: CodeType) -> bool:
    return code.co_filename.startswith(str(HOUSE))


def _engine(code: CodeType) -> bool:
    return code.co_filename.startswith(str(HOUSE / "engines"))


def walks(seed: int) -> None:
    """Stops of each subtask's build on synthetic raw files."""
    with tempfile.TemporaryDirectory() as raw:
        write_collection(Path(raw), seed=seed, names=30)
        filings = load_filings(Path(raw))
        context = BuildContext(build_panels(load_market(Path(raw)), filings), seed, filings)
        for domain in domains():
            objects = domain.prepare(context)
            for subtask in domain.subtasks:
                if subtask.build is None:
                    continue
                walk = Walk()
                sys.setprofile(walk)
                tasks = subtask.build(context, objects)
                sys.setprofile(None)
                if tasks:
                    print(f"{subtask.name:28} {len(walk.stops):3} stops in {len(walk.folders)} folders", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    files()
    print(f"\nFollowing build, call by call (at most {MOST_STOPS}):")
    with threadpool_limits(1):
        walks(arguments.seed)
