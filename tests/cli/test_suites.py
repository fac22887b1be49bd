"""Suites that are named on the command line and that no distribution registers."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.registry import DOMAINS

from finskillbench import cli, domains

NOP = ["--model", "baseline/nop", "--condition", "no_skill"]


@pytest.fixture(autouse=True)
def the_paper_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(domains, "suites", lambda: tuple({domain.suite: None for domain in DOMAINS}))


def test_an_unknown_suite_is_refused_with_those_that_there_are(
    edition: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["run", "--edition", str(edition), *NOP, "--suite", "dask"]) == 2
    assert "unknown suite 'dask'; choose from: paper, all" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["run", *NOP], ["data", "build", "--out", "edition"], ["report", "runs/one"]])
def test_a_suite_that_is_not_installed_names_its_install_command(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([*command, "--suite", "desk"]) == 2
    assert (
        "suite 'desk' is not installed; use pip install finskillbench-desk, in a checkout pip install -e "
        "packages/finskillbench-desk"
    ) in capsys.readouterr().err
