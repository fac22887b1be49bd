"""Interpreters with a small agent in the place of Hermes, and one with the real Hermes where it is installed."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from finskillbench.errors import InputError
from finskillbench.integrations.hermes import VERSION, hermes_python

STUB = Path(__file__).with_name("stub")


@pytest.fixture
def stub(tmp_path: Path) -> Callable[..., Path]:
    """The path of an interpreter whose Hermes does something wrong, or nothing, and is of some version."""

    def make(wrong: str = "", version: str = VERSION) -> Path:
        folder = tmp_path / f"hermes-{wrong}"
        shutil.copytree(STUB, folder, ignore=shutil.ignore_patterns("__pycache__"))
        metadata = folder / f"hermes_agent-{version}.dist-info" / "METADATA"
        metadata.parent.mkdir()
        metadata.write_text(f"Metadata-Version: 2.1\nName: hermes-agent\nVersion: {version}\n")
        python = folder / "python"
        start = shlex.join([sys.executable, "-I", str(folder / "interpreter.py")])
        python.write_text(f'#!/bin/sh\nSTUB={wrong} exec {start} "$@"\n')
        python.chmod(0o755)
        return python

    return make


@pytest.fixture(scope="session")
def real_hermes() -> Path:
    """The interpreter of the real Hermes."""
    try:
        return hermes_python()
    except InputError as error:
        pytest.skip(str(error))
