"""The shape of the house in figures: files, functions, and how many stops it takes to follow a subtask's build.

    python benchmarks/house.py [--seed SEED] [--list]

A stop is a function that a reader enters who follows a subtask's `build` down to what is true of its episodes: each
counts once, however often it is called. No stops are lambdas and comprehensions (they are read where they stand), what
Python calls by itself (`__post_init__`, `__iter__`) and properties of one line. Behind a documented contract stand the
rooms below the domains (`engines/`, `panels/`, `scoring/`, the nouns), what all domains share (the files of `domains/`
itself and of `domains/checks/`), the second derivation of a domain and the scorers of a subtask, which are read for
themselves: such a function that is called from elsewhere is one stop, and what runs behind that call is counted apart.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import statistics
import sys
import tempfile
from collections.abc import Iterable, Iterator
from enum import Enum
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from threadpoolctl import threadpool_limits

import finskillbench
from finskillbench.domains import domains
from finskillbench.domains.building import BuildContext
from finskillbench.panels import build_panels
from finskillbench.sources.edgar.collection import load_filings
from finskillbench.sources.market.collection import load_market
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
    """The distinct functions that run, as the interpreter tells their starts: stops of a reader, and what is behind."""

    def __init__(self, scorers: Iterable[CodeType]) -> None:
        self.stops: set[CodeType] = set()
        self.behind: set[CodeType] = set()
        self._kinds: dict[CodeType, Kind] = dict.fromkeys(scorers, Kind.SCORER)

    @property
    def folders(self) -> set[Path]:
        """Where the stops are."""
        return {Path(code.co_filename).parent for code in self.stops}

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        """Count the start of a function, unless it was counted before."""
        if event != "call":
            return
        code = frame.f_code
        kind = self._kind(code)
        if kind is Kind.FOREIGN or code in self.stops:
            return
        if kind is Kind.PLUMBING or self._behind_a_contract(frame, kind):
            self.behind.add(code)
        else:
            self.stops.add(code)

    def _kind(self, code: CodeType) -> Kind:
        return self._kinds.get(code) or self._kinds.setdefault(code, kind_of(code))

    def _behind_a_contract(self, frame: FrameType, kind: Kind) -> bool:
        """Whether a scorer led to a call, or one function behind a contract called another.

        What a subtask hands to shared functions is its own: it is not behind them.
        """
        nearest: Kind | None = None
        caller = frame.f_back
        while caller is not None:
            calling = self._kind(caller.f_code)
            if nearest is None and calling not in {Kind.FOREIGN, Kind.PLUMBING}:
                nearest = calling
            if calling is Kind.SCORER or (kind is Kind.CONTRACT and nearest is Kind.CONTRACT):
                return True
            caller = caller.f_back
        return False


class Kind(Enum):
    """What a function is to a reader who follows a build."""

    FOREIGN = "not of this package, or a lambda or comprehension, which stands where it is read"
    PLUMBING = "a property of one line, or a method that Python calls"
    SCORER = "a scorer of the subtask, with all that it calls"
    CONTRACT = "behind a documented contract"
    OPEN = "of the subtask or of what its domain prepares"


def kind_of(code: CodeType) -> Kind:
    """What the function of some code is to a reader."""
    if not code.co_filename.startswith(str(HOUSE)) or code.co_name.startswith("<"):
        return Kind.FOREIGN
    path = Path(code.co_filename).relative_to(HOUSE)
    if (code.co_name.startswith("__") and code.co_name.endswith("__")) or code.co_firstlineno in short_properties(path):
        return Kind.PLUMBING
    shared = path.parts[0] != "domains" or len(path.parts) == 2 or path.parts[1] == "checks"
    return Kind.CONTRACT if shared or path.parts[2] in {"second", "second.py"} else Kind.OPEN


@cache
def short_properties(path: Path) -> set[int]:
    """First lines of the properties of a file that only return an expression."""
    return {
        min(node.lineno, *(each.lineno for each in node.decorator_list))
        for node in ast.walk(ast.parse((HOUSE / path).read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
        and any("property" in ast.unparse(each) for each in node.decorator_list)
        and len(node.body) - (ast.get_docstring(node) is not None) == 1
    }


def walks(seed: int, *, listed: bool) -> None:
    """Stops of each subtask's build on synthetic raw files."""
    with tempfile.TemporaryDirectory() as raw:
        write_collection(Path(raw), seed=seed, names=30)
        filings = load_filings(Path(raw))
        context = BuildContext(build_panels(load_market(Path(raw)), filings), seed, filings)
        for domain in domains():
            objects = domain.prepare(context)
            for subtask in domain.subtasks:
                if subtask.build is None or not list(
                    subtask.build(context, objects)
                ):  # what is read lazily is read now
                    continue
                walk = Walk(inspect.unwrap(scorer).__code__ for scorer in subtask.scorers.values())
                sys.setprofile(walk)
                list(subtask.build(context, objects))
                sys.setprofile(None)
                print(
                    f"{subtask.name:28} {len(walk.stops):3} stops in {len(walk.folders):2} folders, "
                    f"{len(walk.behind):3} functions behind them",
                    flush=True,
                )
                if listed:
                    for code in sorted(walk.stops, key=lambda code: (code.co_filename, code.co_firstlineno)):
                        print(f"    {Path(code.co_filename).relative_to(HOUSE)}: {code.co_qualname}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--list", action="store_true", help="name the stops")
    arguments = parser.parse_args()
    files()
    print(f"\nFollowing build, call by call (at most {MOST_STOPS}):")
    with threadpool_limits(1):
        walks(arguments.seed, listed=arguments.list)
