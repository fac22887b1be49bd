"""Read skill packages from folders, resolve script names inside a package, and store agents' own skills.

Names are looked up in the listing made on reading and never joined to a path first. `evals/`, cases for evaluators of
the package, is never shown to agents. Agents' skills are files in a scratch folder that only this user may enter; links
and files placed there by others are refused.
"""

from __future__ import annotations

import atexit
import difflib
import hashlib
import os
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from finskillbench.domains import domain as registered
from finskillbench.domains import domains
from finskillbench.errors import InputError, SkillError
from finskillbench.harness.model import clean_text
from finskillbench.harness.skills.documents import MAX_TEXT_BYTES, decode_document, is_binary, split_document

PLACEBO = Path(__file__).parent / "placebo"
SKILL_FILE = "SKILL.md"
REFERENCES, SCRIPTS = "references/", "scripts/"
EVALS = "evals"
_CACHES = frozenset({"__pycache__"})
_MAX_FILES, _MAX_ENTRIES, _MAX_PACKAGE_BYTES = 200, 1000, 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class SkillPackage:
    """A skill package as read.

    `body` is SKILL.md without its front matter, `references` maps "references/x.md" to text, `scripts` are names like
    "scripts/x.py". `digest` is the hex SHA-256 over the names and bytes of all files.
    """

    name: str
    description: str
    root: Path
    body: str
    references: Mapping[str, str]
    scripts: tuple[str, ...]
    digest: str


def load_package(path: Path) -> SkillPackage:
    """Read the package in the folder `path`.

    Raises SkillError without a readable SKILL.md, for a symbolic link or special file, more than 200 files or 64 MiB,
    or a document or script that is over 1 MiB or not UTF-8.
    """
    root = Path(path).resolve()
    return parse_package(root, read_files(root))


def parse_package(root: Path, files: Mapping[str, bytes]) -> SkillPackage:
    """Build a package from its `files`, as returned by `read_files(root)`; raises as `load_package`."""
    fields, body = read_document(root, files)
    name, description = (_field(root, fields, field) for field in ("name", "description"))
    if not name.isprintable() or "/" in name or "\\" in name or name.startswith("."):
        raise SkillError(f"{root / SKILL_FILE}: name {name!a} cannot name a folder; use a-z, 0-9 and hyphens")
    scripts = tuple(path for path in files if path.startswith(SCRIPTS) and path.endswith(".py"))
    for path in scripts:
        decode_document(root / path, files[path])
    return SkillPackage(
        name=name,
        description=description,
        root=root,
        body=body,
        references=MappingProxyType(
            {
                path: decode_document(root / path, data)
                for path, data in files.items()
                if path.startswith(REFERENCES) and not is_binary(data)
            }
        ),
        scripts=scripts,
        digest=digest(files),
    )


def _field(root: Path, fields: Mapping[str, Any], field: str) -> str:
    value = fields.get(field)
    if not isinstance(value, str) or not value.strip():
        raise SkillError(f"{root / SKILL_FILE}: front matter needs the field {field!r}, a text that is not empty")
    return clean_text(value.strip())


def read_document(root: Path, files: Mapping[str, bytes]) -> tuple[dict[str, Any], str]:
    """Return front matter and instructions of the SKILL.md in a package's `files`."""
    if SKILL_FILE not in files:
        raise SkillError(f"{root}: no {SKILL_FILE} in it (exactly so written); a skill package needs one")
    return split_document(root / SKILL_FILE, decode_document(root / SKILL_FILE, files[SKILL_FILE]))


def package_folders(folder: Path) -> list[Path]:
    """Return `folder` if it is a package, else the packages directly below it; raises `InputError` if there is none."""
    if os.path.lexists(folder / SKILL_FILE):
        return [folder]
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder of skills")
    found = sorted(below.parent for below in folder.glob(f"*/{SKILL_FILE}"))
    if not found:
        raise InputError(
            f"{folder}: no {SKILL_FILE} in it or in a folder below it; `finskillbench skills new DIR` begins a package"
        )
    return found


def curated() -> dict[str, SkillPackage]:
    """Return the packages of all domains by name, sorted; raises `InputError` for duplicate names."""
    return by_name(map(load_package, dict.fromkeys(folder for one in domains() for folder in one.skills)))


def by_name(packages: Iterable[SkillPackage]) -> dict[str, SkillPackage]:
    """Return packages by name, sorted; raise `InputError` for duplicate names."""
    found: dict[str, SkillPackage] = {}
    for package in packages:
        other = found.setdefault(package.name, package)
        if other is not package:
            raise InputError(f"{other.root} and {package.root} are both named {package.name}; rename one")
    return dict(sorted(found.items()))


def placebo() -> dict[str, SkillPackage]:
    """Return irrelevant packages of similar size by name, sorted; they have no scripts."""
    folders = [found.parent for found in PLACEBO.glob(f"*/{SKILL_FILE}")]
    return by_name(map(load_package, (*folders, *(folder for one in domains() for folder in one.placebos))))


def of_other_suites(domain: str) -> frozenset[Path]:
    """Return the folders of built-in packages that no domain in the suite of `domain` names."""
    suite = registered(domain).suite
    of_suite: dict[bool, set[Path]] = {True: set(), False: set()}
    for one in domains():
        of_suite[one.suite == suite].update(folder.resolve() for folder in (*one.skills, *one.placebos))
    return frozenset(of_suite[False] - of_suite[True])


def script_text(package: SkillPackage, name: str) -> str:
    """Return the text of a script by name; SkillError if the file can no longer be read."""
    return read_document_file(package.root / name)


def read_document_file(path: Path) -> str:
    """Return the text of an ordinary file, as `documents.decode_document`; SkillError if it cannot be read."""
    try:
        if not path.is_file():
            raise SkillError(f"{path}: not an ordinary file")
        with path.open("rb") as file:
            return decode_document(path, file.read(MAX_TEXT_BYTES + 1))
    except OSError as error:
        raise SkillError(f"{path}: cannot be read: {error.strerror}") from None


def script_path(package: SkillPackage, relative: object) -> Path:
    """Return the file of a script that a model named `relative`: "scripts/x.py", or "x.py" for short.

    Raises SkillError with the list of scripts for every other name: outside the package, in other case, or of a file
    that has become a link or is gone.
    """
    # A set lookup of the text as given, without normalising or joining.
    known = {name: name for name in package.scripts}
    known |= {name.removeprefix(SCRIPTS): name for name in package.scripts}
    found = known.get(relative) if isinstance(relative, str) else None
    if found is None:
        raise SkillError(_no_such_script(package, relative))
    path = package.root / found
    inside = path.parent.resolve() == path.parent and path.parent.is_relative_to(package.root)
    if path.is_symlink() or not path.is_file() or not inside:
        raise SkillError(f"{package.name}: {found} is no longer the file it was when the package was read")
    return path


def _no_such_script(package: SkillPackage, requested: object) -> str:
    there = f"its scripts: {', '.join(package.scripts)}" if package.scripts else "it has no scripts"
    if not isinstance(requested, str):
        return f"{package.name}: a script is named by text, not by a {type(requested).__name__}; {there}"
    shown = ascii(requested[:80])
    lower = {name.lower(): name for name in package.scripts}
    if meant := lower.get(requested.lower()) or lower.get(f"{SCRIPTS}{requested}".lower()):
        return f"{package.name}: no script {shown}; names are case-sensitive, did you mean {meant}?"
    if requested.startswith("/") or ".." in requested or "\\" in requested or "\0" in requested or ":" in requested:
        return f"{package.name}: {shown} is not a path inside the package; {there}"
    close = difflib.get_close_matches(requested[:80], package.scripts, n=1)
    hint = f", did you mean {close[0]}?" if close else ""
    return f"{package.name}: no script {shown}{hint}; {there}"


def read_files(root: Path) -> dict[str, bytes]:
    """Return every file of a package by its "/"-separated name below `root`, sorted.

    Hidden entries, byte-code caches and a top-level `evals/` are excluded.
    """
    return scan_files(root)[0]


def scan_files(root: Path) -> tuple[dict[str, bytes], list[str]]:
    """Return the files as `read_files`, and the sorted names of excluded hidden entries."""
    if not root.is_dir():
        raise SkillError(f"{root}: no such folder")
    files: dict[str, bytes] = {}
    hidden: list[str] = []
    pending, seen, left = [root], 0, _MAX_PACKAGE_BYTES
    while pending:
        for entry in _entries(pending.pop()):
            name = Path(entry.path).relative_to(root).as_posix()
            if entry.name in _CACHES or name == EVALS:
                continue
            seen += 1
            if seen > _MAX_ENTRIES:
                raise SkillError(f"{root}: more than {_MAX_ENTRIES} files and folders; a skill package is smaller")
            if entry.name.startswith("."):
                hidden.append(name)
                continue
            _refuse(entry, root, name)
            if entry.is_dir():
                pending.append(Path(entry.path))
            elif len(files) == _MAX_FILES:
                raise SkillError(f"{root}: more than {_MAX_FILES} files; a skill package is smaller")
            else:
                files[name] = _read(entry, root, name, left)
                left -= len(files[name])
    return dict(sorted(files.items())), sorted(hidden)


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as listing:
            yield from listing
    except OSError as error:
        raise SkillError(f"{folder}: cannot be listed: {error.strerror}") from None


def _refuse(entry: os.DirEntry[str], root: Path, name: str) -> None:
    problem = ""
    if entry.is_symlink():
        problem = "is a symbolic link; put the file itself there"
    elif "\\" in entry.name or not entry.name.isprintable():
        problem = "has a backslash or a control character in its name; rename it"
    elif not entry.is_dir() and not entry.is_file():
        problem = "is neither a file nor a folder; remove it"
    if problem:
        raise SkillError(f"{root}: {name!a} {problem}")


def _read(entry: os.DirEntry[str], root: Path, name: str, left: int) -> bytes:
    try:
        too_large = entry.stat().st_size > left
        with Path(entry.path).open("rb") as file:
            data = b"" if too_large else file.read(left + 1)
    except OSError as error:
        raise SkillError(f"{root}: {name!a} cannot be read: {error.strerror}") from None
    if too_large or len(data) > left:
        raise SkillError(f"{root}: with {name!a} it has more than {_MAX_PACKAGE_BYTES} bytes; make its files smaller")
    return data


def write_package(package: SkillPackage, folder: Path, *, scripts: bool = True) -> None:
    """Write the files of a package to a folder, without its scripts if an agent is not granted them.

    Raises SkillError if the package has changed since it was read.
    """
    files = read_files(package.root)
    if digest(files) != package.digest:
        raise SkillError(f"{package.root}: the package has changed since it was read; run it again")
    write_files({path: data for path, data in files.items() if scripts or not path.startswith(SCRIPTS)}, folder)


def write_files(files: Mapping[str, bytes], folder: Path) -> None:
    """Write the files of a package by their "/"-separated names below a folder."""
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)


@cache
def scratch(name: str) -> Path:
    """Create the folder of made packages of one sort, which the end of the process removes."""
    folder = tempfile.TemporaryDirectory(prefix=f"finskillbench-{name}-", ignore_cleanup_errors=True)
    atexit.register(folder.cleanup)
    Path(folder.name).chmod(0o755)  # a superuser's scripts run as other users
    return Path(folder.name).resolve()


def digest(files: Mapping[str, bytes]) -> str:
    """Return the hex SHA-256 over sorted names and contents, each preceded by its length to prevent collisions."""
    sha = hashlib.sha256()
    for name in sorted(files):
        for part in (name.encode(), files[name]):
            sha.update(len(part).to_bytes(8, "big"))
            sha.update(part)
    return sha.hexdigest()


class WrittenSkills:
    """Skills of an agent in one episode, starting with those `remembered` from earlier ones (name to text)."""

    def __init__(self, scratch_root: Path | None, remembered: Mapping[str, str]) -> None:
        self._scratch_root = scratch_root
        self._scratch: tempfile.TemporaryDirectory[str] | None = None
        self._names: set[str] = set()
        for name, text in remembered.items():
            self.save(name, text)

    @property
    def names(self) -> list[str]:
        """Return the sorted names of saved skills."""
        return sorted(self._names)

    @property
    def texts(self) -> dict[str, str]:
        """Return the text of every skill by name; read them before `close`."""
        return {name: self.read(name) for name in self.names}

    def read(self, name: str) -> str:
        """Return the text saved under `name`; raise `SkillError` if it is no longer the saved file."""
        with open(self._open(name, os.O_RDONLY), "rb") as file:  # noqa: PTH123  # opens a descriptor
            return file.read().decode()

    def save(self, name: str, text: str) -> None:
        """Write or replace a skill; the caller checks `name` and `text` with `user_skills.skill_problem`."""
        if self._scratch is None:
            self._scratch = tempfile.TemporaryDirectory(
                prefix="skills-", dir=self._scratch_root, ignore_cleanup_errors=True
            )
        if name not in self._names:
            (Path(self._scratch.name) / name).mkdir(mode=0o700)
        with open(self._open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:  # noqa: PTH123  # as above
            file.write(text.encode())
        self._names.add(name)

    def close(self) -> None:
        """Remove the scratch folder, if any."""
        if self._scratch is not None:
            self._scratch.cleanup()
            self._scratch = None

    def _open(self, name: str, flags: int) -> int:
        """Open a skill's file without following links; refuse pipes and devices."""
        assert self._scratch is not None
        try:
            folder = os.open(Path(self._scratch.name) / name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                file = os.open(SKILL_FILE, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600, dir_fd=folder)
            finally:
                os.close(folder)
        except OSError as error:
            raise SkillError(f"skill {name!r} is not the file it should be: {error.strerror}") from None
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise SkillError(f"skill {name!r} is not the file it should be: no ordinary file")
        return file
