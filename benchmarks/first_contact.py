"""Time and memory of a newcomer's first commands, the commit before they were made quick beside today's.

    python benchmarks/first_contact.py [FIGURE ...] [--times 3] [--base COMMIT] [--only-today]

Each figure is the median of so many runs of a command in a process of its own, base and today in turn, with the same
interpreter and packages: seconds of the clock, processor seconds, and the most memory that the process and those it
started hold at one moment (shared pages once), looked at every tenth of a second. `paper` and `desk` are the suites:
`paper-build` builds an edition of seed 1, `paper-run` plays it with the four baselines under three conditions,
`desk-run` plays 160 cases with six programs under two. `make-run` is `finskillbench run --page` with an empty cache.
`test`, `test-fast` and `docs` are the make targets of that name, run where everything is installed.

Required on two cores: what REQUIRED says. Exit code 1 where today's median is more; run it on a quiet machine.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import psutil

ROOT = Path(__file__).resolve().parents[1]
BASE = "6345bdb"
"""The commit before suites."""
REQUIRED: Mapping[str, tuple[float, float | None]] = {
    "paper-build": (25, 800),
    "paper-run": (25, 600),
    "make-run": (60, None),
    "desk-build": (60, 1000),
    "desk-run": (60, 1000),
    "demo": (15, None),
    "test-fast": (75, None),
    "docs": (120, None),
    "test": (300, None),
}
"""Figure to the most seconds, and the most MB where that is required."""
DESK_PROGRAMS = ("reference", "textbook", "trapped", "heuristic", "trivial", "nop")

_BUILD = """
import sys
from pathlib import Path
from finskillbench.edition import build
if __name__ == "__main__":
    suite, out = sys.argv[1], Path(sys.argv[2])
    if "suite" in build.build_edition.__kwdefaults__:
        build.build_edition(suite=suite, out=out)
    else:  # before suites: leave the domains of the other one out
        every = build.domains()
        build.domains = lambda: tuple(one for one in every if (one.name == "desk") == (suite == "desk"))
        build.build_edition(out=out)
"""
_RUN = """
import sys
from pathlib import Path
from finskillbench.domains import domains
from finskillbench.edition import load_edition
from finskillbench.runs.execute.run import run
suite, edition, out, *models = sys.argv[1:]
names = [each.name for one in domains() if (one.name == "desk") == (suite == "desk") for each in one.subtasks]
conditions = ["no_skill", "curated", *(["self_generated"] if suite == "paper" else [])]
result = run(load_edition(edition), models, conditions, names, out=Path(out))
print(result.ran, "episodes,", result.errors, "errors")
"""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two commits: its checkout, and a folder for what its commands write."""

    name: str
    checkout: Path
    folder: Path

    def environment(self) -> dict[str, str]:
        """The environment of its commands: its source first, its own home and cache."""
        paths = {"PYTHONPATH": str(self.checkout / "src"), "XDG_CACHE_HOME": str(self.folder / "cache")}
        return {**os.environ, **paths, "PYTHONDONTWRITEBYTECODE": ""}

    def command(self, figure: str) -> list[str]:
        """The command of a figure, after what it needs is made."""
        out, edition = self.folder / figure, self.folder / f"{figure.split('-')[0]}-edition"
        shutil.rmtree(out, ignore_errors=True)
        python, suite = sys.executable, figure.split("-")[0]
        cli = [python, "-c", "import sys; from finskillbench.cli import main; sys.exit(main())"]
        if figure.endswith("-build"):
            return [python, self._script("build.py", _BUILD), suite, str(out)]
        if figure in ("paper-run", "desk-run"):
            if not edition.exists():
                self.run([python, self._script("build.py", _BUILD), suite, str(edition)])
            programs = DESK_PROGRAMS if suite == "desk" else ("reference", "heuristic", "trivial", "nop")
            models = [f"baseline/{name}" for name in programs]
            return [python, self._script("run.py", _RUN), suite, str(edition), str(out), *models]
        if figure in ("make-run", "demo"):
            shutil.rmtree(self.folder / "cache", ignore_errors=True)
            return [*cli, *(["demo"] if figure == "demo" else ["run", "--page"]), "--out", str(out)]
        if figure == "docs":
            shutil.rmtree(self.checkout / "build" / "journeys", ignore_errors=True)
        return ["make", figure]

    def run(self, command: Sequence[str]) -> tuple[float, float, float]:
        """Run a command; return seconds of the clock, processor seconds and MB.

        Raises
        ------
        SystemExit : the command failed, with the end of what it printed.
        """
        started, before = time.perf_counter(), os.times()
        with (self.folder / "output.txt").open("w") as output:
            process = subprocess.Popen(
                command, cwd=self.checkout, env=self.environment(), stdout=output, stderr=subprocess.STDOUT
            )
            most = [0.0]
            watcher = threading.Thread(target=_watch, args=(process.pid, most), daemon=True)
            watcher.start()
            code = process.wait()
        seconds, after = time.perf_counter() - started, os.times()
        watcher.join()
        if code:
            raise SystemExit(f"{self.name}: {command} failed with code {code}\n{_tail(self.folder / 'output.txt')}")
        spent = after.children_user + after.children_system - before.children_user - before.children_system
        return seconds, spent, most[0]

    def _script(self, name: str, text: str) -> str:
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return str(path)


def _tail(path: Path) -> str:
    return "\n".join(path.read_text(encoding="utf-8", errors="replace").splitlines()[-15:])


def _watch(pid: int, most: list[float]) -> None:
    """Keep the most memory in MB that a process and those it started hold at once, until it ends."""
    try:
        own = psutil.Process(pid)
        while own.is_running() and own.status() != psutil.STATUS_ZOMBIE:
            held = 0
            for one in (own, *own.children(recursive=True)):
                try:
                    held += one.memory_full_info().pss if sys.platform == "linux" else one.memory_info().rss
                except psutil.NoSuchProcess:
                    continue
            most[0] = max(most[0], held / 1e6)
            time.sleep(0.1)
    except psutil.NoSuchProcess:
        return


def _checkout(commit: str, folder: Path) -> Path:
    """Write the tracked files of a commit into a folder, with the environment and the real inputs beside it."""
    (folder / "repo").mkdir(parents=True)
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=True).stdout
    subprocess.run(["tar", "-x", "-C", str(folder / "repo")], input=archive, check=True)
    for name, target in ((".venv", ROOT / ".venv"), ("../shared", ROOT.parent / "shared")):
        if target.exists():
            (folder / "repo" / name).symlink_to(target)
    return folder / "repo"


def main() -> int:
    """Print every figure for both sides; exit code 1 where today's misses what is required."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("figures", nargs="*", metavar="FIGURE", help=f"of {', '.join(REQUIRED)}; default: all")
    parser.add_argument("--times", type=int, default=3, help="runs of each side (default 3)")
    parser.add_argument("--base", default=BASE, help=f"the commit to compare with (default {BASE})")
    parser.add_argument("--only-today", action="store_true", help="leave the base out")
    arguments = parser.parse_args()
    unknown = set(arguments.figures) - REQUIRED.keys()
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    missed = False
    print(f"{'':14}{'':8}{'seconds':>9}{'processor s':>13}{'peak MB':>9}", flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        sides = [Side("today", _checkout("HEAD", Path(temporary) / "today"), Path(temporary) / "today")]
        if not arguments.only_today:
            base = Path(temporary) / "base"
            sides.insert(0, Side("base", _checkout(arguments.base, base), base))
        for figure in arguments.figures or REQUIRED:
            taken: dict[str, list[tuple[float, float, float]]] = {side.name: [] for side in sides}
            for _ in range(arguments.times):
                for side in sides:
                    if not (side.name == "base" and figure == "demo"):
                        taken[side.name].append(side.run(side.command(figure)))
            for name, rows in taken.items():
                if rows:
                    seconds, spent, most = (median(column) for column in zip(*rows, strict=True))
                    print(f"{figure:14}{name:8}{seconds:9.1f}{spent:13.1f}{most:9.0f}", end="", flush=True)
                    if name == "today":
                        limit, megabytes = REQUIRED[figure]
                        print(
                            f"   required: {limit:.0f} s{'' if megabytes is None else f', {megabytes:.0f} MB'}", end=""
                        )
                        missed |= seconds > limit or most > (megabytes or float("inf"))
                    print(flush=True)
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
