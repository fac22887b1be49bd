"""Loader of the server under a separate package name, so that no other module of this library is imported.

Scripts can see all imported modules, and some must not find this library. Run as `python start.py FD CONFIG`: the
socket's descriptor, and JSON from `process`. Standard library only.
"""

import importlib
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

NAME = "script_server"


def main() -> None:
    """Load and run the server."""
    folder = Path(__file__).parent
    spec = spec_from_file_location(NAME, folder / "__init__.py", submodule_search_locations=[str(folder)])
    assert spec is not None
    sys.modules[NAME] = module_from_spec(spec)
    importlib.import_module(f"{NAME}.server").main()


if __name__ == "__main__":
    main()
