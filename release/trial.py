"""Built wheels and source distributions, installed and run where nothing of the repository is.

    python -m release.trial dist

Each kind goes into an environment of its own with the pins of requirements/run.txt, in a folder away from the
checkout: first the core alone, then the desk suite beside it. What must hold: they hold every tracked file of their
package and no other, byte for byte; commands print and make what they should, a whole small edition and a run on it
among them; no path of the checkout is on the search path; every other supported Python that is here builds the same
edition, byte for byte.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

ROOT = Path(__file__).resolve().parents[1]
PINS = ROOT / "requirements" / "run.txt"
VERSIONS = ("3.11", "3.12", "3.13")
SOURCES = {"finskillbench": "src/", "finskillbench_desk": "packages/finskillbench-desk/src/"}
"""Folder of the package of each distribution, by the name that its files begin with."""
_EDITION = Path("editions", "small")
_BUILD = ("data", "build", "--seed", "7", "--companies", "15", "--out", str(_EDITION))
_DESK = Path("editions", "desk")
_BUILD_DESK = f"""
from pathlib import Path
from finskillbench.edition import build_edition
build_edition(suite="desk", seed=7, companies=15, episodes=4, out=Path({str(_DESK)!r}))
"""
"""A program, since no command builds fewer episodes than the suite has."""
_OUTSIDE = """
import sys, finskillbench
from importlib.metadata import entry_points
from pathlib import Path
root = Path(sys.argv[1])
inside = [path for path in (*sys.path, finskillbench.__file__) if Path(path).is_relative_to(root)]
assert not inside, f"of the repository: {inside}"
assert Path(finskillbench.__file__).is_relative_to(sys.prefix), finskillbench.__file__
for name in finskillbench.__all__:
    getattr(finskillbench, name)
assert entry_points(group="inspect_ai", name="finskillbench")
"""


_PIP = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")


class TrialError(Exception):
    """What was built is not what it should be, or does not run; the message says what, with what was printed."""


def tracked_files(name: str = "finskillbench") -> dict[str, str]:
    """Return the digest of every tracked file of a package, by its path in a wheel."""
    folder = SOURCES[name]
    listed = subprocess.run(["git", "ls-files", folder], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return {path.removeprefix(folder): _digest((ROOT / path).read_bytes()) for path in listed.splitlines()}


def files_of_wheel(wheel: Path) -> dict[str, str]:
    """Digest of every file of a wheel that is the package's own."""
    with ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if ".dist-info/" not in name]
        return {name: _digest(archive.read(name)) for name in names}


def installed_files(site: Path, name: str = "finskillbench") -> dict[str, str]:
    """Return the digest of every file of an installed package and its modules, apart from what Python compiles."""
    listed = (*(site / name).rglob("*"), *site.glob(f"{name}*.py"))
    found = (path for path in listed if path.is_file() and path.suffix != ".pyc")
    return {path.relative_to(site).as_posix(): _digest(path.read_bytes()) for path in found}


def compare(found: dict[str, str], wanted: dict[str, str], what: str) -> None:
    """Refuse files that are missing, too many or others than those wanted."""
    missing, more = sorted(wanted.keys() - found.keys()), sorted(found.keys() - wanted.keys())
    other = sorted(name for name in wanted.keys() & found.keys() if found[name] != wanted[name])
    if missing or more or other:
        raise TrialError(f"{what}: missing {missing}, too many {more}, other bytes {other}")


def main(dist: Path) -> None:
    """Try the wheels, then the source distributions."""
    kinds = [[_only(dist, f"{name}-*{suffix}") for name in SOURCES] for suffix in (".whl", ".tar.gz")]
    wanted = {name: tracked_files(name) for name in SOURCES}
    for wheel, (name, files) in zip(kinds[0], wanted.items(), strict=True):
        compare(files_of_wheel(wheel), files, wheel.name)
        print(f"{wheel.name}: the {len(files)} tracked files of {name}, byte for byte", flush=True)
    with TemporaryDirectory(prefix="finskillbench-trial-") as folder:
        for core, desk in kinds:
            place, whole = Path(folder) / core.suffix.strip("."), core.suffix == ".whl"
            python = _environment(place, sys.executable)
            program = python.with_name("finskillbench")
            (site,) = place.glob("env/lib/python3*/site-packages")
            _install(place, python, core)
            compare(installed_files(site), wanted["finskillbench"], f"{core.name}, installed")
            _run(place, python, "-c", _OUTSIDE, str(ROOT))
            _commands(place, program, whole=whole)
            _install(place, python, desk)
            compare(
                installed_files(site, "finskillbench_desk"), wanted["finskillbench_desk"], f"{desk.name}, installed"
            )
            _desk_commands(place, program, whole=whole)
            print(f"{core.name} and {desk.name}: installed and run outside of the repository", flush=True)
        _elsewhere(kinds[0], Path(folder))


def _only(dist: Path, pattern: str) -> Path:
    """Return the one file that matches."""
    (path,) = dist.glob(pattern)
    return path


def _elsewhere(wheels: list[Path], folder: Path) -> None:
    """Build the wheels' editions again under every other supported Python that is here."""
    own = "{}.{}".format(*sys.version_info)
    first = digests(folder / "whl" / "editions")
    for version in VERSIONS:
        if version == own:
            continue
        if (interpreter := next(interpreters(version), None)) is None:
            print(f"NOT TRIED: there is no Python {version} here to build the edition with", flush=True)
            continue
        place = folder / version
        python = _environment(place, interpreter)
        _install(place, python, *wheels)
        _run(place, python.with_name("finskillbench"), *_BUILD)
        _run(place, python, "-c", _BUILD_DESK)
        compare(digests(place / "editions"), first, f"the editions of Python {version}, beside those of {own}")
        print(f"Python {version}: the editions of Python {own}, byte for byte", flush=True)


def interpreters(version: str) -> Iterator[str]:
    """Interpreters of a version that can make environments: on the search path, then those of pyenv."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    for candidate in (shutil.which(f"python{version}"), *pyenv.glob(f"versions/{version}.*/bin/python")):
        # What pyenv puts on the search path starts the versions alone that are switched on.
        if (
            candidate
            and subprocess.run([candidate, "-c", "import venv, ensurepip"], capture_output=True).returncode == 0
        ):
            yield str(candidate)


def digests(folder: Path) -> dict[str, str]:
    """Return the digest of every file of an edition, or of a folder of editions."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): _digest(path.read_bytes()) for path in files}


def _environment(place: Path, interpreter: str) -> Path:
    """Make an environment in `place` with the pins; return its interpreter."""
    place.mkdir()
    _run(place, Path(interpreter), "-m", "venv", "env")
    python = place / "env" / "bin" / "python"
    _run(place, python, *_PIP, "--no-deps", "--require-hashes", "-r", str(PINS))
    return python


def _install(place: Path, python: Path, *built: Path) -> None:
    paths = [str(each.absolute()) for each in built]
    _run(place, python, *_PIP, "--no-deps", "--no-index", "--no-build-isolation", *paths)
    _run(place, python, "-m", "pip", "check")


def _commands(place: Path, program: Path, *, whole: bool) -> None:
    """Commands that read every kind of data the package brings; with `whole` a build and a run, which take a minute."""
    from importlib.metadata import version

    printed = _run(place, program, "--version")
    if printed != f"finskillbench {version('finskillbench')}\n":
        raise TrialError(f"--version prints {printed!r}")
    for line in ("data template raw", "data catalog --out mine", "skills list", "skills new my-skills/mine"):
        _run(place, program, *line.split())
    _run(place, program, "skills", "lint", "my-skills/mine")
    if whole:
        _run(place, program, *_BUILD)
        arms = ("no_skill", "curated", "placebo")
        conditions = [word for arm in arms for word in ("--condition", arm)]
        chosen = ["--edition", str(_EDITION), "--limit", "1", "--model", "baseline/reference", *conditions]
        _run(place, program, "run", *chosen, "--out", "runs/small", "--page")
        for made in ("runs/small/rows.parquet", "runs/small/report/index.html"):
            if not (place / made).is_file():
                raise TrialError(f"{made} was not made")


def _desk_commands(place: Path, program: Path, *, whole: bool) -> None:
    """Commands that find the desk suite; with `whole` a build and a run of it."""
    if "signal-trading" not in _run(place, program, "skills", "list"):
        raise TrialError("skills list shows no package of the desk suite")
    if whole:
        _run(place, program.with_name("python"), "-c", _BUILD_DESK)
        chosen = ("--edition", str(_DESK), "--suite", "desk", "--limit", "1", "--condition", "curated")
        _run(place, program, "run", *chosen, "--model", "baseline/reference", "--out", "runs/desk")


def _run(place: Path, program: Path, *arguments: str) -> str:
    """What a program prints that is run in `place`, with nothing of this process's Python in its environment."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    environment |= {"XDG_CACHE_HOME": str(place / "cache"), "HOME": str(place)}
    done = subprocess.run([str(program), *arguments], cwd=place, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise TrialError(
            f"{program.name} {' '.join(arguments)[:200]}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
        )
    return done.stdout


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    except TrialError as error:
        sys.exit(f"error: {error}")
