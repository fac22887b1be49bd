"""What SECURITY.md and `doctor` say of the sandbox is what it does: one table of guards, one of places."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from finskillbench.cli import main
from finskillbench.errors import InputError
from finskillbench.harness.conditions import ARMS, Condition, Mount
from finskillbench.harness.skills import runner
from finskillbench.sandbox.guarantees import GUARDS, PLATFORMS, Platform
from finskillbench.sandbox.runner import ScriptRunner

SECURITY = (Path(__file__).resolve().parents[2] / "SECURITY.md").read_text(encoding="utf-8")
NO_LANDLOCK = "confine.landlock_version = lambda: 0"
NO_CALLS = "calls.platform.machine = lambda: 'riscv64'"
NO_LINUX = "confine.LINUX = False"
TAKEN_AWAY = {
    "Linux with Landlock": "pass",
    "the same without user namespaces": "offline = False",
    "Linux without Landlock": NO_LANDLOCK,
    "Linux on other processors": NO_CALLS,
    "macOS": f"offline = False; {NO_LINUX}; confine.landlock_version.cache_clear(); os.getuid() or os.setuid(65534)",
}
"""What makes this machine a place, by the beginning of the place's name."""
_PROBE = """
import json, os
from finskillbench.sandbox import server
from finskillbench.sandbox.guards import calls, confine
offline = confine.network_off()
{taken_away}
print(json.dumps(vars(server)["_guards"](offline=offline, threads=False)))
"""


def _rows(head: str) -> list[list[str]]:
    """The cells of the table of SECURITY.md under a head."""
    table = SECURITY[SECURITY.index(head) :].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


def test_its_tables_are_those_of_the_code() -> None:
    assert _rows("| guard | what it keeps from a script | by |") == [
        [name, guard.keeps, guard.by] for name, guard in GUARDS.items()
    ]
    assert _rows("| where | guards | scripts of others |") == [
        [place.where, place.summary, place.untrusted_scripts] for place in PLATFORMS
    ]


def test_the_guards_are_those_that_the_sandbox_tries() -> None:
    with ScriptRunner() as bare:
        assert list(bare.guards) == list(GUARDS)


@pytest.mark.slow
@pytest.mark.parametrize("place", PLATFORMS, ids=lambda place: place.where.split(" (")[0])
def test_a_place_lacks_what_is_said_of_it(place: Platform) -> None:
    """Each guard is tried in a process from which is taken away what the place does not have."""
    (taken_away,) = (change for name, change in TAKEN_AWAY.items() if place.where.startswith(f"{name}"))
    probe = _PROBE.format(taken_away=taken_away)
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    held = json.loads(done.stdout)
    if not all(runner.sandbox_guards().values()) and place.lacks == frozenset():
        pytest.skip(f"this machine lacks guards, and says so: {runner.sandbox_guards()}")
    assert {name for name, there in held.items() if not there} == place.lacks


@pytest.mark.parametrize("place", PLATFORMS, ids=lambda place: place.where.split(" (")[0])
def test_doctor_and_a_run_say_the_same_of_it(
    place: Platform, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    held = {name: name not in place.lacks for name in GUARDS}
    monkeypatch.setattr(runner, "sandbox_guards", lambda: held)
    assert main(["doctor"]) == (1 if place.lacks else 0)
    said = capsys.readouterr().out.splitlines()
    missing = [line.split()[1] for line in said if line.startswith("MISSING")]
    assert missing == [name for name in GUARDS if name in place.lacks]
    assert all(any(guard.line in line for line in said) for guard in GUARDS.values())
    code = [Mount(ARMS[Condition.CODE])]
    if place.untrusted_scripts == "run":
        assert runner.check_guards(code, allow_unconfined=False) == held
    else:
        with pytest.raises(InputError, match=", ".join(missing)):
            runner.check_guards(code, allow_unconfined=False)
