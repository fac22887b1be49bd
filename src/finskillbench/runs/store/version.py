"""Versions of code, verdicts of `data validate`, and atomic writes.

Verdicts are kept in the user's state folder, so that no edition certifies itself. A verdict refers to the digest of an
edition's files. It holds for a copy with fewer parts, but not with more, since withheld labels were not checked.
"""

from __future__ import annotations

import errno
import hashlib
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from importlib import resources
from importlib.metadata import distribution, version
from pathlib import Path

import msgspec
from platformdirs import user_state_path

from finskillbench.domains import Scorer, subtasks
from finskillbench.edition import Edition
from finskillbench.errors import InputError
from finskillbench.runs.store.code_digest import code_digest

PART = ".part"
"""Suffix of an incomplete file."""

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")
_MAX_NAME = 120


def write_atomic(path: Path, data: bytes, *, durable: bool = False) -> None:
    """Write a file so that readers find the old or the new content, never a part; `durable` waits until it is on disk.

    The folder must exist. Raises `InputError` if the file cannot be written.
    """
    part = path.with_name(path.name + PART)
    try:
        with part.open("wb") as file:
            file.write(data)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        with suppress(OSError):
            part.unlink()
        raise InputError(f"{path}: cannot be written ({error.strerror}); {remedy(error)}") from error


def remedy(error: OSError) -> str:
    """Return advice for a file that cannot be written."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    return "free some space, then rerun the command to resume" if full else "choose a writable --out"


def make_folder(path: Path) -> None:
    """Create a folder and its parents; raise `InputError` if that fails."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path}: cannot be created ({error.strerror}); {remedy(error)}") from error


def file_name(text: str) -> str:
    """Return a file name for `text`: the text itself if it is safe and short, else cleaned with a digest appended.

    A `/`, as in names of models, becomes `-`; callers must check that the names of several texts differ.
    """
    dashed = text.replace("/", "-")
    clean = _UNSAFE.sub("-", dashed)[:_MAX_NAME].lstrip(".")
    if clean == dashed:
        return clean
    return f"{clean}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


SCORERS = ("arrays.py", "domains", "engines", "episode.py", "runs/verdicts.py", "scoring")
"""Code that decides a score, given an answer and its truth."""
_EXCLUDED_FROM_DIGEST = ("catalog", "checks", "released.py", "skill")
"""Files and folders of a domain without influence on scores; changes in a SKILL.md keep the scorer version."""


@cache
def code_version() -> str:
    """Return the version of this package; cached, since reading it took a fifth of a program's episode."""
    return version("finskillbench")


@cache
def code_commit() -> str | None:
    """Return the commit of this code at the first call; None if unknown.

    A checkout with changed or untracked files of the package appends "-dirty". For an installed package it is the
    commit that its installer recorded (PEP 610).
    """
    package = Path(str(resources.files("finskillbench")))
    # An installation inside the repository of another project is not a checkout.
    if _git(package, "ls-files", "--error-unmatch", "__init__.py") is not None:
        commit, changed = _git(package, "rev-parse", "HEAD"), _git(package, "status", "--porcelain", "--", ".")
        return None if commit is None or changed is None else commit + ("-dirty" if changed else "")
    try:
        origin = msgspec.json.decode(distribution("finskillbench").read_text("direct_url.json") or "{}", type=_Origin)
    except msgspec.MsgspecError:
        return None
    return origin.vcs_info.commit_id if origin.vcs_info is not None else None


class _Commit(msgspec.Struct):
    commit_id: str


class _Origin(msgspec.Struct):
    """Fields used from `direct_url.json` of PEP 610."""

    vcs_info: _Commit | None = None


def _git(folder: Path, *arguments: str) -> str | None:
    """Run git in a folder; return its output, or None if it fails or is not installed."""
    # GIT_ variables, as set in a hook, would select another repository.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    return done.stdout.strip()


@cache
def scorer_version() -> str:
    """Return 12 hex digits of the digest over `SCORERS` and scorer modules of other packages."""
    digest = code_digest(SCORERS, _EXCLUDED_FROM_DIGEST)
    external = _external_scorer_digests()
    if external:
        digest = hashlib.sha256(digest.encode() + b"".join(external)).hexdigest()
    return digest[:12]


def _external_scorer_digests() -> list[bytes]:
    """Return the digest of each other package that registers a scorer, with its name; single modules count alone."""
    modules = {_module_of(scorer) for subtask in subtasks() for scorer in subtask.scorers.values()}
    digests: dict[str, str] = {}
    for module in modules:
        name = module.partition(".")[0]
        if name == "finskillbench":
            continue
        if getattr(sys.modules.get(name), "__file__", None) and hasattr(sys.modules[name], "__path__"):
            digests[name] = digests.get(name) or code_digest(("",), _EXCLUDED_FROM_DIGEST, name)
        elif source := inspect.getsourcefile(sys.modules[module]):
            digests[module] = hashlib.sha256(Path(source).read_bytes()).hexdigest()
    return [f"{name}\0{digest}".encode() for name, digest in sorted(digests.items())]


def _module_of(scorer: Scorer) -> str:
    """Return the module that defines a scorer: a function, a class with `__call__`, or the target of a `partial`."""
    while isinstance(scorer, partial):
        scorer = scorer.func
    return scorer.__module__


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """One verdict: files, source, available suites and withheld parts, time, version."""

    digest: str
    source: str
    suites: tuple[str, ...]
    parts: tuple[str, ...]
    passed: bool
    when: datetime
    version: str

    def covers(self, other: Validation) -> bool:
        """Return True if this verdict checked everything that the other covers."""
        same = (self.digest, self.source) == (other.digest, other.source)
        return same and {*other.suites} <= {*self.suites} and {*other.parts} <= {*self.parts}

    def __str__(self) -> str:
        state = "passed" if self.passed else "failed"
        return f"{state} on this machine on {self.when:%Y-%m-%d} by version {self.version}, digest {self.digest[:12]}"


def save_validation(edition: Edition, *, passed: bool) -> Validation:
    """Save the verdict on an edition; raise `InputError` if the state folder cannot be written."""
    found = _verdict(edition, passed=passed)
    make_folder(_folder())
    scope_digest = hashlib.sha256(msgspec.json.encode((found.source, found.suites, found.parts))).hexdigest()
    write_atomic(_folder() / f"{found.digest}-{scope_digest[:12]}.json", msgspec.json.encode(found))
    return found


def validation_of(edition: Edition) -> Validation | None:
    """Return this user's latest verdict on all of an edition, or None."""
    saved = list(_saved_validations(edition.digest))
    covering = [each for each in saved if each.covers(_verdict(edition, passed=False))]
    return max(covering, key=lambda each: each.when, default=None)


def validation_text(edition: Edition) -> str:
    """Describe the latest verdict, or name the command that makes one."""
    found = validation_of(edition)
    command = f"finskillbench data validate {edition.path}"
    return f"not on this machine, digest {edition.digest[:12]}; run {command}" if found is None else str(found)


def _verdict(edition: Edition, *, passed: bool) -> Validation:
    present = {"truth": edition.has_truth, "certificates": edition.has_certificates, "stages": edition.has_stages}
    return Validation(
        digest=edition.digest,
        source=edition.manifest["source"]["kind"],
        suites=edition.suites,
        parts=tuple(name for name, held in present.items() if held),
        passed=passed,
        when=datetime.now(UTC).replace(microsecond=0),
        version=code_version(),
    )


def _folder() -> Path:
    return user_state_path("finskillbench") / "validated"


def _saved_validations(digest: str) -> Iterator[Validation]:
    for path in sorted(_folder().glob(f"{digest}-*.json")):
        try:
            yield msgspec.json.decode(path.read_bytes(), type=Validation)
        except (OSError, ValueError):
            continue  # of another version, or damaged
