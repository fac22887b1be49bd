"""Building: the same seed gives the same bytes, and a build that does not finish leaves nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.registry import SUBTASKS
from tests.sampling import THOROUGH, thorough

from finskillbench.edition import Edition, build_edition
from finskillbench.edition.checks.catalog import CheckReport
from finskillbench.edition.store import new_folder
from finskillbench.errors import InputError
from finskillbench.findings import CheckState

FUNDAMENTAL = {"normalization": 244, "earnings_quality": 1002, "driver_decomposition": 997}
LATE_STEPS = ["waiting for the other processes"] if THOROUGH else []


def test_every_subtask_has_the_episodes_of_the_specification(edition: Edition) -> None:
    counts = edition.manifest["counts"]
    assert counts == dict.fromkeys(edition.sub_tasks, 40) | FUNDAMENTAL
    assert sum(counts[subtask.name] for subtask in SUBTASKS if subtask.headline) == 2603
    assert len({episode.task_id for episode in edition.episodes()}) == sum(counts.values())


@pytest.mark.slow
@pytest.mark.parametrize("step", ["writing synthetic raw files", "building panels", *LATE_STEPS])
def test_an_interrupted_build_leaves_nothing(step: str, tmp_path: Path) -> None:
    def interrupt(current: str) -> None:
        if current == step:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_edition(seed=1, companies=15, episodes=1, out=tmp_path / "editions" / "one", progress=interrupt)
    assert list(tmp_path.iterdir()) == []


def test_an_occupied_place_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    for out in (tmp_path / "full", tmp_path / "file"):
        with pytest.raises(InputError, match="is not an empty folder; choose another"):
            build_edition(seed=1, out=out)
    with pytest.raises(InputError, match="cannot be written"):
        build_edition(seed=1, out=tmp_path / "file" / "edition")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "full", "thesis.txt"]
    assert (tmp_path / "full" / "thesis.txt").read_text() == "mine"


@pytest.mark.parametrize("through", ["edition", "link", "edition/way-out"])
def test_a_place_in_an_edition_is_refused(through: str, tmp_path: Path) -> None:
    edition = tmp_path / "edition"
    edition.mkdir()
    (edition / "manifest.json").write_text('{"format": 1, "files": {}}')
    (tmp_path / "link").symlink_to(edition)
    (edition / "way-out").symlink_to(tmp_path / "elsewhere")
    before = sorted(tmp_path.rglob("*"))
    out = tmp_path / through
    for place in [out] if through.endswith("way-out") else [out / "new", out / "truth" / "new"]:
        with pytest.raises(InputError, match=f"is inside the edition {edition}"), new_folder(place):
            pass
    assert sorted(tmp_path.rglob("*")) == before


def test_a_manifest_of_something_else_is_no_edition(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"name": "web app"}')
    with new_folder(tmp_path / "edition"):
        pass
    assert (tmp_path / "edition").is_dir()


def _take_while_building(out: Path) -> None:
    with new_folder(out):
        out.mkdir()
        (out / "theirs").write_text("x")


def test_a_place_taken_meanwhile_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="edition: created by another process during the build"):
        _take_while_building(tmp_path / "edition")
    assert [path.name for path in sorted(tmp_path.rglob("*"))] == ["edition", "theirs"]


@pytest.mark.slow
def test_what_a_killed_build_left_is_swept_by_the_next(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys, pathlib\n"
        "from finskillbench.edition import build\n"
        "build.write_collection = lambda out, **_: (out / 'prices').mkdir()\n"
        "def kill(step):\n"
        "    if step == 'reading raw files': os.kill(os.getpid(), signal.SIGKILL)\n"
        "build.build_edition(out=pathlib.Path(sys.argv[1]), progress=kill)\n"
    )
    out = tmp_path / "edition"
    assert subprocess.run([sys.executable, "-c", code, str(out)], check=False).returncode == -signal.SIGKILL
    assert len(list(tmp_path.iterdir())) == 2  # the edition and its raw files
    dead = next(path.name for path in tmp_path.iterdir() if ".raw." not in path.name)
    pid = dead.split("-")[1]
    kept = {
        ".edition.mine",
        dead.replace(f"-{pid}-", f"-{os.getpid()}-"),
        dead.replace(dead.split(".")[2][:8], "0" * 8),
        dead.removeprefix("."),
        f"{dead}.backup",
    }
    for name in kept:
        (tmp_path / name).mkdir()
    with new_folder(tmp_path / "another") as first, new_folder(out) as second:
        assert {path.name for path in tmp_path.iterdir()} == {first.name, second.name, *kept}
    assert {path.name for path in tmp_path.iterdir()} == {"another", "edition", *kept}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"companies": 14}, "--companies must be between 15 and 3000, not 14"),
        ({"seed": -1}, "--seed must not be negative, not -1"),
        ({"seed": 2**63}, "--seed must not be above 9223372036854775807"),
        ({"source": "raw-dir"}, "--raw-dir must name a folder of raw files, not None"),
        ({"source": "raw-dir", "raw_dir": Path("nowhere")}, "--raw-dir must name a folder of raw files, not nowhere"),
    ],
)
def test_arguments_that_cannot_be_used(arguments: dict[str, Any], told: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=told):
        build_edition(**arguments, out=tmp_path / "edition")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_real_collection_gives_a_valid_edition(real_edition: Edition, real_report: CheckReport) -> None:
    # Half of the labels of earnings quality are whole, and the real filings have 310 that are.
    many = FUNDAMENTAL | {"earnings_quality": 2 * 310}
    counts = dict.fromkeys(real_edition.sub_tasks, 40) | many
    assert real_edition.manifest["counts"] == {name: counts[name] for name in real_edition.sub_tasks}
    assert [check.name for check in real_report.checks if check.state is CheckState.FAIL] == []


@thorough
def test_fewer_whole_labels_of_real_filings_make_fewer_episodes(real_edition: Edition) -> None:
    pool = real_edition.manifest["parameters"]["fundamental_pools"]["earnings_quality"]
    assert (pool["drawn"], pool["whole"]) == (2 * 310, 0.5)
    (note,) = (note for note in real_edition.manifest["notes"] if note.startswith("earnings_quality: 620 episodes"))
    assert "instead of 1002" in note
    assert "310 labels are whole, and 50% of the episodes must be" in note
    segments = [
        episode.task_id
        for episode in real_edition.episodes(["driver_decomposition"])
        if real_edition.truth(episode.task_id).expected_output["top_revenue_drivers"]
    ]
    assert len(segments) == 8
