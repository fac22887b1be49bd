"""Labels built on workers: the files of one process, byte for byte, also where a worker is killed."""

from __future__ import annotations

import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import pytest_socket
from tests.editions import one_process
from tests.sampling import thorough

from finskillbench.cluster.connection import facts
from finskillbench.domains.catalog import Catalog
from finskillbench.edition import Edition, build_edition
from finskillbench.edition.parts import BuildSpec
from finskillbench.edition.without_truth import BuiltSubtask, build_on_worker, changed_parameters, merge_parameters
from finskillbench.errors import InputError

SUBTASK = "unconstrained_optimization"


@pytest.fixture
def order(
    synthetic_edition: Edition, synthetic_raw: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> BuildSpec:
    """What a worker is told of the build of the synthetic edition when its panels are written."""
    monkeypatch.setattr("distributed.get_worker", lambda: SimpleNamespace(address="tcp://worker:1"))
    shutil.copytree(synthetic_edition.path / "panels", tmp_path / "panels")
    files = tuple(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file())
    return BuildSpec(tmp_path, synthetic_raw, files, 1, Catalog(), True, None)


@pytest.mark.slow
def test_a_worker_hands_back_the_files_of_one_process(synthetic_edition: Edition, order: BuildSpec) -> None:
    made = build_on_worker(order, facts(), "portfolio_construction", SUBTASK)
    assert isinstance(made, BuiltSubtask)
    assert set(made.files) == {f"{part}/{SUBTASK}.jsonl" for part in ("episodes", "truth", "certificates")}
    for name, data in made.files.items():
        assert data == (synthetic_edition.path / name).read_bytes(), name
    assert made.count == synthetic_edition.manifest["counts"][SUBTASK]
    assert sorted(order.folder.iterdir()) == [order.folder / "panels"], "a worker wrote into the edition"


def test_what_a_worker_lacks_is_told_in_a_line(order: BuildSpec, tmp_path: Path) -> None:
    told = build_on_worker(order, {**facts(), "numpy": "1.0"}, "portfolio_construction", SUBTASK)
    assert told == (
        "worker tcp://worker:1: its version of finskillbench or of a library differs; install the driver's on every "
        "worker"
    )
    told = build_on_worker(replace(order, folder=tmp_path / "away"), facts(), "portfolio_construction", SUBTASK)
    assert isinstance(told, str)
    assert f"{tmp_path / 'away'} cannot be read" in told


def test_what_a_subtask_counted_is_told_alone() -> None:
    before = {"tiers": {"easy": 1}, "pools": {"normalization": {"filings": 3}}}
    after = {"tiers": {"easy": 1}, "pools": {"normalization": {"filings": 3}, "earnings_quality": {"filings": 4}}}
    assert changed_parameters(before, after) == {"pools": {"earnings_quality": {"filings": 4}}}
    assert changed_parameters(before, before) == {}


def test_what_several_workers_counted_stands_side_by_side() -> None:
    one = {"tiers": {"easy": {"limit": 1}}, "pools": {"normalization": {"filings": 3}}}
    other = {"tiers": {"easy": {"limit": 1}}, "pools": {"earnings_quality": {"filings": 4}}}
    assert merge_parameters(merge_parameters({}, one), other) == {
        "tiers": {"easy": {"limit": 1}},
        "pools": {"normalization": {"filings": 3}, "earnings_quality": {"filings": 4}},
    }


@pytest.mark.slow
@pytest.mark.enable_socket
def test_a_cluster_that_does_not_answer_is_told_before_anything_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("finskillbench.cluster.connection.CONNECT_SECONDS", 1.0)
    with pytest.raises(InputError, match="no scheduler answers"):
        build_edition(out=tmp_path / "edition", cluster="tcp://127.0.0.1:9", progress=pytest.fail)
    assert not list(tmp_path.iterdir())


@thorough
@pytest.mark.enable_socket
@pytest.mark.slow
def test_an_edition_is_that_of_one_process_also_where_a_worker_is_killed(tmp_path: Path) -> None:
    from distributed import Client, LocalCluster

    small: dict[str, Any] = {"suite": "all", "seed": 7, "companies": 15, "episodes": 1}
    with one_process():
        alone = build_edition(out=tmp_path / "alone", **small)
    assert build_edition(out=tmp_path / "beside", **small).digest == alone.digest, "on every core"
    pytest_socket.enable_socket()
    with LocalCluster(n_workers=4, threads_per_worker=1, dashboard_address=None, host="127.0.0.1") as cluster:
        with Client(cluster.scheduler_address, set_as_default=False) as client:
            doomed = min(client.run(os.getpid).values())

        def progress(step: str) -> None:
            if step == f"proved {SUBTASK}":
                os.kill(doomed, signal.SIGKILL)

        address, out = cluster.scheduler_address, tmp_path / "edition"
        built = build_edition(out=out, cluster=address, progress=progress, **small)
    assert built.digest == alone.digest
    for path in sorted(alone.path.rglob("*")):
        if path.is_file():
            assert (built.path / path.relative_to(alone.path)).read_bytes() == path.read_bytes(), path
