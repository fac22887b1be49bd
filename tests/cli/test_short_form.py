"""`finskillbench short-form`, `run --short`, and `report` on runs of a short form."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from tests.rows import synthetic_rows

from finskillbench import cli
from finskillbench.analysis.short_form import OVERALL, Accuracy, ShortForm
from finskillbench.edition import load_edition
from finskillbench.episode import Profile
from finskillbench.runs.store.rows import SHORT_FORM as NAME

MODEL = """
from finskillbench.harness.model import ToolCall, Turn


class Model:
    name = "mine/model"

    async def generate(self, messages, tools, tool_choice):
        return Turn(tool_calls=(ToolCall("1", "submit_answer", '{"answer": "{}"}'),))


model = Model()
"""
ARGUMENTS = ["run", "--model", "entrant_of_short_forms:model", "--condition", "no_skill", "--short", NAME]


@pytest.fixture
def form(edition: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ShortForm:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "entrant_of_short_forms.py").write_text(MODEL)
    accuracy = Accuracy(error=0.01, half_width=0.02, lowest_score=0.0, highest_score=0.5)
    weights = {"pc_rebal_1": 0.5, "fa_norm_1": 0.5}
    known = {OVERALL: accuracy, "no_skill": accuracy}
    made = ShortForm(load_edition(edition).digest, Profile.CERTIFIED, 10, 2, known, weights)
    Path(NAME).write_bytes(msgspec.json.encode(made))
    return made


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert cli.main([*arguments]) == 2
    (line,) = [each for each in capsys.readouterr().err.splitlines() if each.startswith("error: ")]
    return line


def test_a_short_form_needs_ten_models(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows, out = tmp_path / "rows.parquet", tmp_path / NAME
    synthetic_rows(models=9, episodes=4).drop("digest").write_parquet(rows)
    arguments = ["short-form", str(rows), "--episodes", "36", "--out", str(out)]
    assert "9 models have complete runs under no_skill, curated, self_generated" in refused(capsys, *arguments)
    assert not out.exists()
    synthetic_rows(models=11, episodes=4).drop("digest").write_parquet(rows)
    assert cli.main([*arguments, "--exclude", "provider/model-11"]) == 0
    printed = capsys.readouterr().out
    assert "errors of 10 models, each left out of the choice in turn:" in printed
    written = json.loads(out.read_text())
    assert len(written["weights"]) == 36
    assert f"  overall: {written['accuracy']['overall']['error']:.3f} (scores " in printed


def test_a_run_of_a_short_form_is_estimated(form: ShortForm, edition: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*ARGUMENTS, "--edition", str(edition), "--out", "run"]) == 0
    assert "Episodes:     2 run" in capsys.readouterr().out
    assert cli.main(["report", "run", "--format", "json"]) == 0
    out, err = capsys.readouterr()
    tables = {table["name"]: table for table in json.loads(out)}
    assert [row[2] for row in tables["short_form"]["rows"]] == [OVERALL, "no_skill"]
    assert "note: run: a run of a short form, 2 episodes" in err
    assert cli.main(["report", "run", "--items", "--format", "csv"]) == 0
    assert [line.split(",")[:3] for line in capsys.readouterr().out.splitlines()] == [
        ["sub_task", "episode", "models"],
        ["normalization", "fa_norm_1", "1"],
        ["rebalancing", "pc_rebal_1", "1"],
    ]
    assert "--items prints one table" in refused(capsys, "report", "run", "--items", "--by", "model")


def test_a_short_form_is_refused(form: ShortForm, edition: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [*ARGUMENTS, "--edition", str(edition), "--out", "run"]
    for more in (["--limit", "1"], ["--sample", "1"]):
        assert "tasks cannot be combined with limit or sample" in refused(capsys, *arguments, *more)
    assert "--short cannot be combined with --task" in refused(capsys, *arguments, "--task", "pc_*")
    assert "'missing.json' does not exist" in refused(capsys, *arguments, "--short", "missing.json")
    Path(NAME).write_bytes(msgspec.json.encode(msgspec.structs.replace(form, edition="f" * 64)))
    assert f"{NAME}: is not of {edition}; name edition ffffffff with --edition" in refused(capsys, *arguments)
    damaged = msgspec.to_builtins(form)
    for content in (
        {"edition": 1},
        {**damaged, "profile": "other"},
        {**damaged, "weights": {}},
        {**damaged, "weights": {"a": 5.0}},
    ):
        Path(NAME).write_text(json.dumps(content))
        assert f"{NAME}: not a short form (" in refused(capsys, *arguments)
    assert not Path("run").exists()


def test_only_runs_of_the_short_form_are_estimated(
    form: ShortForm, edition: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("other_entrant.py").write_text(MODEL.replace("mine/model", "mine/other"))
    whole = [*ARGUMENTS[:2], "other_entrant:model", *ARGUMENTS[3:5]]
    assert cli.main([*ARGUMENTS, "--edition", str(edition), "--out", "short"]) == 0
    assert cli.main([*whole, "--edition", str(edition), "--out", "whole"]) == 0
    capsys.readouterr()
    assert cli.main(["report", "short", "whole", "--format", "json"]) == 0
    tables = {table["name"]: table for table in json.loads(capsys.readouterr().out)}
    assert [row[0] for row in tables["short_form"]["rows"]] == ["mine/model", "mine/model"]


def test_runs_of_two_short_forms_are_not_reported_together(
    form: ShortForm, edition: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in ("one", "two"):
        assert cli.main([*ARGUMENTS, "--edition", str(edition), "--out", folder]) == 0
    assert cli.main(["report", "one", "two", "--by", "model"]) == 0
    assert cli.main(["merge", "same", "one", "two"]) == 0
    assert (Path("same") / NAME).read_bytes() == Path(NAME).read_bytes()
    (Path("two") / NAME).write_bytes(msgspec.json.encode(msgspec.structs.replace(form, models=11)))
    assert "one and two: runs of different short forms" in refused(capsys, "report", "one", "two")
    assert cli.main(["merge", "unlike", "one", "two"]) == 0
    assert not (Path("unlike") / NAME).exists()
