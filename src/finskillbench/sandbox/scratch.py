"""Removing a script's scratch folder, whatever the script left in it, without holding anything up.

Standard library only: as a program this file is the process that removes what takes long, `Bin` starts it.
"""

import contextlib
import math
import os
import secrets
import subprocess
import sys
import time
from pathlib import Path

# What an ordinary script leaves is gone in less; more is left to a process of its own.
_AT_ONCE_SECONDS = 0.005


def remove(folder: Path, seconds: float = math.inf) -> bool:
    """Remove `folder` with everything in it, giving up after `seconds`; returns whether it is gone.

    Lifts folders out of folders until none is left, because a hostile tree can be deeper than a path may be long
    or recursion go. Links are removed, never followed. What the system does not let go of stays.
    """
    end = time.monotonic() + seconds
    if folder.is_symlink():
        folder.unlink()
    while os.path.lexists(folder) and time.monotonic() < end and _round(folder, end):
        pass
    return not os.path.lexists(folder)


def _round(folder: Path, end: float) -> bool:
    """Go through `folder` once; whether that brought anything."""
    moved = False
    with contextlib.suppress(OSError):
        # An empty folder goes without being opened: there may be a million.
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
    """Remove a file, a link or an empty folder; False if that cannot be done."""
    try:
        if entry.is_dir(follow_symlinks=False):
            os.rmdir(entry.path)  # noqa: PTH106 - a Path for each of a million entries takes longer than the call
        else:
            os.unlink(entry.path)  # noqa: PTH108 - as above
    except FileNotFoundError:
        # Another process removes the same tree: the server's, say, beside the runner's.
        return True
    except OSError:
        return False
    return True


def _lifted(path: str, folder: Path, end: float) -> bool:
    """Empty the folder `path` by moving its folders up into `folder`, and remove it; whether anything moved."""
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


class Bin:
    """Folders to be removed: a small one at once, the others by one detached process of low priority at a time.

    That process outlives its owner, so that nothing stays behind either way.
    """

    def __init__(self) -> None:
        self._folders: list[Path] = []
        self._deleter: subprocess.Popen[bytes] | None = None

    @property
    def pids(self) -> tuple[int, ...]:
        """Process id of the process that removes, if there is one."""
        return () if self._deleter is None else (self._deleter.pid,)

    def throw(self, folder: Path) -> None:
        """Remove `folder`, now if that takes a few milliseconds, else soon."""
        if not remove(folder, _AT_ONCE_SECONDS):
            self._folders.append(folder)
        self.tend()

    def tend(self) -> None:
        """Start removing what has come meanwhile, if the last process is done."""
        if self._deleter is not None and self._deleter.poll() is not None:
            self._deleter = None
        if self._deleter is None and self._folders:
            self._start()

    def close(self, seconds: float) -> None:
        """Wait up to `seconds` for everything to be gone; what is not by then is being removed."""
        end = time.monotonic() + seconds
        self.tend()
        while self._deleter is not None:
            try:
                self._deleter.wait(max(0.0, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                break
            self.tend()
        if self._folders:
            self._start()

    def _start(self) -> None:
        # Refused where the system has no process to spare: then at the next call.
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
