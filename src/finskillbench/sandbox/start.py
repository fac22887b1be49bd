"""Loads the warm server under a package name of its own, so that it brings nothing of this library along.

A script finds in memory whatever its process has imported, and some scripts may not find this library there. Run as
`python start.py FD CONFIG`: the descriptor of a socket, and JSON as `process` writes it. Standard library only.
"""

import importlib
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

NAME = "script_server"


def main() -> None:
    """Load the server and start it."""
    folder = Path(__file__).parent
    spec = spec_from_file_location(NAME, folder / "__init__.py", submodule_search_locations=[str(folder)])
    assert spec is not None
    sys.modules[NAME] = module_from_spec(spec)
    importlib.import_module(f"{NAME}.server").main()


if __name__ == "__main__":
    main()
