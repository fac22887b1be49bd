"""Forty-five escape attempts as superuser, ordinary user and in a container without privileges: none reaches anything.

They come in as the script of a package and as the code of an agent, which tries ten ways to the library besides.
`driver` is the program that attacks; here it is started as somebody, once for each mode. In one more mode the two
guards of the kernel are taken away, and in another the code has the library, to show that the attempts are real: a list
of what never worked proves nothing.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from tests.redteam.attacks import ATTACKS, LIBRARY
from tests.sampling import THOROUGH, thorough

pytestmark = pytest.mark.slow

SUPERUSER = os.geteuid() == 0
ROOT = Path(__file__).resolve().parents[2]
MODES = ("superuser", "user", "container")
STOPPED_ANYWAY = {
    "hard link into the scratch folder",
    "open by handle, past the folders",
    "read keys in its own environment",
    "use descriptors that it inherited",
    "leave something in the parent's modules",
    "find the code of another package in its callers",
    "connect to an abstract one",
    "connect by TCP",
    "send by UDP",
    "set up io_uring",
    "fork",
    "start a thread",
    "become the superuser, enter namespaces, mount",
    "type into the terminal",
    "keep or read keys in the kernel",
    "use bpf, perf, userfaultfd, kcmp",
}
"""What limits, namespaces, a fresh environment or some kernels' settings stop as well."""

AS_USER = "setpriv --reuid 12345 --regid 12345 --clear-groups --bounding-set=-all --inh-caps=-all"
# No namespace can be made within, as in Docker's default.
IN_CONTAINER = 'echo 0 > /proc/sys/user/max_user_namespaces; exec setpriv --bounding-set=-all --inh-caps=-all "$@"'


def command(mode: str, folder: Path) -> list[str]:
    """What starts a program in this mode; skips where that cannot be."""
    if mode == "container":
        return ["unshare", "-Ur", "sh", "-c", IN_CONTAINER, "sh"]
    if mode == "superuser" and not SUPERUSER:
        pytest.skip("the tests do not run as the superuser")
    if mode == "superuser" or not SUPERUSER:
        return []
    return ["unshare", "-m", "sh", "-c", f'{_opened(folder)} exec {AS_USER} "$@"', "sh"]


def _opened(folder: Path) -> str:
    """Commands that show interpreter and checkout alone, where only the superuser enters what is above."""
    bound = {
        path: (closed, folder / f"shown-{number}")
        for number, path in enumerate((Path(sys.base_prefix), ROOT))
        if (closed := next((above for above in reversed(path.parents) if not above.stat().st_mode & 1), None))
    }
    lines = [f"mkdir {shown} && mount --bind {path} {shown}" for path, (_, shown) in bound.items()]
    lines += [f"mount -t tmpfs -o mode=755 none {closed}" for closed in {closed for closed, _ in bound.values()}]
    lines += [f"mkdir -p {path} && mount --bind {shown} {path}" for path, (_, shown) in bound.items()]
    return "".join(f"{line} || exit; " for line in lines)


@pytest.fixture(scope="module")
def campaign() -> Iterator[Callable[..., dict[str, Any]]]:
    """Attacks in a mode, once: the guards that held, and what each attempt reached."""

    @cache
    def attack(mode: str, way: str, *how: str) -> dict[str, Any]:
        # Not pytest's own folder, which nobody else may enter.
        folder = Path(folders.enter_context(TemporaryDirectory(prefix="redteam-")))
        folder.chmod(0o777)
        driver = [sys.executable, str(Path(__file__).parent / "driver.py"), str(folder / "targets"), way, *how]
        try:
            done = subprocess.run([*command(mode, folder), *driver], capture_output=True, text=True, check=False)
        except FileNotFoundError as error:
            pytest.skip(f"{error.filename} is not installed")
        if not done.stdout and ("unshare" in done.stderr or "setpriv" in done.stderr):
            pytest.skip(f"this machine does not let the tests be a {mode}: {done.stderr.strip()}")
        assert done.stdout, done.stderr
        return json.loads(done.stdout)

    with ExitStack() as folders:
        yield attack


WAYS = {"script": ATTACKS, "code": {**ATTACKS, **LIBRARY}}
MODES_OF = {"script": MODES, "code": MODES if THOROUGH else ("user",)}
"""Both ways in have the same guards; an attempt of code takes three times as long as that of a script."""
OF_ITS_OWN = {"code": "start a thread"}
"""What is granted: polars does nothing without."""


WITHOUT_NAMESPACES = ("leave a time of reading for the next call", "container")
"""Attacks that SECURITY.md states as open there."""


@pytest.mark.parametrize(
    ("way", "name", "mode"),
    [
        (way, name, mode)
        for way in WAYS
        for mode in MODES_OF[way]
        for name in WAYS[way]
        if name != OF_ITS_OWN.get(way) and (name, mode) != WITHOUT_NAMESPACES
    ],
)
def test_nothing_is_reached(way: str, name: str, mode: str, campaign: Callable[..., dict[str, Any]]) -> None:
    outcome = campaign(mode, way)
    if not all(outcome["guards"].values()):
        pytest.skip(f"this machine lacks guards, and says so: {outcome['guards']}")
    assert outcome["reached"][name] == ""


@thorough
def test_the_attempts_are_real(campaign: Callable[..., dict[str, Any]]) -> None:
    """As an ordinary user: without the guards the superuser's would harm the machine that the tests run on."""
    outcome = campaign("user", "script", "open")
    assert (outcome["guards"]["files"], outcome["guards"]["calls"]) == (False, False)
    assert {name for name, reached in outcome["reached"].items() if not reached} <= STOPPED_ANYWAY


@thorough
def test_the_ways_to_the_library_are_real(campaign: Callable[..., dict[str, Any]]) -> None:
    reached = campaign("user", "code_curated")["reached"]
    assert reached.keys() == LIBRARY.keys()
    assert {name for name in reached if not reached[name]} <= {"ask the installer's records"}  # a checkout has none


def test_there_are_as_many_as_the_audit_made() -> None:
    assert len(ATTACKS) == 45
