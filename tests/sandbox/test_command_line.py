"""A script's own command line."""

import json
from pathlib import Path

import pytest

from finskillbench.errors import InputError
from finskillbench.sandbox.script import cli


def main(payload: dict) -> dict:
    """A script's entry."""
    if payload.get("bad"):
        raise InputError("weights: must sum to 1")
    return {"y": payload["x"] + 1}


def test_the_result_is_printed_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in.json").write_text('{"x": 1}')
    cli(main, ["--input", str(tmp_path / "in.json")])
    assert json.loads(capsys.readouterr().out) == {"y": 2}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "cannot be read as JSON"),
        ("[1]", "holds a JSON list, expected an object"),
        ('{"x": NaN}', "NaN is not a JSON number"),
        ("[" * 100_000, "cannot be read as JSON"),
        ("{}", "field 'x' is missing or unknown"),
        ('{"x": "a"}', "can only concatenate str"),
        ('{"bad": true}', "weights: must sum to 1"),
        ('{"x": 1e999}', "Out of range float"),
    ],
)
def test_bad_input_is_one_line_and_code_2(
    text: str, error: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in.json").write_text(text)
    with pytest.raises(SystemExit) as ended:
        cli(main, ["--input", str(tmp_path / "in.json")])
    assert ended.value.code == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert error in captured.err
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize("arguments", [[], ["--input"], ["--input", "nothing.json"], ["--inputs", "x", "y"]])
def test_bad_arguments_are_one_line_and_code_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli(main, arguments)
    assert ended.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1
