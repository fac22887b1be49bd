"""Whatever stands in the files of a collection, examining it ends in findings."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.sampling import thorough

from finskillbench.sources.raw.doctor import diagnose_raw_files, write_template

TRIES = 120
CELLS = ("", "-1", "0", "x", "nan", "inf", "1e400", "2024-13-01", "20240101", '"', "é", "-99.99", ".")
VALUES = (None, True, -1, 1e308, "", "x", "2024-13-01", [], {}, [None], {"a": 1}, 10**30)


def _json(text: str, rng: random.Random) -> bytes:
    """A value anywhere in the document replaced by another, or taken out."""
    record = json.loads(text)
    for _ in range(rng.randint(1, 3)):
        part, place = record, None
        while isinstance(part, dict | list) and part and (place is None or rng.random() < 0.8):
            holder, place = part, rng.choice(list(part) if isinstance(part, dict) else range(len(part)))
            part = part[place]
        if place is not None and rng.random() < 0.3:
            del holder[place]
        elif place is not None:
            holder[place] = rng.choice(VALUES)
    return json.dumps(record).encode()


def _csv(text: str, rng: random.Random) -> bytes:
    """Cells replaced, a row with one too many, rows in another order."""
    rows = [row.split(",") for row in text.splitlines()]
    for _ in range(rng.randint(1, 3)):
        row = rng.choice(rows)
        row[rng.randrange(len(row))] = rng.choice(CELLS)
    if rng.random() < 0.2:
        rng.choice(rows).append("7")
    if rng.random() < 0.2:
        rng.shuffle(rows)
    return "\n".join(map(",".join, rows)).encode()


def _bytes(text: str, rng: random.Random) -> bytes:
    """A byte changed, a stretch left out, or the end cut off."""
    data = bytearray(text.encode())
    at = rng.randrange(len(data))
    data[at : at + rng.choice((1, 40, len(data)))] = rng.choice((b"", b"\x00", b"\xff", b"<"))
    return bytes(data)


@thorough
@pytest.mark.slow
@pytest.mark.parametrize("damaged", [_json, _csv, _bytes], ids=["json", "csv", "bytes"])
def test_no_damage_ends_it(damaged: Callable[[str, random.Random], bytes], tmp_path: Path) -> None:
    """Two files damaged at a time; that the files are found wrong at all is asked of the whole."""
    write_template(tmp_path / "raw")
    suffix = {_json: ".json", _csv: ".csv"}.get(damaged, "")
    names = [path for path in sorted((tmp_path / "raw").rglob(f"*{suffix}")) if path.is_file() and path.suffix != ".md"]
    rng, found = random.Random(7), 0
    for _ in range(TRIES // 3):
        kept = {path: path.read_text() for path in rng.sample(names, 2)}
        for path, text in kept.items():
            path.write_bytes(damaged(text, rng))
        # Two findings are of the template: it is too small.
        found += len(diagnose_raw_files(tmp_path / "raw").findings) > 2
        for path, text in kept.items():
            path.write_text(text)
    assert found > TRIES // 6
