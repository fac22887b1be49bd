"""Statements of `run` and `score` on the validation of an edition, which no edition can make of itself."""

from __future__ import annotations

import json
import shutil
from datetime import date
from pathlib import Path

import orjson
import pytest
from tests.editions import write_edition
from tests.scoring.examples import truth

from finskillbench.cli import main
from finskillbench.domains import domain_of
from finskillbench.edition import Edition, load_edition
from finskillbench.edition.store import MANIFEST, read_lines, write_lines, write_manifest
from finskillbench.edition.withheld import export_public
from finskillbench.episode import Episode, Prompt
from finskillbench.runs.store.version import save_validation, validation_of

NAME = "stress_testing"


@pytest.fixture
def edition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Edition:
    """An edition of one episode, and no verdict on any."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    label = truth(NAME)
    episode = Episode(
        label.task_id, domain_of(NAME).name, NAME, date(2025, 1, 31), "easy", {}, Prompt("Task.", "JSON.")
    )
    return load_edition(write_edition(tmp_path / "edition", [(episode, label)], certificate={}))


def resealed(edition: Edition, folder: Path) -> Edition:
    """A copy with another parameter of scoring, sealed again."""
    shutil.copytree(edition.path, folder)
    path = folder / "truth" / f"{NAME}.jsonl"
    (row,) = read_lines(path)
    row["verification"]["tolerance"] = 1e6
    write_lines(path, [row])
    manifest = orjson.loads((folder / MANIFEST).read_bytes())
    write_manifest(folder, {k: v for k, v in manifest.items() if k not in ("format", "digest", "files", "seal")})
    return load_edition(folder)


def test_a_verdict_is_on_the_files(edition: Edition, tmp_path: Path) -> None:
    assert validation_of(edition) is None
    kept = save_validation(edition, passed=True)
    assert validation_of(edition) == kept
    other = resealed(edition, tmp_path / "other")
    assert validation_of(other) is None
    assert not [path for path in edition.path.rglob("*") if "validated" in path.name]


def test_a_verdict_without_the_truth_says_nothing_of_it(edition: Edition, tmp_path: Path) -> None:
    public = export_public(edition, tmp_path / "public")
    assert public.digest == edition.digest
    save_validation(public, passed=True)
    assert validation_of(public) is not None
    assert validation_of(edition) is None
    save_validation(edition, passed=False)
    assert not validation_of(edition).passed


def test_commands_state_the_verdict(edition: Edition, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The example label carries no proof, so that its validation fails; what matters is that it is stated."""
    answers, out = tmp_path / "answers.jsonl", tmp_path / "run"
    answers.write_text(json.dumps({"task_id": f"{edition.episodes()[0].task_id}", "answer": None}) + "\n")
    playing = ["run", "--edition", f"{edition.path}", "--model", "baseline/nop", "--condition", "no_skill"]
    scoring = ["score", f"{edition.path}", f"{answers}", "--out", f"{tmp_path / 'rows.jsonl'}"]

    def stated(arguments: list[str], **more: object) -> str:
        capsys.readouterr()
        assert main(arguments) == 0
        (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Validated:")]
        return line.removeprefix("Validated:").strip()

    command = f"finskillbench data validate {edition.path}"
    unknown = f"not on this machine, digest {edition.digest[:12]}; run {command}"
    assert (stated([*playing, "--out", f"{out}"]), stated(scoring)) == (unknown, unknown)
    assert json.loads((out / "run.json").read_bytes())["edition_validated"] is None
    assert main(["data", "validate", f"{edition.path}"]) == 1
    for words in (stated([*playing, "--out", f"{out}"]), stated(scoring)):
        assert words.startswith("failed on this machine on 20")
        assert words.endswith(f"digest {edition.digest[:12]}")
    verdict = json.loads((out / "run.json").read_bytes())["edition_validated"]
    assert (verdict["passed"], verdict["digest"]) == (False, edition.digest)
