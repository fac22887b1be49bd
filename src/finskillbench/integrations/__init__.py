"""Other programs: Inspect, agents that speak the Model Context Protocol, the Hermes Agent, Harbor, trackers of runs.

Nothing in the core imports this package; it registers its commands and the harness `hermes` through entry points. What
needs an extra is imported once the extra is known to be there: the import of Inspect alone takes seconds.
"""

from __future__ import annotations

from importlib.util import find_spec

from finskillbench.errors import InputError

_EXTRAS = {
    "llm": ("Inspect", ("inspect_ai",)),
    "mcp": ("The Model Context Protocol", ("mcp", "uvicorn")),
    "mlflow": ("MLflow", ("mlflow",)),
    "wandb": ("Weights & Biases", ("wandb",)),
}


def require_extra(extra: str) -> None:
    """Check, without importing it, that an extra is installed.

    Raises
    ------
    InputError : it is not; the message says what installs it.
    """
    name, modules = _EXTRAS[extra]
    if any(find_spec(module) is None for module in modules):
        install = f"pip install 'finskillbench[{extra}]' (in a checkout: make {extra})"
        raise InputError(f"{name} is not installed; run: {install}")
