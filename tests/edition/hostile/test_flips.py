"""Bytes flipped and values changed at random, then sealed again: no command ends as none may.

`FINSKILLBENCH_FLIPS` says how many; the seed of each is its number.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from random import Random
from typing import Any

import orjson
import pytest
from tests.edition.hostile.commands import commands, told
from tests.edition.hostile.small import reseal

from finskillbench.edition.store import MANIFEST

FLIPS = int(os.environ.get("FINSKILLBENCH_FLIPS", "24"))
OTHERS: tuple[Any, ...] = (
    None, True, 0, -1, 2**63, 1e308, -1e-308, "", "x", "\u202e\x1b[2J", "../..", "2025-02-30",
    [], {}, [[]], {"": 0}, [None],
)  # fmt: skip
"""What a value is changed to: of each JSON type one that is seldom expected."""


def _flip(path: Path, rng: Random) -> None:
    """Flip a bit of one to three bytes."""
    content = bytearray(path.read_bytes())
    for _ in range(rng.choice((1, 1, 3))):
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


def _change(path: Path, rng: Random) -> None:
    """Change, drop or rename one value of a line of JSON, however deep."""
    lines = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    holder: Any = rng.choice(lines)
    while True:
        key: Any = rng.choice(list(holder)) if isinstance(holder, dict) else rng.randrange(len(holder))
        if not holder[key] or not isinstance(holder[key], dict | list) or rng.random() < 0.2:
            break
        holder = holder[key]
    if isinstance(holder, dict) and rng.random() < 0.2:
        value = holder.pop(key)
        if rng.random() < 0.5:
            holder[f"{key}x"] = value
    else:
        holder[key] = rng.choice(OTHERS)
    path.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))


def _change_manifest(folder: Path, rng: Random) -> None:
    path = folder / MANIFEST
    path.write_bytes(orjson.dumps(orjson.loads(path.read_bytes())) + b"\n")
    _change(path, rng)


@pytest.mark.parametrize("seed", range(FLIPS))
def test_what_chance_does_to_an_edition(seed: int, sound: Path, tmp_path: Path) -> None:
    rng = Random(seed)
    kind = rng.choice(("weights", "weights", "facts"))
    folder = tmp_path / "edition"
    shutil.copytree(sound / kind, folder)
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != MANIFEST)
    path = rng.choice(files)
    if rng.random() < 0.1:
        _change_manifest(folder, rng)
    elif path.suffix == ".jsonl" and rng.random() < 0.8:
        _change(path, rng)
    else:
        _flip(path, rng)
    reseal(folder)
    chosen = commands(folder, sound / kind, tmp_path)
    for arguments in (*chosen[:2], rng.choice(chosen[2:])):
        if told(arguments)[0] == 2 and arguments is chosen[1]:
            break
