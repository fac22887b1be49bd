"""Integrations: Inspect, agents over the Model Context Protocol, the Hermes Agent, Harbor, experiment trackers.

The core does not import this package. Its commands and the harness `hermes` register through entry points. Modules
that need an extra are imported only after `require_extra`, since the import of Inspect alone takes seconds.
"""

from __future__ import annotations

from importlib.util import find_spec

from finskillbench.errors import InputError

_EXTRAS = {
    "llm": ("Inspect", ("inspect_ai",)),
    "mcp": ("The Model Context Protocol", ("mcp", "uvicorn")),
    "mlflow": ("MLflow", ("mlflow",)),
    "human": ("NLTK, which computes agreement,", ("nltk",)),
    "wandb": ("Weights & Biases", ("wandb",)),
}


def require_extra(extra: str) -> None:
    """Check that an extra is installed, without importing it.

    Raises
    ------
    InputError : it is not; the message names the command that installs it.
    """
    name, modules = _EXTRAS[extra]
    if any(find_spec(module) is None for module in modules):
        install = f"pip install 'finskillbench[{extra}]' (in a checkout: make {extra})"
        raise InputError(f"{name} is not installed; run: {install}")
