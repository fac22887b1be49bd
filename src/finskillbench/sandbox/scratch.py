"""Removal of scratch folders with arbitrary content, without blocking.

Standard library only: run as a program, this file is the deleter process that `ScratchCleaner` starts.
"""

import contextlib
import math
import os
import secrets
import subprocess
import sys
import time
from pathlib import Path

# Enough for ordinary folders; larger ones go to a deleter process.
_AT_ONCE_SECONDS = 0.005


def remove(folder: Path, seconds: float = math.inf) -> bool:
    """Remove `folder` recursively within `seconds`; return True if it is gone.

    Moves subfolders up until none is left, since a hostile tree can exceed the path length or the recursion limit.
    Links are removed, never followed. Files that the system refuses to delete stay.
    """
    end = time.monotonic() + seconds
    if folder.is_symlink():
        folder.unlink()
    while os.path.lexists(folder) and time.monotonic() < end and _round(folder, end):
        pass
    return not os.path.lexists(folder)


def _round(folder: Path, end: float) -> bool:
    moved = False
    with contextlib.suppress(OSError):
        # Remove an empty folder without opening it: there may be a million.
        folder.rmdir()
        return True
    with contextlib.suppress(OSError):
        folder.chmod(0o700)
        with os.scandir(folder) as entries:
            for entry in entries:
                if time.monotonic() > end:
                    return moved
                moved |= _removed(entry) or (entry.is_dir(follow_symlinks=False) and _lifted(entry.path, folder, end))
    return moved


def _removed(entry: os.DirEntry[str]) -> bool:
    """Remove a file, a link or an empty folder; False on failure."""
    try:
        if entry.is_dir(follow_symlinks=False):
            os.rmdir(entry.path)  # noqa: PTH106 - a Path for each of a million entries takes longer than the call
        else:
            os.unlink(entry.path)  # noqa: PTH108 - as above
    except FileNotFoundError:
        # Another process may remove the same tree.
        return True
    except OSError:
        return False
    return True


def _lifted(path: str, folder: Path, end: float) -> bool:
    """Move the subfolders of `path` up into `folder` and remove it; return True if anything changed."""
    moved = False
    with contextlib.suppress(OSError):
        Path(path).chmod(0o700)
        with os.scandir(path) as entries:
            for entry in entries:
                if time.monotonic() > end:
                    return moved
                if _removed(entry):
                    moved = True
                elif entry.is_dir(follow_symlinks=False):
                    deeper = Path(entry.path)
                    with contextlib.suppress(FileNotFoundError):
                        deeper.chmod(0o700)
                        deeper.rename(folder / secrets.token_hex(16))
                    moved = True
        Path(path).rmdir()
        moved = True
    return moved


class ScratchCleaner:
    """Removes small folders at once, large ones in one detached low-priority process that outlives its owner."""

    def __init__(self) -> None:
        self._folders: list[Path] = []
        self._deleter: subprocess.Popen[bytes] | None = None

    @property
    def pids(self) -> tuple[int, ...]:
        return () if self._deleter is None else (self._deleter.pid,)

    def discard(self, folder: Path) -> None:
        """Remove `folder` at once if small, else later."""
        if not remove(folder, _AT_ONCE_SECONDS):
            self._folders.append(folder)
        self.poll()

    def poll(self) -> None:
        """Start the next deleter process if the last one is done."""
        if self._deleter is not None and self._deleter.poll() is not None:
            self._deleter = None
        if self._deleter is None and self._folders:
            self._start()

    def close(self, seconds: float) -> None:
        """Wait up to `seconds` for all removals; detached processes finish the rest."""
        end = time.monotonic() + seconds
        self.poll()
        while self._deleter is not None:
            try:
                self._deleter.wait(max(0.0, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                break
            self.poll()
        if self._folders:
            self._start()

    def _start(self) -> None:
        # OSError: no process to spare; the next call tries again.
        with contextlib.suppress(OSError):
            self._deleter = subprocess.Popen(
                [sys.executable, "-I", "-S", __file__, *self._folders],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={},
                cwd="/",
                start_new_session=True,
            )
            self._folders.clear()


if __name__ == "__main__":
    os.nice(19)
    for _name in sys.argv[1:]:
        remove(Path(_name))
