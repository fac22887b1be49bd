"""Reads a skill package from its folder and resolves the names a model asks for, inside the package only.

A package is `SKILL.md` (front matter and instructions), `references/` and `scripts/`, after the Agent Skills
specification. Names are looked up in the listing made when the package was read and never joined to a path before.
Its `evals/`, cases with expected outputs for whoever evaluates the package, are no part of what an agent is given.
"""

import ast
import difflib
import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import skills_ref

from finskillbench.domains import domains
from finskillbench.errors import InputError, SkillError

PLACEBO = Path(__file__).parent / "placebo"
SKILL_FILE = "SKILL.md"
REFERENCES, SCRIPTS = "references/", "scripts/"
EVALS = "evals"
_CACHES = frozenset({"__pycache__"})
_MAX_FILES, _MAX_FILE_BYTES = 200, 1024 * 1024


@dataclass(frozen=True, slots=True)
class SkillPackage:
    """A skill package as it was when it was read.

    `body` is SKILL.md without its front matter, `references` maps "references/x.md" to text, `scripts` are sorted
    names like "scripts/x.py", `digest` is the hex SHA-256 over the names and bytes of all files.
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

    Raises SkillError if it is no folder, has no readable SKILL.md, or holds a symbolic link, a hidden file, a
    special file, more than 200 files, one over 1 MiB, or text that is not UTF-8.
    """
    root = Path(path).resolve()
    files = read_files(root)
    if SKILL_FILE not in files:
        raise SkillError(f"{path}: no {SKILL_FILE} in it (exactly so written); a skill package needs one")
    text = _text(SKILL_FILE, files[SKILL_FILE], root)
    properties = _properties(root, text)
    return SkillPackage(
        name=properties.name,
        description=properties.description,
        root=root,
        # Cut where skills-ref cuts: at the second row of dashes.
        body=text.split("---", 2)[2].strip(),
        references=MappingProxyType(
            {name: _text(name, data, root) for name, data in files.items() if name.startswith(REFERENCES)}
        ),
        scripts=tuple(name for name in files if name.startswith(SCRIPTS) and name.endswith(".py")),
        digest=digest(files),
    )


_READ: dict[str, skills_ref.SkillProperties] = {}
"""What stands in front matter, by the text of its SKILL.md: a run reads its packages for each arm, and YAML is slow."""


def _properties(root: Path, text: str) -> skills_ref.SkillProperties:
    """The front matter of the SKILL.md in `root`, which has this text."""
    if text not in _READ:
        try:
            _READ[text] = skills_ref.read_properties(root)
        except (skills_ref.SkillError, UnicodeError, AttributeError) as error:
            raise SkillError(f"{root / SKILL_FILE}: {' '.join(str(error).split())}") from None
    return _READ[text]


def curated() -> dict[str, SkillPackage]:
    """The packages of all domains, by name in sorted order; one that two domains use is there once.

    Raises
    ------
    InputError : two packages have the same name.
    """
    return by_name(map(load_package, dict.fromkeys(folder for one in domains() for folder in one.skills)))


def by_name(packages: Iterable[SkillPackage]) -> dict[str, SkillPackage]:
    """Packages by name in sorted order; raise `InputError` where two have the same."""
    found: dict[str, SkillPackage] = {}
    for package in packages:
        other = found.setdefault(package.name, package)
        if other is not package:
            raise InputError(f"{other.root} and {package.root} are both named {package.name}; rename one")
    return dict(sorted(found.items()))


def placebo() -> dict[str, SkillPackage]:
    """Irrelevant packages of like size, by name in sorted order; they have no scripts."""
    return by_name(load_package(found.parent) for found in PLACEBO.glob(f"*/{SKILL_FILE}"))


def script_notes(package: SkillPackage) -> dict[str, str]:
    """The docstring of each script of a package, by name; one that has none or cannot be parsed has an empty text."""
    notes: dict[str, str] = {}
    for name in package.scripts:
        try:
            notes[name] = ast.get_docstring(ast.parse(script_text(package, name))) or ""
        except SyntaxError:
            notes[name] = ""
    return notes


def script_text(package: SkillPackage, name: str) -> str:
    """The text of one of its scripts, by name; SkillError where the file can no longer be read."""
    try:
        return (package.root / name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SkillError(f"{package.root / name}: cannot be read as UTF-8 text ({error})") from None


def script_path(package: SkillPackage, relative: object) -> Path:
    """The file of a script that a model named `relative`: "scripts/x.py", or "x.py" for short.

    Raises SkillError, listing the scripts there are, for every other name: one that leaves the package, differs in
    case, or names a file that has since become a link or gone.
    """
    # A set lookup of the text as given: no normalising, no joining, so nothing to get round.
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


def _no_such_script(package: SkillPackage, asked: object) -> str:
    there = f"its scripts: {', '.join(package.scripts)}" if package.scripts else "it has no scripts"
    if not isinstance(asked, str):
        return f"{package.name}: a script is named by text, not by a {type(asked).__name__}; {there}"
    shown = ascii(asked[:80])
    lower = {name.lower(): name for name in package.scripts}
    if meant := lower.get(asked.lower()) or lower.get(f"{SCRIPTS}{asked}".lower()):
        return f"{package.name}: no script {shown}; names are case-sensitive, did you mean {meant}?"
    if asked.startswith("/") or ".." in asked or "\\" in asked or "\0" in asked or ":" in asked:
        return f"{package.name}: {shown} is not a path inside the package; {there}"
    close = difflib.get_close_matches(asked[:80], package.scripts, n=1)
    hint = f", did you mean {close[0]}?" if close else ""
    return f"{package.name}: no script {shown}{hint}; {there}"


def read_files(root: Path) -> dict[str, bytes]:
    """Every file of a package by its "/"-separated name below `root`, sorted.

    Caches of byte code are left out, and `evals/` at the top: it changes no digest and reaches no agent.
    """
    if not root.is_dir():
        raise SkillError(f"{root}: no such folder")
    files: dict[str, bytes] = {}
    pending = [root]
    while pending:
        folder = pending.pop()
        try:
            with os.scandir(folder) as listing:
                entries = list(listing)
        except OSError as error:
            raise SkillError(f"{folder}: cannot be listed: {error.strerror}") from None
        for entry in entries:
            left_out = entry.name in _CACHES or (entry.name == EVALS and folder == root)
            if left_out and entry.is_dir(follow_symlinks=False):
                continue
            name = Path(entry.path).relative_to(root).as_posix()
            _refuse(entry, root, name)
            if entry.is_dir():
                pending.append(Path(entry.path))
                continue
            if len(files) == _MAX_FILES:
                raise SkillError(f"{root}: more than {_MAX_FILES} files; a skill package is smaller")
            try:
                files[name] = Path(entry.path).read_bytes()
            except OSError as error:
                raise SkillError(f"{root}: {name} cannot be read: {error.strerror}") from None
    return dict(sorted(files.items()))


def _refuse(entry: "os.DirEntry[str]", root: Path, name: str) -> None:
    problem = ""
    if entry.is_symlink():
        problem = "is a symbolic link; put the file itself there"
    elif entry.name.startswith("."):
        problem = "is hidden; remove it"
    elif "\\" in entry.name or not entry.name.isprintable():
        problem = "has a backslash or a control character in its name; rename it"
    elif not entry.is_dir() and not entry.is_file():
        problem = "is neither a file nor a folder; remove it"
    elif entry.is_file() and entry.stat().st_size > _MAX_FILE_BYTES:
        problem = f"has more than {_MAX_FILE_BYTES} bytes; make it smaller"
    if problem:
        raise SkillError(f"{root}: {name!a} {problem}")


def _text(name: str, data: bytes, root: Path) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise SkillError(f"{root / name}: not UTF-8 at byte {error.start}; save it as UTF-8") from None


def digest(files: Mapping[str, bytes]) -> str:
    """Hex SHA-256 over sorted names and contents, each with its length before it so that no two packages collide."""
    sha = hashlib.sha256()
    for name in sorted(files):
        for part in (name.encode(), files[name]):
            sha.update(len(part).to_bytes(8, "big"))
            sha.update(part)
    return sha.hexdigest()
