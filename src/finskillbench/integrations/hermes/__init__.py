"""The Nous Research Hermes Agent as a second harness: its own loop and tools for skills, our models and toolbox.

Hermes pins versions of libraries that ours do not bear, so it lives in an environment and in processes of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from finskillbench.errors import InputError

VERSION = "0.19.0"
"""The frozen release; another one would be another agent."""
VARIABLE = "FINSKILLBENCH_HERMES_PYTHON"
"""Names the interpreter of the environment that Hermes is installed in."""
REMEDY = f"run make hermes in a checkout, or name its interpreter with --hermes-python or {VARIABLE}"
_ASK = "from importlib.metadata import version; print(version('hermes-agent'))"
_SECONDS = 60.0


def hermes_python(named: Path | None = None) -> Path:
    """The interpreter of Hermes: the one named, that of the variable, or that of .venv-hermes beside our environment.

    Raises
    ------
    InputError : there is none, or its Hermes is none or another; the message says what to do.
    """
    text = os.environ.get(VARIABLE, "")
    python = named or (Path(text) if text else Path(sys.prefix).parent / ".venv-hermes" / "bin" / "python")
    found = installed(python)
    if found is None:
        raise InputError(f"Hermes Agent {VERSION} is not installed ({python}); {REMEDY}")
    if found != VERSION:
        raise InputError(f"{python} has Hermes Agent {found}, and rows are of {VERSION}; {REMEDY}")
    return python


def installed(python: Path) -> str | None:
    """The version of Hermes that an interpreter has; None where there is no such interpreter, or no Hermes."""
    try:
        asked = subprocess.run([python, "-I", "-c", _ASK], capture_output=True, text=True, timeout=_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return asked.stdout.strip()
