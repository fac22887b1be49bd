"""`doctor` on a machine that gives everything, and on one without Landlock."""

from __future__ import annotations

import pytest

from finskillbench.cli import main
from finskillbench.harness.skills import runner

GUARDS = ("files", "calls", "network", "processes")


def test_a_whole_machine_fits_a_screen(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(runner, "sandbox_guards", lambda: dict.fromkeys(GUARDS, True))
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines if line.startswith("ok")][-4:] == list(GUARDS)
    assert len(lines) <= 24


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(runner, "sandbox_guards", lambda: dict.fromkeys(GUARDS, True) | {"files": False})
    assert main(["doctor"]) == 1
    (missing,) = [line for line in capsys.readouterr().out.splitlines() if not line.startswith("ok")]
    assert missing.startswith("MISSING  files")
