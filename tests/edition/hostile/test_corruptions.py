"""Whatever somebody did to an edition: every command ends in one line or in findings, and never blames this package."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from tests.edition.hostile.binaries import ON_ARRAYS, ON_TABLES
from tests.edition.hostile.commands import commands, told
from tests.edition.hostile.corruptions import ON_EPISODES, ON_FILES, ON_THE_MANIFEST, ON_TRUTHS
from tests.edition.hostile.small import reseal
from tests.sampling import THOROUGH, sampled

MOST_MEMORY = 600
"""Megabytes of a process that reads a bomb; one that reads a sound edition takes some 250."""
PLAIN = {
    "a date before all",  # where there are no panels nothing tells of which days they are
    "a date after all",
    "a prompt without an end",  # refused by `run`
    "fields nested deeply",
}
"""What `data validate` need not find."""
UNSEALED = ("manifest", "without an end")
"""What is done after the seal, and would be undone, or read to its end, by another."""

BOMBS = (
    "an archive of gigabytes",
    "an archive that says it is small",
    "a header of nothing, often",
    "a table of one number, often",
)


def _sealing(name: str, alter: Callable[[Path], object]) -> Callable[[Path], None]:
    def altered(folder: Path) -> None:
        alter(folder)
        if not any(words in name for words in UNSEALED):
            reseal(folder)

    return altered


CASES = {
    **{name: ("weights", _sealing(name, alter)) for name, alter in {**ON_FILES, **ON_EPISODES, **ON_TRUTHS}.items()},
    **{name: ("weights", partial(reseal, change=change)) for name, change in ON_THE_MANIFEST.items()},
    **{name: ("weights", _sealing(name, alter)) for name, alter in ON_ARRAYS.items()},
    **{name: ("facts", _sealing(name, alter)) for name, alter in ON_TABLES.items()},
}  # fmt: skip


def test_there_are_as_many_as_were_tried_at_first() -> None:
    assert len(CASES) >= 114
    assert len(CASES) == sum(map(len, (ON_FILES, ON_THE_MANIFEST, ON_EPISODES, ON_TRUTHS, ON_ARRAYS, ON_TABLES)))


def test_the_small_editions_are_sound(sound: Path, tmp_path: Path) -> None:
    assert [told(each)[0] for each in commands(sound / "weights", sound / "weights", tmp_path)] == [0, 0, 2, 0, 0, 0, 0]


def _corrupted(name: str, sound: Path, tmp_path: Path) -> tuple[str, Path]:
    """Which of the small editions it is, and a copy of it to which the corruption was done."""
    kind, alter = CASES[name]
    shutil.copytree(sound / kind, folder := tmp_path / "edition")
    alter(folder)
    return kind, folder


@pytest.mark.parametrize("name", sampled(CASES, 3))
def test_a_corruption_is_told_in_one_line_or_found(name: str, sound: Path, tmp_path: Path) -> None:
    kind, folder = _corrupted(name, sound, tmp_path)
    codes: list[int] = []
    first, second, *others = commands(folder, sound / kind, tmp_path)
    turn = list(CASES).index(name) % len(others)
    for arguments in (first, second, *(others if THOROUGH else others[turn : turn + 1])):
        codes.append(told(arguments)[0])
        if codes == [2, 2]:  # it does not even load: the others read it by the same function
            break
    assert codes[1] in (1, 2) or name in PLAIN, codes


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of memory is read from Linux's /proc")
def test_a_bomb_is_not_unpacked(sound: Path, tmp_path: Path) -> None:
    """One process reads one after another, and says after each what its peak of memory is."""
    pairs: list[str] = []
    for number, name in enumerate(BOMBS):
        kind, folder = _corrupted(name, sound, tmp_path / str(number))
        pairs += [str(sound / kind), str(folder)]
    (script := tmp_path / "read.py").write_text(
        "import sys\n"
        "from finskillbench.cli import main\n"
        "for place in range(1, len(sys.argv), 2):\n"
        "    code = main(['data', 'diff', *sys.argv[place : place + 2]])\n"
        "    peak = [line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')]\n"
        # The peak that getrusage tells is the one of whoever started it, too.
        "    print('bomb', code, int(peak[0]) // 1024)\n"
    )
    ended = subprocess.run(
        [sys.executable, script, *pairs],
        capture_output=True, text=True, timeout=480, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    found = [line.split()[1:] for line in ended.stdout.splitlines() if line.startswith("bomb ")]
    assert [code for code, _ in found] == ["2"] * len(BOMBS)
    peaks = {name: int(megabytes) for name, (_, megabytes) in zip(BOMBS, found, strict=True)}
    assert max(peaks.values()) < MOST_MEMORY, peaks
