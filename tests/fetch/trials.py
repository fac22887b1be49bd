"""Fetches that something goes wrong with, at a place drawn by seed, and what must be true of them afterwards.

Of every trial: what is on disk after the fault is whole and written down; nothing can be built of it; the same command
then completes it, asks for nothing that was there, and comes to the same bytes as a fetch that nothing befell.
"""

from __future__ import annotations

import errno
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from tests.fetch.conftest import AGENT, contents, wish
from tests.fetch.internet import FAULTS, IMPATIENT, PATIENT, SLOW, Internet
from tests.fetch.world import World

from finskillbench.errors import DownloadError, SourceError
from finskillbench.fetch.collect import fetch_collection
from finskillbench.fetch.configuration import Window
from finskillbench.sources.fetched import PARTS_FOLDER, digest_of_file, read_journal, verify_collection

KINDS = (*FAULTS, "killed", "disk full", "altered")
"""What may befall a fetch: what goes wrong with a request, the end of its process, a full disk, a hand on its files."""


@dataclass(frozen=True)
class Trial:
    """What befell a fetch and what came of it; `broken` says what should be true and is not."""

    kind: str
    lasting: bool
    at: int
    ended: str
    resumed: int
    twice: int
    broken: tuple[str, ...]


class Course:
    """Trials over the same names, each held against a fetch that nothing befell."""

    def __init__(self, world: World, folder: Path, names: list[str], window: Window) -> None:
        self._world, self._folder, self._names, self._window = world, folder, names, window
        folder.mkdir(parents=True, exist_ok=True)
        with Internet(world) as net:
            self._fetch(net, folder / "whole")
            self.requests = len(net.asked)
        self._whole = contents(folder / "whole" / "raw")

    def run(self, number: int, seed: int) -> Trial:
        """Trial so-and-so: its kind goes in turn, its place is drawn."""
        draw = random.Random(f"{seed}/{number}")
        kind = KINDS[number % len(KINDS)]
        at, lasting = draw.randrange(self.requests), draw.random() < 0.5
        folder = self._folder / f"trial-{number}"
        with Internet(self._world) as net:
            ended = self._break(net, folder, kind, at, lasting, draw)
            broken = [] if kind == "altered" else _after_the_fault(folder / "raw")
            held = _held(folder / "raw", net)
            net.fault = lambda url, times: ""
            net.asked.clear()
            self._fetch(net, folder)
            twice = sum(held.get(one.url, 0) for one in net.asked)
            resumed = len(net.asked)
        if twice:
            broken.append(f"{twice} questions for what was there")
        if contents(folder / "raw") != self._whole:
            broken.append("other files than those of a fetch that nothing befell")
        if ended.startswith(("built from", "exit code 1", "exit code 2")):
            broken.append(ended)
        return Trial(kind, lasting, at, ended, resumed, twice, tuple(broken))

    def _break(self, net: Internet, folder: Path, kind: str, at: int, lasting: bool, draw: random.Random) -> str:
        if kind == "killed":
            return self._kill(net, folder, at, draw.random() * 0.05)
        if kind == "disk full":
            return self._fill(net, folder, at)
        if kind == "altered":
            self._fetch(net, folder)
            return _alter(folder / "raw", draw)
        net.fault = _Counter(at, kind, lasting)
        net.patience = IMPATIENT if kind in SLOW else PATIENT
        ended = self._try(net, folder)
        net.patience = PATIENT
        return ended

    def _try(self, net: Internet, folder: Path) -> str:
        try:
            self._fetch(net, folder)
        except (DownloadError, OSError) as error:
            return f"{error}"
        return "done"

    def _fetch(self, net: Internet, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        (folder / "names.txt").write_text("\n".join(self._names))
        fetch_collection(folder / "raw", wish(net, folder, window=self._window))

    def _fill(self, net: Internet, folder: Path, at: int) -> str:
        """The disk is full from a write on: what was written last lacks its end, and no more comes."""
        real, writes = os.fsync, iter(range(10**9))

        def fsync(file: int) -> None:
            if next(writes) >= at:
                os.ftruncate(file, max(0, os.fstat(file).st_size - 7))
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            real(file)

        with mock.patch("os.fsync", fsync):
            return self._try(net, folder)

    def _kill(self, net: Internet, folder: Path, at: int, delay: float) -> str:
        """kill -9 of the command, some moment after its so-manieth question."""
        folder.mkdir()
        (folder / "names.txt").write_text("\n".join(self._names))
        count = iter(range(10**9))
        due = threading.Event()

        def fault(url: str, times: int) -> str:
            del url, times
            if next(count) == at:
                due.set()
            return ""

        net.fault = fault
        months = [f"{day:%Y-%m}" for day in (self._window.first, self._window.last)]
        program = "import sys; from finskillbench.cli import main; sys.exit(main())"
        command = [sys.executable, "-c", program, "data", "fetch", "--from", months[0], "--to", months[1]]
        command += ["--universe", str(folder / "names.txt"), "--out", str(folder / "raw"), "--user-agent", AGENT]
        command += ["--config", str(net.configuration(folder))]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            due.wait(60)
            threading.Event().wait(delay)
            process.send_signal(signal.SIGKILL)
            code = process.wait()
        return "killed" if code == -signal.SIGKILL else f"exit code {code}"


class _Counter:
    """Lets the so-manieth question go wrong, once or whenever it is asked."""

    def __init__(self, at: int, kind: str, lasting: bool) -> None:
        self._at, self._kind, self._lasting = at, kind, lasting
        self._count = 0
        self._url = ""

    def __call__(self, url: str, times: int) -> str:
        if not self._url and times == 0:
            self._count += 1
            if self._count > self._at:
                self._url = url
                return self._kind
        return self._kind if self._lasting and url == self._url else ""


def _after_the_fault(raw: Path) -> list[str]:
    """What is wrong with a folder after a fault, if anything."""
    if not (raw / "provenance.jsonl").exists():
        return [
            f"{path} without a journal" for path in raw.rglob("*") if path.is_file() and PARTS_FOLDER not in path.parts
        ]
    journal = read_journal(raw)
    assert journal is not None
    wrong: list[str] = []
    for path in raw.rglob("*"):
        name = path.relative_to(raw).as_posix()
        if not path.is_file() or name.startswith((PARTS_FOLDER, "provenance.")):
            continue
        entry = journal.entries.get(name)
        if entry is None or entry.sha256 != digest_of_file(path):
            wrong.append(f"{name} is half a file")
    if journal.request.complete:
        return wrong
    try:
        verify_collection(raw, [])
    except SourceError:
        return wrong
    return [*wrong, "an incomplete collection can be built"]


def _held(raw: Path, net: Internet) -> Mapping[str, int]:
    """Addresses whose answers are there, each once."""
    journal = read_journal(raw) if (raw / "provenance.jsonl").exists() else None
    there: dict[str, int] = {}
    for entry in journal.entries.values() if journal is not None else ():
        place = raw / entry.path
        beside = raw / PARTS_FOLDER
        whole = place.is_file() and digest_of_file(place) == entry.sha256
        waiting = any(digest_of_file(one) == entry.sha256 for one in beside.glob("*.new"))
        if whole or waiting:
            there |= {_asked(origin.url, net): 1 for origin in entry.origins if origin.url.startswith("http")}
    return there


def _asked(url: str, net: Internet) -> str:
    """An address as the server writes down that it was asked."""
    path, _, query = url.removeprefix(net.url).partition("?")
    return path + ("?" + query.replace("%2C", ",") if query else "")


def _alter(raw: Path, draw: random.Random) -> str:
    """Cut one file of a complete collection short, by hand."""
    journal = read_journal(raw)
    assert journal is not None
    made = sorted(path for path, entry in journal.entries.items() if entry.origins and not entry.absent)
    victim = raw / draw.choice(made)
    victim.write_bytes(victim.read_bytes()[:-7])
    try:
        verify_collection(raw, [])
    except SourceError:
        return f"refused: {victim.relative_to(raw)}"
    return "built from an altered file"
