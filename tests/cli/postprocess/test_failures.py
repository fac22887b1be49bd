"""`finskillbench failures`."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from finskillbench import cli


@pytest.fixture
def run(edition: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """Two baselines over three episodes under two conditions."""
    folder = edition.with_name("run")
    models = ["--model", "baseline/nop", "--model", "baseline/trivial"]
    conditions = ["--condition", "no_skill", "--condition", "curated"]
    assert cli.main(["run", "--edition", str(edition), *models, *conditions, "--out", str(folder)]) == 0
    capsys.readouterr()
    return folder


@pytest.mark.slow
def test_causes_by_condition_and_examples(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "failures.json"
    assert cli.main(["failures", str(run), "--json", str(file)]) == 0
    lines = capsys.readouterr().out.splitlines()
    (head,) = [line for line in lines if line.startswith("baseline/nop")]
    assert head.split() == ["baseline/nop", "no_skill", "curated"]
    assert any(line.split() == ["empty_answer", "3", "/", "3", "3", "/", "3"] for line in lines)
    assert any(line.split() == ["skill_not_loaded", "-", "0", "/", "3"] for line in lines)
    assert "Without full marks: 12 of 12" in lines
    command = next(line.strip() for line in lines if "finskillbench show" in line)
    assert cli.main(command.split()[1:]) == 0
    written = orjson.loads(file.read_bytes())
    assert len(written) == 12
    assert {each["cause"] for each in written if each["model"] == "baseline/nop"} == {"empty_answer"}


@pytest.mark.slow
def test_what_is_chosen_and_what_is_not_there(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        cli.main(["failures", str(run), "--condition", "no_skill", "--model", "baseline/nop", "--examples", "0"]) == 0
    )
    out = capsys.readouterr().out
    assert "Without full marks: 3 of 3" in out
    assert "finskillbench show" not in out
    assert cli.main(["failures", str(run), "--model", "x"]) == 2
    assert "has no model 'x'; choose from: baseline/nop, baseline/trivial" in capsys.readouterr().err
    assert cli.main(["failures", str(run.parent)]) == 2


@pytest.mark.slow
def test_without_the_edition(run: Path, edition: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edition.rename(edition.with_name("moved"))
    assert cli.main(["failures", str(run)]) == 0
    assert "Not tried without the edition's truth (--edition): " in capsys.readouterr().out
    assert cli.main(["failures", str(run), "--edition", str(edition.with_name("moved"))]) == 0
    assert "Not tried" not in capsys.readouterr().out


@pytest.mark.slow
def test_a_report_tells_what_became_of_outputs(edition: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(edition.with_name("run"))
    options = ["--model", "baseline/reference", "--condition", "curated", "--out", out]
    assert cli.main(["run", "--edition", str(edition), *options]) == 0
    for options_given, known in (["--failures"], {"unchanged", "altered"}), ([], set[str]()):
        capsys.readouterr()
        assert cli.main(["report", out, *options_given, "--by", "model", "--format", "json"]) == 0
        tables = {table["name"]: table for table in orjson.loads(capsys.readouterr().out)}
        place = [column["name"] for column in tables["use"]["columns"]].index("step")
        steps = {row[place] for row in tables["use"]["rows"]}
        assert {"loaded", "ran", "used", *known} == steps - {"trigger", "false trigger"}
