"""Inspect for people who live in it: runs as `.eval` logs, and the same episodes under `inspect eval`.

In `mcp/` agents that speak the Model Context Protocol, another extra.

The loop, the tools and the verdicts stay ours; only this room and the adapter of hosted models know Inspect, which is
an extra. Its import takes seconds, so nothing outside imports this room before it is asked for.
"""

from __future__ import annotations

from importlib.util import find_spec

from finskillbench.errors import InputError


def require_inspect() -> None:
    """Check, without importing it, that Inspect is there.

    Raises
    ------
    InputError : it is not; the message says what installs it.
    """
    if find_spec("inspect_ai") is None:
        raise InputError("Inspect is not installed; run: pip install 'finskillbench[llm]' (in a checkout: make llm)")
