"""Every command that reads an edition, and how each may end."""

from __future__ import annotations

import json
import signal
from collections.abc import Generator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from types import FrameType

from finskillbench.cli import main
from finskillbench.edition import load_edition

LONGEST = 30
"""Seconds that no command may take on a small edition."""


def commands(edition: Path, sound: Path, out: Path) -> list[list[str]]:
    """The commands, those first that tell a wrong edition soonest; `sound` is what it was before."""
    answers = out / "answers.jsonl"
    if not answers.exists():
        bench = load_edition(sound)
        rows = [(one.task_id, json.dumps(bench.truth(one.task_id).expected_output)) for one in bench.episodes()]
        answers.write_text("".join(json.dumps({"task_id": name, "answer": text}) + "\n" for name, text in rows))
    nop = ["--model", "baseline/nop", "--condition", "no_skill", "--limit", "1"]
    return [
        ["data", "info", f"{edition}"],
        ["data", "validate", f"{edition}"],
        ["data", "diff", f"{sound}", f"{edition}"],
        ["score", f"{edition}", f"{answers}", "--out", f"{out / 'rows.jsonl'}"],
        ["run", "--edition", f"{edition}", *nop, "--out", f"{out / 'run'}"],
        ["plan", "--edition", f"{edition}", "--model", "baseline/heuristic", "--condition", "no_skill", "--limit", "1"],
        ["audit", f"{edition}", "--check", "certified"],
    ]


def told(arguments: Sequence[str]) -> tuple[int, list[str]]:
    """The exit code of a command and its errors; an AssertionError where it ends as no command may."""
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err), _within(LONGEST, arguments):
        code = main(arguments)
    lines = err.getvalue().splitlines()
    errors = [line for line in lines if line.startswith("error: ")]
    assert code in (0, 1, 2), (code, arguments)
    assert len(errors) == (code == 2), (arguments, lines)
    assert not any("a bug in finskillbench" in line or "Traceback" in line for line in lines), (arguments, lines)
    assert not errors or lines[-1] == errors[0], (arguments, lines)
    assert all(len(line) < 2000 for line in errors), (arguments, errors)
    return code, errors


@contextmanager
def _within(seconds: int, arguments: Sequence[str]) -> Generator[None]:
    def late(number: int, frame: FrameType | None) -> None:
        raise AssertionError(f"{arguments} takes more than {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
