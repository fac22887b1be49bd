"""Removing a script's scratch folder, whatever the script left in it. Standard library only."""

import contextlib
import os
import secrets
from pathlib import Path


def remove(folder: Path) -> None:
    """Remove `folder` with everything in it; nothing happens if it is not there.

    Lifts folders out of folders until none is left, because a hostile tree can be deeper than a path may be long
    or recursion go. Links are removed, never followed. What the system does not let go of stays.
    """
    with contextlib.suppress(OSError):
        while inner := _clear(folder):
            for path in inner:
                path.chmod(0o700)
                for deeper in _clear(path):
                    deeper.chmod(0o700)
                    deeper.rename(folder / secrets.token_hex(16))
                path.rmdir()
        folder.rmdir()


def _clear(folder: Path) -> list[Path]:
    """Remove what is not a folder from `folder`; returns the folders in it."""
    inner: list[Path] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                inner.append(Path(entry.path))
            else:
                Path(entry.path).unlink()
    return inner
