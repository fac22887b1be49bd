"""Seconds that hostile files of strangers' skill packages take: lint, then all that a run does before it begins.

    python benchmarks/hostile_skills.py

Each file of `tests/harness/skills/hostile.py` is put into a sound package, which is linted, read, mounted and proved.
Exit code 1 if one takes 2 s or more of the processor, with its child processes, or ends in a traceback.
"""

import math
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.harness.skills.hostile import NAME, cases, sound

from finskillbench.analysis.skills import domains_of
from finskillbench.errors import FinSkillBenchError
from finskillbench.harness.conditions import mount_all
from finskillbench.harness.proof import prove_arms
from finskillbench.harness.skills.lint import lint
from finskillbench.harness.skills.user_skills import read_user_skills

LIMIT_SECONDS = 2.0
DOMAINS = ("portfolio_construction", "risk_management", "fundamental_analysis")


def seconds() -> float:
    """Processor time of this process and of its children so far."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return math.fsum(each.ru_utime + each.ru_stime for each in used)


def attempt(root: Path) -> str:
    """Lint a package and prepare it for a run; return the refusal, if there is one."""
    lint(root)
    try:
        given = read_user_skills({"mine": root})
        prove_arms(mount_all(["no_skill", *given], given), DOMAINS)
        domains_of(given["skill:mine"].packages.values())
    except FinSkillBenchError as error:
        return str(error)
    return ""


def main() -> int:
    """Print a line for each hostile file, the slowest last, and the number that failed."""
    found: list[tuple[float, float, str, str]] = []
    with tempfile.TemporaryDirectory() as folder:
        attempt(sound(Path(folder) / "first" / NAME))  # imports and caches
        for number, (name, spoil) in enumerate(cases()):
            root = sound(Path(folder) / str(number) / NAME)
            spoil(root)
            before, began = seconds(), time.perf_counter()
            try:
                outcome = attempt(root) or "accepted"
            except Exception as error:  # noqa: BLE001  # a traceback is what is looked for
                outcome = f"TRACEBACK {error!r}"
            found.append((seconds() - before, time.perf_counter() - began, name, outcome))
    for used, passed, name, outcome in sorted(found):
        print(f"{used:5.2f} s of the processor {passed:5.2f} s passed  {name:40} {outcome[:90]}")
    failed = [each for each in found if each[0] >= LIMIT_SECONDS or each[3].startswith("TRACEBACK")]
    refused = sum(each[3] != "accepted" for each in found)
    print(f"{len(found)} files: {refused} refused, {len(found) - refused} accepted, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    os.umask(0o022)
    sys.exit(main())
