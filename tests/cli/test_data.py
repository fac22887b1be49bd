"""`finskillbench data`."""

from __future__ import annotations

from pathlib import Path

import pytest

from finskillbench import cli


def test_info_describes_an_edition(edition: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["data", "info", str(edition)]) == 0
    shown = capsys.readouterr().out
    assert "kind synthetic, names 2, seed 1" in shown
    assert "Truth:     included" in shown
    assert f"{'rebalancing':<28}    1  1 easy" in shown
    assert "note: Made for tests." in shown


def test_a_changed_byte_is_one_line_and_exit_code_2(edition: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = edition / "truth" / "rebalancing.jsonl"
    content = bytearray(file.read_bytes())
    content[20] ^= 1
    file.write_bytes(content)
    assert cli.main(["data", "info", str(edition)]) == 2
    assert capsys.readouterr().err == (
        f"error: {file} was altered since the edition was built; restore or rebuild it\n"
    )


@pytest.mark.parametrize("command", [["data", "info"], ["data", "validate"], ["run", "--edition"]], ids=" ".join)
def test_a_folder_that_is_no_edition(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main([*command, str(tmp_path)]) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith(f"error: {tmp_path} is no edition")
    assert list(tmp_path.iterdir()) == []


def test_build_into_a_place_that_cannot_be_written_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder below a file stands in for a read-only one: no permission stops root."""
    occupied = tmp_path / "file"
    occupied.write_text("")
    assert cli.main(["data", "build", "--out", str(occupied / "edition")]) == 2
    told = capsys.readouterr().err.splitlines()[-1]
    assert told.startswith(f"error: {occupied / 'edition'}: cannot be written")
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_a_build_that_fails_half_way_leaves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    arguments = ["data", "build", "--source", "raw-dir", "--raw-dir", str(raw), "--out", str(tmp_path / "edition")]
    assert cli.main(arguments) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith("error: ")
    assert [entry.name for entry in tmp_path.iterdir()] == ["raw"]
