"""Fixtures shared by every test: two editions with what their builds and validations found, and the real inputs.

All processes of a test run share them: the first that needs one makes it, and what the others read is what it made.
"""

from __future__ import annotations

import fcntl
import gc
import os
import pickle
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

# Before NumPy is imported: two test processes on two cores, and BLAS threads would only wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest
from hypothesis import settings
from tests.registry import SUBTASKS
from tests.sampling import THOROUGH, WHERE_THOROUGH, examples

if TYPE_CHECKING:
    from finskillbench.domains import Subtask
    from finskillbench.domains.risk.objects.construct import RiskObjects
    from finskillbench.edition import Edition
    from finskillbench.edition.checks.catalog import CheckReport

# Nothing that is made while tests are collected is garbage.
gc.disable()

# A busy machine is no fault: no deadline.
settings.register_profile("ours", deadline=None, max_examples=examples(settings.default.max_examples))
settings.load_profile("ours")

T = TypeVar("T")
Alone: TypeAlias = Callable[[str], AbstractContextManager[Path]]
ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"

_SYNTHETIC: dict[str, Any] = {"seed": 1}
_REAL: dict[str, Any] = {"source": "raw-dir", "raw_dir": SHARED / "realdata", "seed": 1}

WHOLE_EDITIONS = frozenset({"synthetic_edition", "real_edition", "synthetic_raw", "training_edition"})
"""Fixtures that build a whole edition, or write what one is built from."""
REAL_INPUTS = frozenset({"realdata", "release_sample"})
"""Fixtures that read hundreds of megabytes of real files."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests that `make test-fast` leaves out, and sort files, so that no process waits for another at the end.

    Marked are tests that need a whole edition, or read the real files.
    """
    for item in items:
        if not isinstance(item, pytest.Function):
            continue
        parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
        if WHOLE_EDITIONS & {*item.fixturenames, *(f"{name}_edition" for name in parameters if isinstance(name, str))}:
            item.add_marker(pytest.mark.edition)
        if REAL_INPUTS & {*item.fixturenames}:
            item.add_marker(pytest.mark.slow)
    items.sort(key=_run_order(items).__getitem__)


def _run_order(items: list[pytest.Item]) -> dict[pytest.Item, int]:
    """Return when a test is run: first a file of each distribution that has its edition built, at last fast files."""
    editions, slow = ({item.path for item in items if item.get_closest_marker(name)} for name in ("edition", "slow"))
    first = {path.relative_to(ROOT).parts[0]: path for path in sorted(editions, reverse=True)}
    ranks = [{*first.values()}, editions, slow]
    return {item: next((rank for rank, files in enumerate(ranks) if item.path in files), len(ranks)) for item in items}


def pytest_collection_finish() -> None:
    """Modules and collected tests are no garbage: looking through them again and again took a tenth of a test run."""
    gc.freeze()
    gc.set_threshold(50_000)
    gc.enable()


def _folder(name: str) -> Path:
    folder = SHARED / name
    if not folder.is_dir():
        pytest.skip(f"real inputs are absent: no folder shared/{name} beside the checkout")
    return folder


@pytest.fixture(scope="session")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Alone:
    """The folder that all processes of a test run share, by the name of a thing that one of them is to make in it."""
    return lambda name: _alone(tmp_path_factory, name)


@pytest.fixture(scope="session")
def realdata() -> Path:
    """The collection of real EDGAR, Fama-French, FRED and price files."""
    return _folder("realdata")


@pytest.fixture(scope="session")
def release_sample() -> Path:
    """The sample of the published release."""
    return _folder("release_sample")


@pytest.fixture(scope="session", autouse=True)
def _no_verdicts_of_the_user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the verdicts of validations in a folder of the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session")
def synthetic_edition(tmp_path_factory: pytest.TempPathFactory) -> Edition:
    """The synthetic edition of seed 1, built once; copy its folder before altering anything."""
    if THOROUGH and _is_being_built(tmp_path_factory, "synthetic") and (SHARED / "realdata").is_dir():
        built_once(tmp_path_factory, "real", **_REAL)  # somebody will want it, and there is nothing else to do
    return built_once(tmp_path_factory, "synthetic", **_SYNTHETIC)


@pytest.fixture(scope="session")
def synthetic_raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The raw collection behind the synthetic edition, written once; copy it before altering anything."""
    from finskillbench.sources.synthetic import write_collection

    with _alone(tmp_path_factory, "synthetic-raw") as shared:
        folder = shared / "raw" / "synthetic"
        if not folder.exists():
            write_collection(folder, seed=1, names=30)
        return folder


@pytest.fixture(scope="session")
def real_edition(tmp_path_factory: pytest.TempPathFactory, realdata: Path) -> Edition:
    """The edition of the real collection, built once; copy its folder before altering anything.

    In a thorough run alone: a build and a validation of some forty seconds each.
    """
    if not THOROUGH:
        pytest.skip(WHERE_THOROUGH)
    if _is_being_built(tmp_path_factory, "real"):
        built_once(tmp_path_factory, "synthetic", **_SYNTHETIC)
    return built_once(tmp_path_factory, "real", **_REAL)


@pytest.fixture(scope="session")
def training_edition(tmp_path_factory: pytest.TempPathFactory) -> Edition:
    """Three episodes of each subtask, from the first training seed that is not for validation."""
    from finskillbench.splits import FIRST_TRAINING_SEED

    return built_once(tmp_path_factory, "training", seed=FIRST_TRAINING_SEED + 1, episodes=3)


@pytest.fixture(params=SUBTASKS, ids=lambda subtask: subtask.name)
def subtask(request: pytest.FixtureRequest) -> Subtask:
    """Each subtask that the edition holds."""
    return request.param


@pytest.fixture(scope="session")
def edition(synthetic_edition: Edition) -> Edition:
    """The edition that most tests look at."""
    return synthetic_edition


@pytest.fixture(scope="session")
def synthetic_risk_objects(synthetic_edition: Edition, tmp_path_factory: pytest.TempPathFactory) -> RiskObjects:
    """The risk objects that the episodes of the synthetic edition were drawn from."""
    return _risk_objects_of(tmp_path_factory, "synthetic")


@pytest.fixture(scope="session")
def real_risk_objects(real_edition: Edition, tmp_path_factory: pytest.TempPathFactory) -> RiskObjects:
    """The risk objects that the episodes of the real edition were drawn from."""
    return _risk_objects_of(tmp_path_factory, "real")


@pytest.fixture(scope="session")
def synthetic_report(synthetic_edition: Edition, tmp_path_factory: pytest.TempPathFactory) -> CheckReport:
    """The validation of the synthetic edition, run once."""
    return validated_once(tmp_path_factory, "synthetic", synthetic_edition)


@pytest.fixture(scope="session")
def real_report(real_edition: Edition, tmp_path_factory: pytest.TempPathFactory) -> CheckReport:
    """The validation of the real edition, run once."""
    return validated_once(tmp_path_factory, "real", real_edition)


def built_once(factory: pytest.TempPathFactory, name: str, **arguments: Any) -> Edition:
    """One edition for all processes of a test run; the risk objects of its build are kept beside it."""
    from tests.edition.examined import SOUND
    from tests.editions import one_process

    from finskillbench.domains.risk.objects import construct  # not all tests should pay for the engines
    from finskillbench.edition import build_edition, load_edition

    SOUND.share(_shared(factory) / "sound-labels")
    with _alone(factory, name) as shared:
        folder = shared / "editions" / name
        if folder.exists():
            return load_edition(folder)
        made: list[RiskObjects] = []
        with one_process(), pytest.MonkeyPatch.context() as patch:
            patch.setattr(construct, "RiskObjects", _keeping(construct.RiskObjects, made))
            edition = build_edition(out=folder, **arguments)
        for objects in made:
            (shared / f"{name}.objects").write_bytes(pickle.dumps(objects))
        return edition


def _is_being_built(factory: pytest.TempPathFactory, name: str) -> bool:
    """Whether another process of this test run is building the edition now."""
    with (_shared(factory) / f"{name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


def _keeping(make: Callable[..., T], made: list[T]) -> Callable[..., T]:
    """`make`, which adds what it makes to a list."""

    def making(*arguments: Any, **named: Any) -> T:
        made.append(make(*arguments, **named))
        return made[-1]

    return making


def _risk_objects_of(factory: pytest.TempPathFactory, name: str) -> RiskObjects:
    with _alone(factory, name) as shared:
        return pickle.loads((shared / f"{name}.objects").read_bytes())


def validated_once(factory: pytest.TempPathFactory, name: str, edition: Edition) -> CheckReport:
    from tests.edition.examined import validated_in_part

    with _alone(factory, f"{name}-report") as shared:
        file = shared / f"{name}.report"
        if not file.exists():
            file.write_bytes(pickle.dumps(validated_in_part(edition)))
        return pickle.loads(file.read_bytes())


@contextmanager
def _alone(factory: pytest.TempPathFactory, name: str) -> Iterator[Path]:
    """The folder that all processes of a test run share, while no other process is at the same thing in it."""
    shared = _shared(factory)
    with (shared / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield shared


def _shared(factory: pytest.TempPathFactory) -> Path:
    base = factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
