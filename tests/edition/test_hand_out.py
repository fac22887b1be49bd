"""Two editions compared, and copies of an edition for those who must not see its truth."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.editions import write_edition

from finskillbench.cli import main
from finskillbench.edition import Edition, load_edition
from finskillbench.edition.diagnosis import compare_editions
from finskillbench.edition.store import CANARY, write_manifest
from finskillbench.edition.withheld import export_public
from finskillbench.episode import Episode, Prompt, Truth
from finskillbench.errors import EditionError
from finskillbench.publish.hub import export_hub

PROMPT = Prompt("Do it.", "As JSON.")
SUBTASK = "unconstrained_optimization"
EPISODES = [
    Episode(
        f"pc_uncon_{i}",
        "portfolio_construction",
        SUBTASK,
        date(2025, 1, 31),
        "easy",
        {"expected_returns": {"A": 0.1 * i, "B": 0.2}},
        PROMPT,
        {"canary": CANARY},
    )
    for i in range(3)
]
TRUTHS = [Truth(e.task_id, e.sub_task, {"weights": {"A": 0.37219}}, {"method": "x"}, {"gap": 0.0}) for e in EPISODES]


def _written(folder: Path, **changes: Any) -> Path:
    """An edition whose middle episode, or the truth of it, has other fields."""
    of_episode = {name: value for name, value in changes.items() if name in Episode.__dataclass_fields__}
    of_truth = {name: value for name, value in changes.items() if name not in of_episode}
    tasks = list(zip(EPISODES, TRUTHS, strict=True))
    tasks[1] = (replace(EPISODES[1], **of_episode), replace(TRUTHS[1], **of_truth))
    return write_edition(folder, tasks, certificate={})


def test_what_somebody_brought_to_the_build_is_not_handed_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = _written(tmp_path / "edition")
    (folder / "catalog" / "holdings").mkdir(parents=True)
    (folder / "catalog" / "holdings" / "fund.csv").write_text("date,symbol,weight\n")
    manifest = orjson.loads((folder / "manifest.json").read_bytes())
    derived = ("format", "digest", "files", "seal")
    bare = {name: value for name, value in manifest.items() if name not in derived}
    write_manifest(folder, {**bare, "notes": ["fund is left out"]})
    whole = load_edition(folder)
    assert "catalog/holdings/fund.csv" in whole.manifest["files"]
    public = export_public(whole, tmp_path / "public")
    assert (public.digest, (public.path / "catalog").exists()) == (whole.digest, False)
    assert not [path for path in public.path.rglob("*") if path.is_file() and b"fund" in path.read_bytes()]
    assert export_public(public, tmp_path / "again").digest == whole.digest
    assert main(["data", "info", str(public.path)]) == 0
    assert "Catalog:   withheld" in capsys.readouterr().out
    (folder / "catalog" / "holdings" / "fund.csv").write_text("date,symbol,quantity\n")
    with pytest.raises(EditionError, match=r"fund\.csv was altered"):
        load_edition(folder)


@pytest.mark.parametrize(
    ("changes", "part", "comparable"),
    [
        ({}, None, True),
        ({"input": {"expected_returns": {"A": 0.11, "B": 0.2}}}, "input", False),
        ({"prompt": Prompt("Do it now.", "As JSON.")}, "prompt", False),
        ({"difficulty": "hard"}, "other fields", False),
        ({"expected_output": {"weights": {"A": 0.4}}}, "expected output", False),
        ({"verification": {"method": "x", "top_k": 3}}, "verification", False),
        ({"proof": {"gap": 1e-12}}, "proof", True),
    ],
)
def test_each_part_that_differs_is_counted(
    changes: dict[str, Any], part: str | None, comparable: bool, tmp_path: Path
) -> None:
    found = compare_editions(load_edition(_written(tmp_path / "a")), load_edition(_written(tmp_path / "b", **changes)))
    assert {name: tasks for name, tasks in found.subtasks[0].changed.items() if tasks} == (
        {part: ("pc_uncon_1",)} if part else {}
    )
    assert found.same_scores is comparable


def test_episodes_that_one_side_lacks(tmp_path: Path) -> None:
    tasks = list(zip(EPISODES, TRUTHS, strict=True))
    one, other = write_edition(tmp_path / "a", tasks[:2]), write_edition(tmp_path / "b", tasks[1:])
    (found,) = compare_editions(load_edition(one), load_edition(other)).subtasks
    assert (found.common, found.only_first, found.only_other) == (1, ("pc_uncon_0",), ("pc_uncon_2",))
    assert not found.same_scores


def test_the_command_says_what_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = _written(tmp_path / "a"), _written(tmp_path / "b", verification={"method": "y"})
    assert main(["data", "diff", str(one), str(other)]) == 1
    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith(SUBTASK))
    assert line.split() == [SUBTASK, "3", *"00000010", "no"]
    assert main(["data", "diff", str(one), str(_written(tmp_path / "c"))]) == 0
    assert main(["data", "diff", str(one), str(one)]) == 2


def test_a_public_copy_has_no_truth_no_seed_and_a_canary(tmp_path: Path) -> None:
    edition = load_edition(_written(tmp_path / "a"))
    public = export_public(edition, tmp_path / "out")
    assert (public.has_truth, public.has_certificates, public.manifest["seed"]) == (False, False, None)
    assert (public.digest, public.episodes()) == (edition.digest, edition.episodes())
    content = {path.name: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert not any(b"0.37219" in text for text in content.values())
    assert CANARY.encode() in content["CANARY.txt"]
    assert not compare_editions(edition, public).same_scores


def test_the_command_makes_public_copies_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edition = _written(tmp_path / "a")
    assert main(["data", "export", str(edition), "--out", str(tmp_path / "out")]) == 2
    assert not (tmp_path / "out").exists()
    assert main(["data", "export", str(edition), "--public", "--out", str(tmp_path / "out")]) == 0
    assert "seed not stated" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("metadata", "truth", "where"),
    [
        ({"kinds": ["late", "unit_slip"]}, {"verification": {"traps": [{"kind": "unit_slip"}]}}, "metadata.kinds[*]"),
        ({"form": "short, capped"}, {"proof": {"template": "short, capped"}}, "metadata.form"),
        ({"largest": "A"}, {"expected_output": {"largest": "A"}}, "metadata.largest"),
        ({"of": {"traps": 2}}, {}, "metadata.of.traps"),
    ],
)
@pytest.mark.parametrize("hub", [True, False], ids=["hub", "public"])
def test_metadata_that_give_the_truth_away_are_not_handed_out(
    hub: bool, metadata: dict[str, Any], truth: dict[str, Any], where: str, tmp_path: Path
) -> None:
    edition = load_edition(_written(tmp_path / "a", metadata=metadata, **truth))
    hand_out = partial(export_hub, today=date(2026, 1, 2)) if hub else export_public
    with pytest.raises(EditionError) as refused:
        hand_out(edition, tmp_path / "out")
    assert f"{where} of pc_uncon_1" in str(refused.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a"]


def test_metadata_may_say_what_the_input_says(tmp_path: Path) -> None:
    told = {"input": {"objective": "max_sharpe"}, "metadata": {"objective": "max_sharpe", "year": "2025"}}
    edition = load_edition(_written(tmp_path / "a", **told, verification={"objective": "max_sharpe"}))
    assert export_public(edition, tmp_path / "out").episodes() == edition.episodes()


def test_every_built_episode_carries_the_canary(synthetic_edition: Edition) -> None:
    for path in sorted((synthetic_edition.path / "episodes").glob("*.jsonl")):
        for line in path.read_bytes().splitlines():
            assert orjson.loads(line)["metadata"]["canary"] == CANARY
