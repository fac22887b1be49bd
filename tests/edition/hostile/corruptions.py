"""What somebody may do to an edition and seal again: each entry alters a folder, and its manifest is then made to fit.

`ON_FILES` alter the folder, `ON_THE_MANIFEST` what it says, `ON_LINES` one line of JSON, `ON_ARRAYS` a covariance and
`ON_TABLES` a panel.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.edition.hostile.small import COVARIANCE, Row

from finskillbench.edition.store import read_lines, write_lines

REBALANCING, STRESS = "rebalancing", "stress_testing"
Alter = Callable[[Path], None]
Change = Callable[[Row], Any]


def _raw(name: str, content: bytes) -> Alter:
    return lambda folder: _write(folder / name, content)


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _link(name: str, target: str) -> Alter:
    def alter(folder: Path) -> None:
        path = folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        path.symlink_to(target)

    return alter


def _pipe(name: str) -> Alter:
    def alter(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        os.mkfifo(folder / name)

    return alter


def _folder(name: str) -> Alter:
    def alter(folder: Path) -> None:
        (folder / name).unlink()
        (folder / name).mkdir()

    return alter


def _sparse(name: str, size: int) -> Alter:
    return lambda folder: os.truncate(folder / name, size)


def _moved(source: str, target: str) -> Alter:
    return lambda folder: shutil.move(folder / source, folder / target)


_EPISODES, _TRUTH, _CERTIFICATES = (f"{part}/{REBALANCING}.jsonl" for part in ("episodes", "truth", "certificates"))

ON_FILES: Mapping[str, Alter] = {
    "a pipe for the manifest": _pipe("manifest.json"),
    "a pipe for the episodes": _pipe(_EPISODES),
    "a pipe for a truth": _pipe(_TRUTH),
    "a pipe for a covariance": _pipe(COVARIANCE),
    "a pipe beside the files": _pipe("truth/notes"),
    "a link for the manifest": _link("manifest.json", "/etc/hostname"),
    "a link for the episodes": _link(_EPISODES, "/etc/hostname"),
    "a link to an endless file": _link(_EPISODES, "/dev/zero"),
    "a link for a covariance": _link(COVARIANCE, "/etc/hostname"),
    "a link that leads nowhere": _link(_TRUTH, "nowhere"),
    "a link to itself": _link(_TRUTH, f"{REBALANCING}.jsonl"),
    "a link for the truth": _link("truth", "/etc"),
    "a link to the folder above": _link("more", ".."),
    "a folder for the manifest": _folder("manifest.json"),
    "a folder for the episodes": _folder(_EPISODES),
    "a folder for a certificate": _folder(_CERTIFICATES),
    "episodes without an end": _sparse(_EPISODES, 2**40),
    "episodes of zeros": _sparse(_EPISODES, 2**25),
    "a manifest without an end": _sparse("manifest.json", 2**40),
    "no manifest": lambda folder: (folder / "manifest.json").unlink(),
    "an empty manifest": _raw("manifest.json", b""),
    "a manifest of another encoding": _raw("manifest.json", '{"format": 1}'.encode("utf-16")),
    "a manifest that is an array": _raw("manifest.json", b"[]"),
    "a manifest of brackets": _raw("manifest.json", b"[" * 100_000),
    "no episodes of a subtask": lambda folder: (folder / _EPISODES).unlink(),
    "no truth of a subtask": lambda folder: (folder / _TRUTH).unlink(),
    "no certificates of a subtask": lambda folder: (folder / _CERTIFICATES).unlink(),
    "no covariance": lambda folder: (folder / COVARIANCE).unlink(),
    "empty episodes": _raw(_EPISODES, b""),
    "an empty truth": _raw(_TRUTH, b""),
    "truth of another subtask": _moved(f"truth/{STRESS}.jsonl", _TRUTH),
}


def _set(*keys: str, to: Any) -> Change:
    """Set a field, however deep."""

    def change(row: Row) -> None:
        for key in keys[:-1]:
            row = row[key]
        row[keys[-1]] = to

    return change


def _drop(*keys: str) -> Change:
    def change(row: Row) -> None:
        for key in keys[:-1]:
            row = row[key]
        del row[keys[-1]]

    return change


def _deep(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


ON_THE_MANIFEST: Mapping[str, Change] = {
    "no counts": _drop("counts"),
    "counts of nothing": _set("counts", to={}),
    "a negative count": _set("counts", REBALANCING, to=-1),
    "a count that is text": _set("counts", REBALANCING, to="1"),
    "a count beyond every integer": _set("counts", REBALANCING, to=2**64 - 1),
    "a count of others": _set("counts", REBALANCING, to=7),
    "a subtask of a path": _set("counts", "../truth/rebalancing", to=1),
    "a subtask of a folder": _set("counts", "a/b", to=1),
    "a subtask with a line break": _set("counts", "a\nb", to=1),
    "a subtask that nobody knows": _set("counts", "alchemy", to=1),
    "no universe": _drop("universe"),
    "a universe of numbers": _set("universe", to=[1, 2]),
    "dates that are none": _set("as_of_dates", to=["2025-02-30"]),
    "dates of no calendar": _set("as_of_dates", to=["99999-01-01"]),
    "a seed that is text": _set("seed", to="1"),
    "a seed beyond every integer": _set("seed", to=2**64 - 1),
    "a negative seed": _set("seed", to=-1),
    "a seed that is a fraction": _set("seed", to=1.5),
    "a source without a kind": _set("source", to={}),
    "a source that is a list": _set("source", to=[]),
    "parameters that are text": _set("parameters", to="none"),
    "parameters of a number": _set("parameters", to={"portfolio": 1}),
    "notes that are none": _set("notes", to=None),
    "versions of numbers": _set("versions", to={"numpy": 2}),
    "fields nested deeply": _set("parameters", "x", to={"y": _deep(240)}),
    "work that is text": _set("work", to={REBALANCING: "hard"}),
    "subtasks of numbers": _set("subtasks", to=[1]),
}


def _on(part: str, change: Change, sub_task: str = REBALANCING) -> Alter:
    """Change the one line of a file."""

    def alter(folder: Path) -> None:
        path = folder / part / f"{sub_task}.jsonl"
        rows = list(read_lines(path))
        change(rows[0])
        write_lines(path, rows)

    return alter


def _twice(part: str) -> Alter:
    def alter(folder: Path) -> None:
        path = folder / part / f"{REBALANCING}.jsonl"
        path.write_bytes(path.read_bytes() * 2)

    return alter


def _text(part: str, content: bytes) -> Alter:
    return _raw(f"{part}/{REBALANCING}.jsonl", content)


def _renamed(to: Any) -> Alter:
    """Another task id in all three files."""

    def alter(folder: Path) -> None:
        for part in ("episodes", "truth", "certificates"):
            _on(part, _set("task_id", to=to))(folder)

    return alter


_COVARIANCE, _HOLDINGS = ("input", "covariance_matrix"), ("input", "portfolio", "holdings")

ON_EPISODES: Mapping[str, Alter] = {
    "an id of a path": _renamed("../../outside"),
    "an absolute id": _renamed("/tmp/outside"),
    "an id with a null": _renamed("pc_rebal_\0"),
    "an id with a line break": _renamed("pc_rebal\nerror: none"),
    "an empty id": _renamed(""),
    "an id of two dots": _renamed(".."),
    "an id without an end": _renamed("pc_rebal_" + "x" * 5000),
    "an id that is a number": _renamed(5),
    "an id that occurs twice": _twice("episodes"),
    "another subtask than its file": _on("episodes", _set("sub_task", to="normalization")),
    "a subtask that is unknown": _on("episodes", _set("sub_task", to="alchemy")),
    "a skill that is unknown": _on("episodes", _set("skill", to="alchemy")),
    "a skill of a path": _on("episodes", _set("skill", to="../../etc")),
    "a date of no calendar": _on("episodes", _set("as_of_date", to="2025-13-01")),
    "a date before all": _on("episodes", _set("as_of_date", to="0001-01-01")),
    "a date after all": _on("episodes", _set("as_of_date", to="9999-12-31")),
    "a difficulty that is a number": _on("episodes", _set("difficulty", to=3)),
    "an input that is a list": _on("episodes", _set("input", to=[])),
    "an empty input": _on("episodes", _set("input", to={})),
    "metadata that is text": _on("episodes", _set("metadata", to="none")),
    "a prompt without words": _on("episodes", _set("prompt", to={})),
    "a prompt without an end": _on("episodes", _set("prompt", "task_description", to="x" * 2_000_000)),
    "episodes that are no JSON": _text("episodes", b"{\n"),
    "episodes of another encoding": _text("episodes", b"\xff\xfe{}\n"),
    "episodes of NaN": _text("episodes", b'{"task_id": NaN}\n'),
    "an episode nested too deeply": _text("episodes", b'{"input": ' + b"[" * 500 + b"]" * 500 + b"}\n"),
    "an episode of brackets": _text("episodes", b"[" * 5000 + b"]" * 5000 + b"\n"),
    "an episode that is an array": _text("episodes", b"[1]\n"),
    "an input nested too deeply": _on("episodes", _set("input", "conventions", to=_deep(250))),
    "an input nested deeply": _on("episodes", _set("input", "conventions", to=_deep(200))),
    "a reference out of the folder": _on("episodes", _set(*_COVARIANCE, "ref", to="../../../etc/passwd")),
    "an absolute reference": _on("episodes", _set(*_COVARIANCE, "ref", to="/etc/passwd")),
    "a reference to the truth": _on("episodes", _set(*_COVARIANCE, "ref", to=_TRUTH)),
    "a reference to facts that are not there": _on("episodes", _set(*_COVARIANCE, "ref", to="panels/facts.parquet")),
    "a reference that is a list": _on("episodes", _set(*_COVARIANCE, "ref", to=[])),
    "tickers that are not there": _on("episodes", _set(*_COVARIANCE, "tickers", to=["NOBODY"])),
    "a ticker ten thousand times": _on("episodes", lambda row: _repeat(row["input"]["covariance_matrix"])),
    "tickers of numbers": _on("episodes", _set(*_COVARIANCE, "tickers", to=[1, 2])),
    "a window of a covariance": _on("episodes", lambda row: row["input"]["covariance_matrix"].update(end="x")),
    "expected returns that are text": _on("episodes", _set("input", "expected_returns", to="high")),
    "expected returns of nobody": _on("episodes", _set("input", "expected_returns", to={})),
    "a limit that is text": _on("episodes", _set("input", "constraints", to="none")),
    "an objective that is unknown": _on("episodes", _set("input", "objective", to="luck")),
    "holdings that are numbers": _on("episodes", _set(*_HOLDINGS, to=[1, 2]), STRESS),
    "a weight beyond all numbers": _on("episodes", lambda row: row["input"]["portfolio"]["holdings"][0].update(
        weight=1e308), STRESS),
    "a scenario that is null": _on("episodes", _set("input", "stress_scenario", to=None), STRESS),
}  # fmt: skip


def _repeat(covariance: Row) -> None:
    covariance["tickers"] = covariance["tickers"][:1] * 10_000


ON_TRUTHS: Mapping[str, Alter] = {
    "a truth of another task": _on("truth", _set("task_id", to="pc_rebal_other")),
    "a truth of another kind": _on("truth", _set("sub_task", to=STRESS)),
    "a truth of an unknown kind": _on("truth", _set("sub_task", to="alchemy")),
    "a truth that occurs twice": _twice("truth"),
    "a truth without an answer": _on("truth", _set("expected_output", to={})),
    "a truth that is text": _on("truth", _set("expected_output", to="buy")),
    "weights that are text": _on("truth", _set("expected_output", "new_weights", to="all")),
    "weights of nobody": _on("truth", _set("expected_output", "new_weights", to={"NOBODY": 1.0})),
    "weights that are null": _on("truth", _set("expected_output", "new_weights", to=None)),
    "a turnover beyond all numbers": _on("truth", _set("expected_output", "turnover", to=1e308)),
    "no proof": _on("truth", _set("proof", to={})),
    "a proof that is text": _on("truth", _set("proof", to="yes")),
    "a proof of nothing": _on("truth", _set("proof", to={"kind": "optimal"})),
    "no verification": _on("truth", _set("verification", to={})),
    "a verification that is a list": _on("truth", _set("verification", to=[])),
    "no required value": _on("truth", _drop("verification", "required_value")),
    "a required value that is text": _on("truth", _set("verification", "required_value", to="low")),
    "a required value that is null": _on("truth", _set("verification", "required_value", to=None)),
    "a required value that nothing reaches": _on("truth", _set("verification", "required_value", to=-9.0)),
    "no least cost": _on("truth", _drop("verification", "least_cost_bps")),
    "a least cost of nothing": _on("truth", _set("verification", "least_cost_bps", to=0.0)),
    "a method that is unknown": _on("truth", _set("verification", "method", to="guesswork")),
    "a truth nested too deeply": _on("truth", _set("expected_output", "new_weights", to=_deep(250))),
    "a certificate of another task": _on("certificates", _set("task_id", to="pc_rebal_other")),
    "a certificate without a task": _on("certificates", _drop("task_id")),
    "a certificate that is text": _on("certificates", _set("certificate", to="yes")),
    "an empty certificate": _on("certificates", _set("certificate", to={})),
    "multipliers that are text": _on("certificates", _set("certificate", "stage_1", "multipliers", to="none")),
    "too few multipliers": _on("certificates", _set("certificate", "stage_1", "multipliers", to=[0.0])),
    "weights of another length": _on("certificates", _set("certificate", "stage_1", "weights", to=[1.0])),
    "programs without an end": _on("certificates", _set("certificate", "stage_1", "programs_solved", to=10**18)),
    "certificates that are no JSON": _text("certificates", b"\x00\n"),
}  # fmt: skip
