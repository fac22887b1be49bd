"""Sets up targets as the user it is started as, lets every attack loose on them, and prints what each reached.

`python driver.py FOLDER WAY [open]`: FOLDER is made for it; WAY is how the attacks come in: as the `script` of a
package, as the `code` of an agent, or as that of one who has the library (`code_curated`); `open` takes the guards
away, to show that the attacks are real. Prints the guards, and for each attack "" or how it got through.
"""

import asyncio
import contextlib
import ctypes
import hashlib
import json
import os
import resource
import secrets
import socket
import subprocess
import sys
import sysconfig
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from attacks import ATTACKS, LIBRARY, PRELUDE

import finskillbench
from finskillbench.harness.tools.interpreters import Interpreter, code_runner
from finskillbench.sandbox.limits import ScriptLimits
from finskillbench.sandbox.runner import ScriptRunner

OPEN = """
import os
from script_server import child
from script_server.guards import calls, confine
def none(*arguments): raise confine.ConfineError("taken away")
confine.landlock_version = lambda: 0
calls.restrict = confine._set_mounts = none
send_request, read = child.send_request, []
def reading(channel, request, descriptors):
    read.append(os.pread(descriptors[0], 1 << 20, 0))
    send_request(channel, request, descriptors)
child.send_request = reading
"""
HOLDER = """
import ctypes, time
def attack(t):
    ctypes.CDLL(None).prctl(15, b"holder", 0, 0, 0)
    time.sleep(600)
"""
MAIN = "\ndef main(t):\n    return {'reached': attack(t)}\n"


class Targets:
    """What must stay as it is: files, processes, listeners, shared memory."""

    def __init__(self, folder: Path) -> None:
        self.secret = f"HOLDER-{secrets.token_hex(16)}"
        self.cwd, self.search = folder / "cwd", folder / "search"
        self.package = folder / "package" / "scripts"
        for made in (self.cwd, self.search, self.package):
            made.mkdir(parents=True)
        truth, beside, library = self.cwd / "truth.jsonl", self.search / "beside.jsonl", self.search / "library.py"
        self.timed = self.search / "timed.py"
        self.shared = Path(f"/dev/shm/redteam-{os.getpid()}")
        self.files = (truth, beside, library, self.cwd / "caller_module.py", self.shared)
        (self.search / "opened.py").write_text(OPEN)
        self.victim = subprocess.Popen(["sleep", "600"])
        self.listeners = [socket.socket(socket.AF_UNIX) for _ in range(2)]
        self.listeners += [socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM), socket.socket()]
        self.listeners.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        abstract = f"\0redteam-{os.getpid()}"
        addresses = (str(folder / "agent"), abstract, str(folder / "datagram"), ("127.0.0.1", 0), ("127.0.0.1", 0))
        for listener, address in zip(self.listeners, addresses, strict=True):
            listener.bind(address)
            if listener.type == socket.SOCK_STREAM:
                listener.listen()
        folder.chmod(0o755)
        for path in ("agent", "datagram"):
            (folder / path).chmod(0o777)
        self.key = os.getpid() * 4
        libc = ctypes.CDLL(None)
        self.ids = (
            libc.shmget(self.key, 4096, 0o1666),
            libc.msgget(self.key, 0o1666),
            libc.semget(self.key, 1, 0o1666),
        )
        self.named: dict[str, Any] = {
            "truth": str(truth),
            "beside": str(beside),
            "library": str(library),
            "timed": str(self.timed),
            "cwd": str(self.cwd),
            "package": str(self.package.parent),
            "shared": str(self.shared),
            "socket": addresses[0],
            "abstract": abstract,
            "datagram": addresses[2],
            "port": self.listeners[3].getsockname()[1],
            "udp": self.listeners[4].getsockname()[1],
            "key": self.key,
            "owner": os.getpid(),
            "victim": self.victim.pid,
            "library_folder": str(Path(finskillbench.__file__).parent),
            "installed": sysconfig.get_path("purelib"),
            "digest": hashlib.sha256(self.secret.encode()).hexdigest(),
        }
        self.restore()

    def restore(self) -> None:
        """Put the files there as they were at first."""
        for file in self.files:
            file.write_text("SECRET = 'truth'\n")
            file.chmod(0o666)
        self.timed.write_text("")
        os.utime(self.timed, (1, 1))

    def state(self) -> list[object]:
        """Everything that an attack could have changed."""
        there = [file for file in self.files if file.exists()]
        files = [(file, file.stat().st_mode, file.stat().st_mtime_ns, file.read_text()) for file in there]
        folders = [sorted(path.name for path in folder.iterdir()) for folder in (self.cwd, self.search, self.package)]
        limits = [resource.prlimit(pid, resource.RLIMIT_CORE) for pid in (os.getpid(), self.victim.pid)]
        return [files, folders, limits, self.victim.poll()]

    def heard(self) -> bool:
        """Whether a message has come to a listener; it counts once."""
        heard = False
        for listener in self.listeners:
            listener.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while True:
                    listener.accept()[0].close() if listener.type == socket.SOCK_STREAM else listener.recv(9)
                    heard = True
        return heard

    def close(self) -> None:
        """Take everything down that does not go with this process."""
        self.victim.kill()
        self.shared.unlink(missing_ok=True)
        libc = ctypes.CDLL(None)
        libc.shmctl(self.ids[0], 0, None)
        libc.msgctl(self.ids[1], 0, None)
        libc.semctl(self.ids[2], 0, 0)


Call = Callable[[Path, dict[str, Any]], Awaitable[tuple[Any, str]]]
"""Runs the function `attack` in a file on an object: what it returned, and its error."""


def way_in(way: str, runner: ScriptRunner) -> Call:
    """How a piece of code gets in."""

    async def script(file: Path, payload: dict[str, Any]) -> tuple[Any, str]:
        result = await runner.run(file, json.dumps(payload).encode())
        return result.output and result.output["reached"], result.error or ""

    async def code(file: Path, payload: dict[str, Any]) -> tuple[Any, str]:
        ran = await Interpreter(runner).run(f"{file.read_text()}\nattack(t)\n", {"t": payload}, {})
        return ran.value, ran.error or ""

    return script if way == "script" else code


async def attack(runner: ScriptRunner, way: str, targets: Targets) -> dict[str, str]:
    """What each attack reached, "" for nothing."""
    call = way_in(way, runner)
    holder = targets.package / "holder.py"
    holder.write_text(HOLDER + MAIN)
    waiting = asyncio.ensure_future(call(holder, {"secret": [targets.secret] * 20}))
    while not (others := _children(runner, "holder")):
        await asyncio.sleep(0.01)
    found: dict[str, str] = {}
    attacks = ATTACKS if way == "script" else LIBRARY if way == "code_curated" else {**ATTACKS, **LIBRARY}
    for number, (name, body) in enumerate(attacks.items()):
        file = targets.package / f"attack{number}.py"
        file.write_text(f"{PRELUDE}def attack(t):\n{_indented(body)}{MAIN}")
        targets.restore()
        server, before = runner.server_pid, targets.state()
        payload = {**targets.named, "server": server, "other": others[0]}
        results = [await call(file, payload) for _ in range(2)]
        said = next((str(reached) for reached, _ in results if reached), "")
        if targets.state() != before or targets.heard():
            said = said or "its target is not as it was"
        if runner.server_pid != server or waiting.done():
            raise SystemExit(f"{name}: took down what the others need")
        if any("exit code 77" in error for _, error in results):
            said = "ran another program"
        found[name] = said
    waiting.cancel()
    return found


def _indented(body: str) -> str:
    return "".join(f"    {line}\n" for line in body.split("\n"))


def _children(runner: ScriptRunner, name: str) -> list[int]:
    listing = Path(f"/proc/{runner.server_pid}/task/{runner.server_pid}/children").read_text().split()
    return [int(pid) for pid in listing if Path(f"/proc/{pid}/comm").read_text().strip() == name]


def main() -> None:
    """Attack, and print what came of it as JSON."""
    targets = Targets(Path(sys.argv[1]))
    os.chdir(targets.cwd)
    # An empty part, as `PYTHONPATH=$PYTHONPATH:folder` makes it.
    os.environ["PYTHONPATH"] = os.pathsep.join((os.environ.get("PYTHONPATH", ""), "", str(targets.search)))
    os.environ["PLANTED_API_KEY"] = "planted-key"
    way, limits, trusted = sys.argv[2], ScriptLimits(wall_seconds=300.0), [Path("/")]
    if way == "script":
        runner = ScriptRunner(limits, 2, preload=("opened",) * ("open" in sys.argv), trusted=trusted)
    else:
        runner = code_runner(with_library=way == "code_curated", limits=limits, trusted=trusted)
    try:
        with runner:
            reached = asyncio.run(attack(runner, way, targets))
            print(json.dumps({"guards": dict(runner.guards), "user": os.getuid(), "reached": reached}))
    finally:
        targets.close()


if __name__ == "__main__":
    main()
