"""A small edition that has everything an export must not hold, each marked by a value that stands nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path

import orjson
import pytest
from tests.editions import write_edition

from finskillbench.edition import Edition, load_edition
from finskillbench.edition.store import CANARY, write_lines, write_manifest
from finskillbench.episode import Episode, Prompt, Truth

SEED = 7_239_518_460_271_935_846
PLANTED = {
    "truth": "0.372190684",
    "verification": "PLANTED-VERIFICATION",
    "proof": "PLANTED-PROOF",
    "certificate": "PLANTED-CERTIFICATE",
    "stage": "PLANTED-STAGE",
    "catalog": "PLANTED-CATALOG",
    "seed": str(SEED),
    "seed, hexadecimal": f"{SEED:x}",
}
SUBTASKS = {"unconstrained_optimization": "portfolio_construction", "stress_testing": "risk_management"}


def _task(name: str, number: int) -> tuple[Episode, Truth]:
    task_id = f"{name}_{number}"
    given = {"expected_returns": {"A": 0.1 * number, "B": 0.2}, "covariance": {"tickers": ["A"], "ref": "panels/c.npz"}}
    words = Prompt("Do it: “well” — 3 %.", "As JSON.")
    episode = Episode(
        task_id, SUBTASKS[name], name, date(2025, 1, number + 1), "easy", given, words, {"canary": CANARY}
    )
    expected = {"weights": {"A": float(PLANTED["truth"])}}
    truth = Truth(task_id, name, expected, {"method": PLANTED["verification"]}, {"gap": PLANTED["proof"]})
    return episode, truth


@pytest.fixture
def marked(tmp_path: Path) -> Edition:
    """Three episodes of each of two subtasks."""
    tasks = [_task(name, number) for name in SUBTASKS for number in range(3)]
    folder = write_edition(tmp_path / "edition", tasks, certificate={"ray": PLANTED["certificate"]})
    write_lines(folder / "stages" / "stress_testing.jsonl", [{"task_id": "x", "hidden": PLANTED["stage"]}])
    (folder / "catalog").mkdir()
    (folder / "catalog" / "mandate.json").write_text(PLANTED["catalog"])
    manifest = orjson.loads((folder / "manifest.json").read_bytes())
    derived = ("format", "digest", "files", "seal", "seed")
    bare = {name: value for name, value in manifest.items() if name not in derived}
    write_manifest(folder, {**bare, "seed": SEED})
    return load_edition(folder)


@pytest.fixture
def everything() -> Callable[[Path], dict[str, bytes]]:
    """All bytes of a folder by name, Parquet also as what its cells say."""

    def read(folder: Path) -> dict[str, bytes]:
        import polars as pl

        found: dict[str, bytes] = {}
        for path in sorted(each for each in folder.rglob("*") if each.is_file()):
            name = path.relative_to(folder).as_posix()
            found[name] = path.read_bytes()
            if path.suffix == ".parquet":
                found[f"{name}, cells"] = pl.read_parquet(path).write_ndjson().encode()
        return found

    return read
