"""Interpreters with the packages that adapters are for."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from finskillbench.edition import Edition

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def foreign(training_edition: Edition) -> Callable[[str, str], Any]:
    """Run a script of this folder in the environment of a package; return the JSON of its last line."""

    def run(package: str, script: str) -> Any:
        python = ROOT / f".venv-{package}" / "bin" / "python"
        if not python.exists():
            pytest.skip(f"{package} is not installed; run make {package}")
        command = [python, Path(__file__).with_name(script), training_edition.path]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout.splitlines()[-1])

    return run
