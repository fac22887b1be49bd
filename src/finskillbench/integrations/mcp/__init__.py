"""Agents that speak the Model Context Protocol: one episode served, or a command started for each episode of a run."""

from importlib.util import find_spec

from finskillbench.errors import InputError

HARNESS = "mcp"
"""The harness of rows whose agents came through the protocol."""
EXTRA = 'make mcp, or: pip install "finskillbench[mcp]"'


def need_extra() -> None:
    """Refuse to go on without the extra `mcp`, before anything of it is imported.

    Raises
    ------
    InputError : it is not installed; the message says how to install it.
    """
    if find_spec("mcp") is None or find_spec("uvicorn") is None:
        raise InputError(f"agents that speak MCP need the extra mcp; install it: {EXTRA}")
