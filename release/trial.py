"""A built wheel and source distribution, installed and run where nothing of the repository is.

    python -m release.trial dist

Each goes into an environment of its own with the pins of requirements/run.txt, in a folder away from the checkout. What
must hold: both hold every tracked file of the package and no other, byte for byte; commands print and make what they
should, a whole small edition and a run on it among them; no path of the checkout is on the search path; every other
supported Python that is here builds the same edition, byte for byte.
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
_EDITION = Path("editions", "small")
_BUILD = ("data", "build", "--suite", "all", "--seed", "7", "--names", "15", "--out", str(_EDITION))
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


class TrialError(Exception):
    """What was built is not what it should be, or does not run; the message says what, with what was printed."""


def tracked_files() -> dict[str, str]:
    """Digest of every tracked file of the package, by its path in a wheel."""
    listed = subprocess.run(["git", "ls-files", "src"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return {path.removeprefix("src/"): _digest((ROOT / path).read_bytes()) for path in listed.splitlines()}


def files_of_wheel(wheel: Path) -> dict[str, str]:
    """Digest of every file of a wheel that is the package's own."""
    with ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if ".dist-info/" not in name]
        return {name: _digest(archive.read(name)) for name in names}


def installed_files(site: Path) -> dict[str, str]:
    """Digest of every file of the installed package, apart from what Python compiles."""
    found = (path for path in (site / "finskillbench").rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {path.relative_to(site).as_posix(): _digest(path.read_bytes()) for path in found}


def compare(found: dict[str, str], wanted: dict[str, str], what: str) -> None:
    """Refuse files that are missing, too many or others than those wanted."""
    missing, more = sorted(wanted.keys() - found.keys()), sorted(found.keys() - wanted.keys())
    other = sorted(name for name in wanted.keys() & found.keys() if found[name] != wanted[name])
    if missing or more or other:
        raise TrialError(f"{what}: missing {missing}, too many {more}, other bytes {other}")


def main(dist: Path) -> None:
    """Try the wheel, then the source distribution."""
    (wheel,), (source,) = sorted(dist.glob("finskillbench-*.whl")), sorted(dist.glob("finskillbench-*.tar.gz"))
    wanted = tracked_files()
    compare(files_of_wheel(wheel), wanted, wheel.name)
    print(f"{wheel.name}: the {len(wanted)} tracked files of the package, byte for byte", flush=True)
    with TemporaryDirectory(prefix="finskillbench-trial-") as folder:
        for built in (wheel, source):
            place = Path(folder) / built.suffix.strip(".")
            python = _installed(built, place, sys.executable)
            (site,) = place.glob("env/lib/python3*/site-packages")
            compare(installed_files(site), wanted, f"{built.name}, installed")
            _run(place, python, "-c", _OUTSIDE, str(ROOT))
            _commands(place, python.with_name("finskillbench"), whole=built is wheel)
            print(f"{built.name}: installed and run outside of the repository", flush=True)
        _elsewhere(wheel, Path(folder))


def _elsewhere(wheel: Path, folder: Path) -> None:
    """Build the wheel's edition again under every other supported Python that is here."""
    own = "{}.{}".format(*sys.version_info)
    first = digests(folder / "whl" / _EDITION)
    for version in VERSIONS:
        if version == own:
            continue
        if (interpreter := next(interpreters(version), None)) is None:
            print(f"NOT TRIED: there is no Python {version} here to build the edition with", flush=True)
            continue
        place = folder / version
        _run(place, _installed(wheel, place, interpreter).with_name("finskillbench"), *_BUILD)
        compare(digests(place / _EDITION), first, f"the edition of Python {version}, beside that of {own}")
        print(f"Python {version}: the edition of Python {own}, byte for byte", flush=True)


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


def digests(edition: Path) -> dict[str, str]:
    """Digest of every file of an edition."""
    files = (path for path in edition.rglob("*") if path.is_file())
    return {path.relative_to(edition).as_posix(): _digest(path.read_bytes()) for path in files}


def _installed(built: Path, place: Path, interpreter: str) -> Path:
    """Make an environment in `place` with the pins and what was built; returns its interpreter."""
    place.mkdir()
    _run(place, Path(interpreter), "-m", "venv", "env")
    python = place / "env" / "bin" / "python"
    pip = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    _run(place, python, *pip, "--no-deps", "--require-hashes", "-r", str(PINS))
    _run(place, python, *pip, "--no-deps", "--no-index", "--no-build-isolation", str(built.absolute()))
    _run(place, python, "-m", "pip", "check")
    return python


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
