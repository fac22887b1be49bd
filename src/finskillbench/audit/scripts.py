"""The scripts of the curated packages run in this process: they are installed code, as the domains are.

A sandbox for each call would cost a sixth of an audit; that scripts give the same within it is the sandbox's own test.
"""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from finskillbench.sandbox.child import encode_result


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a script gave; see `finskillbench.harness.tools.toolbox.ScriptOutcome`."""

    ok: bool
    output: dict[str, Any] | None
    error: str | None


class Scripts:
    """A `finskillbench.harness.tools.toolbox.Runner`; each script is loaded once."""

    def __init__(self) -> None:
        self._mains: dict[Path, Callable[[dict[str, Any]], object]] = {}

    async def run(self, script: Path, payload: bytes) -> Outcome:
        """Run `main` of a script on the JSON of an object; whatever it raises is its error."""
        try:
            if script not in self._mains:
                self._mains[script] = runpy.run_path(str(script))["main"]
            return Outcome(True, json.loads(encode_result(self._mains[script](orjson.loads(payload)))), None)
        except Exception as error:  # noqa: BLE001 - a script may raise anything, and the agent is told
            return Outcome(False, None, f"{type(error).__name__}: {error}")
