"""Building: the same seed gives the same bytes, and a build that does not finish leaves nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from finskillbench.edition import Edition, build_edition
from finskillbench.edition.validate import State, validate_edition
from finskillbench.errors import InputError


def test_a_seed_is_an_edition(edition: Edition, tmp_path: Path) -> None:
    steps: list[str] = []
    again = build_edition(seed=1, out=tmp_path / "again", progress=steps.append)
    assert again.manifest["files"] == edition.manifest["files"]
    assert again.digest == edition.digest
    assert steps[:3] == ["writing synthetic raw files", "reading raw files", "building panels"]
    assert "proving rebalancing" in steps
    other = build_edition(seed=2, out=tmp_path / "other")
    same = {name for name, digest in other.manifest["files"].items() if edition.manifest["files"].get(name) == digest}
    assert same == set()


def test_forty_episodes_of_each_subtask(edition: Edition) -> None:
    assert set(edition.manifest["counts"].values()) == {40}
    assert len({episode.task_id for episode in edition.episodes()}) == 240


@pytest.mark.parametrize(
    "step", ["writing synthetic raw files", "building panels", "proving unconstrained_optimization"]
)
def test_an_interrupted_build_leaves_nothing(step: str, tmp_path: Path) -> None:
    def interrupt(current: str) -> None:
        if current == step:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_edition(seed=1, out=tmp_path / "editions" / "one", progress=interrupt)
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


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"names": 29}, "--names must lie between 30 and 3000, not 29"),
        ({"seed": -1}, "--seed must not be negative, not -1"),
        ({"source": "raw-dir"}, "--raw-dir must name a folder of raw files, not None"),
        ({"source": "raw-dir", "raw_dir": Path("nowhere")}, "--raw-dir must name a folder of raw files, not nowhere"),
    ],
)
def test_arguments_that_cannot_be_used(arguments: dict[str, Any], told: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=told):
        build_edition(**arguments, out=tmp_path / "edition")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_real_collection_gives_a_valid_edition(realdata: Path, tmp_path: Path) -> None:
    built = build_edition(source="raw-dir", raw_dir=realdata, seed=1, out=tmp_path / "edition")
    assert set(built.manifest["counts"].values()) == {40}
    report = validate_edition(built)
    assert [check.name for check in report.checks if check.state is State.FAIL] == []
