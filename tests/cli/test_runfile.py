"""`run.toml`: options from a file, for `run` and `plan`."""

from __future__ import annotations

import json
import re
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import polars as pl
import pytest

from finskillbench import cli

DOCUMENT = Path(__file__).parents[2] / "docs" / "running.md"
needs_llm = pytest.mark.skipif(find_spec("inspect_ai") is None, reason="the extra llm is not installed")


@pytest.fixture
def run_file(tmp_path: Path, edition: Path, monkeypatch: pytest.MonkeyPatch):
    """Writes a file that names the small edition, and gives its path."""
    monkeypatch.chdir(tmp_path)

    def write(text: str) -> str:
        path = tmp_path / "run.toml"
        path.write_text(f'edition = "{edition}"\n{text}')
        return str(path)

    return write


def entries(folder: Path) -> list[tuple[str, dict[str, object]]]:
    """Model and arguments of each row, once."""
    rows = pl.read_parquet(folder / "rows.parquet")
    found = dict.fromkeys(rows.select("model", "arguments").iter_rows())
    return [(model, json.loads(arguments)) for model, arguments in found]


def test_a_file_is_equivalent_to_a_command_line(run_file, tmp_path: Path, capsys) -> None:
    file = run_file(
        'condition = ["no_skill", "self_generated"]\nsubtask = "rebalancing"\nepochs = 2\nturns = 9\n'
        'retry_errors = false\nout = "from-file"\nmodel = ["baseline/nop"]\n'
    )
    assert cli.main(["run", "--file", file]) == 0
    words = ["--condition", "no_skill", "--condition", "self_generated", "--subtask", "rebalancing", "--epochs", "2"]
    words += ["--turns", "9", "--no-retry-errors", "--out", "from-line", "--model", "baseline/nop"]
    assert cli.main(["run", "--edition", str(tmp_path / "edition"), *words]) == 0
    one, other = (pl.read_parquet(tmp_path / name / "rows.parquet") for name in ("from-file", "from-line"))
    assert one["digest"].to_list() == other["digest"].to_list()
    assert Counter(one["condition"]) == {"no_skill": 2, "self_generated": 2}


def test_models_have_arguments_of_their_own_and_the_command_line_goes_before_all(run_file, tmp_path: Path) -> None:
    file = run_file(
        'condition = "no_skill"\ntoken-budget = 5_000\nout = "run"\n'
        '[[model]]\nname = "baseline/nop"\n'
        '[[model]]\nname = "baseline/nop"\nturns = 3\n'
        '[[model]]\nname = "baseline/trivial"\ntoken_budget = 900\n'
    )
    assert cli.main(["run", "--file", file]) == 0
    assert entries(tmp_path / "run") == [
        ("baseline/trivial", {"token_budget": 900}),
        ("baseline/nop", {"token_budget": 5_000, "turns": 3}),
        ("baseline/nop", {"token_budget": 5_000}),
    ]
    assert cli.main(["run", "--file", file, "--token-budget", "700", "--out", "other"]) == 0
    assert {arguments["token_budget"] for _, arguments in entries(tmp_path / "other")} == {700}
    assert cli.main(["run", "--file", file, "--model", "baseline/trivial", "--out", "third"]) == 0
    assert entries(tmp_path / "third") == [("baseline/trivial", {"token_budget": 5_000})]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("limt = 2\n", 2, "limt is unknown; did you mean limit?"),
        ("\n\ntokenbudget = 2\n", 4, "tokenbudget is unknown; did you mean token-budget?"),
        ("zzzz = 2\n", 2, "zzzz is unknown; choose from: "),
        ('file = "run.toml"\n', 2, "file is unknown"),
        ("limit = 2.5\n", 2, "limit must be a whole number, not 2.5"),
        ("limit = true\n", 2, "limit must be a whole number, not True"),
        ("limit = 0\n", 2, "limit: Input should be greater than or equal to 1"),
        ('max-cost = "5"\n', 2, "max-cost must be a number, not '5'"),
        ("retry-errors = 1\n", 2, "retry-errors must be true or false"),
        ("condition = [1]\n", 2, "condition must be text or a list of it"),
        ("token-budget = 900\ntoken_budget = 900\n", 3, "token_budget is given twice"),
        ('[[model]]\nname = "baseline/nop"\n\n[[model]]\nname = "baseline/nop"\nturn = 3\n', 7, "did you mean turns?"),
        ('[[model]]\nname = "baseline/nop"\nepochs = 3\n', 4, "epochs is unknown; "),
        ("[[model]]\nturns = 3\n", 2, "name is missing or not text"),
        ('model-args = { api_key = "x" }\n', 2, "model-args: model_args: api_key holds a secret"),
        ('model-args = "{}"\n', 2, "model-args must be a table"),
        ("[other]\nx = 1\n", 2, "other is unknown"),
        ("limit = \n", 2, "not valid TOML"),
    ],
)
@pytest.mark.parametrize("command", ["run", "plan"])
def test_a_wrong_file_is_one_error_line(run_file, capsys, command: str, text: str, line: int, message: str) -> None:
    assert cli.main([command, "--file", run_file(text)]) == 2
    (error,) = capsys.readouterr().err.splitlines()
    assert "run.toml" in error
    assert f"line {line}" in error
    assert message in error


def test_a_file_that_is_not_there_is_named(capsys, tmp_path: Path) -> None:
    assert cli.main(["run", "--file", str(tmp_path / "none.toml")]) == 2
    assert "none.toml: cannot be read" in capsys.readouterr().err


@needs_llm
def test_the_example_of_the_documents_can_be_planned(run_file, capsys, tmp_path: Path) -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    (tmp_path / "prices.json").write_text('{"openai-api/local/qwen": {"input": 0, "output": 0}}')
    assert cli.main(["plan", "--file", run_file(example.replace('edition = "editions/seven"\n', ""))]) == 0
    printed = capsys.readouterr().out
    for entry in (
        "openai/gpt-5 max_tokens=8192 reasoning_effort=low",
        "reasoning_effort=high",
        "openai-api/local/qwen",
    ):
        assert entry in printed
    assert "--max-cost 20.00 USD is expected to be enough" in printed
