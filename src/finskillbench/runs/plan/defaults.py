"""What a run uses where nothing was said: the default edition, built once into the user's cache, and a run folder.

Both are named after digests of the code and of the arguments, so that a changed program never meets what an older one
left, and the same command finds what it left itself.
"""

from __future__ import annotations

import fcntl
import hashlib
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
from platformdirs import user_cache_path

from finskillbench.episode import PAPER_SUITE
from finskillbench.errors import InputError
from finskillbench.runs.store.version import code_digest

Progress = Callable[[str], None]
"""Called with the name of each stage."""

if TYPE_CHECKING:
    from finskillbench.edition import Edition

_BUILDERS = ("arrays.py", "domains", "edition", "engines", "episode.py", "panels", "sources")
_SMALL = 15
"""Companies of a small edition."""
_RUNNERS = (*_BUILDERS, "harness", "runs", "sandbox", "scoring")


def default_edition(progress: Progress, suite: str = PAPER_SUITE, *, small: bool = False) -> Path:
    """Return the folder of the default edition of a suite, after building it where it is missing.

    A small one has 15 companies and one episode of each subtask.

    Of several processes that miss it at once, one builds it and the others wait.

    Raises
    ------
    InputError : the cache cannot be written.
    """
    folder = user_cache_path("finskillbench") / "editions" / f"{'small-' * small}{suite}-{code_digest(_BUILDERS)[:12]}"
    if not folder.exists():
        from finskillbench.edition import build_edition

        with _alone(folder.with_name(f"{folder.name}.lock"), progress):
            if not folder.exists():
                names, episodes = (_SMALL, 1) if small else (None, None)
                build_edition(suite=suite, names=names, episodes=episodes, out=folder, progress=progress)
    return folder


@contextmanager
def _alone(path: Path, progress: Progress) -> Generator[None]:
    """Hold a lock, after waiting for whoever holds it; it is let go when the process ends, however it ends."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("ab")
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror}); name an edition with --edition") from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress("waiting for another process to build the default edition")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def run_folder(edition: Edition, *arguments: object) -> Path:
    """Return a folder below `runs/` that belongs to this edition, these arguments and this code alone."""
    key = orjson.dumps([edition.digest, code_digest(_RUNNERS), arguments])
    return Path("runs") / f"run-{hashlib.sha256(key).hexdigest()[:12]}"
