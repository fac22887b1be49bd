"""A built wheel and source distribution, installed and run where nothing of the repository is.

    python -m release.trial dist

Each goes into an environment of its own with the pins of requirements/run.txt, in a folder away from the checkout. What
must hold: both hold every tracked file of the package and no other, byte for byte; commands print and make what they
should, a whole small edition and a run on it among them; no path of the checkout is on the search path.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import venv
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

ROOT = Path(__file__).resolve().parents[1]
PINS = ROOT / "requirements" / "run.txt"
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
    """Refuse files that are missing, too many or others than those of the repository."""
    missing, more = sorted(wanted.keys() - found.keys()), sorted(found.keys() - wanted.keys())
    other = sorted(name for name in wanted.keys() & found.keys() if found[name] != wanted[name])
    if missing or more or other:
        raise TrialError(f"{what}: missing {missing}, not of the repository {more}, other bytes {other}")


def main(dist: Path) -> None:
    """Try the wheel, then the source distribution."""
    (wheel,), (source,) = sorted(dist.glob("finskillbench-*.whl")), sorted(dist.glob("finskillbench-*.tar.gz"))
    wanted = tracked_files()
    compare(files_of_wheel(wheel), wanted, wheel.name)
    print(f"{wheel.name}: the {len(wanted)} tracked files of the package, byte for byte", flush=True)
    with TemporaryDirectory(prefix="finskillbench-trial-") as folder:
        for built in (wheel, source):
            place = Path(folder) / built.suffix.strip(".")
            python = _installed(built, place)
            (site,) = place.glob("env/lib/python3*/site-packages")
            compare(installed_files(site), wanted, f"{built.name}, installed")
            _run(place, python, "-c", _OUTSIDE, str(ROOT))
            _commands(place, python.with_name("finskillbench"), whole=built is wheel)
            print(f"{built.name}: installed and run outside of the repository", flush=True)


def _installed(built: Path, place: Path) -> Path:
    """Make an environment in `place` with the pins and what was built; returns its interpreter."""
    venv.create(place / "env", with_pip=True)
    python = place / "env" / "bin" / "python"
    pip = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    _run(place, python, *pip, "--require-hashes", "-r", str(PINS))
    _run(place, python, *pip, "--no-deps", "--no-index", "--no-build-isolation", str(built.absolute()))
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
        _run(place, program, "data", "build", "--seed", "7", "--names", "15", "--out", "editions/small")
        arms = ("no_skill", "curated", "placebo")
        conditions = [word for arm in arms for word in ("--condition", arm)]
        chosen = ["--edition", "editions/small", "--limit", "1", "--model", "baseline/reference", *conditions]
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
