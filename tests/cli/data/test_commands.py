"""`finskillbench data`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from finskillbench import cli
from finskillbench import edition as editions
from finskillbench.edition.checks.catalog import CheckReport, Level
from finskillbench.findings import Check, CheckState, Finding


def test_info_describes_an_edition(edition: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["data", "info", str(edition)]) == 0
    shown = capsys.readouterr().out
    assert "kind synthetic, names 2, seed 1" in shown
    assert "Truth:     included" in shown
    assert f"{'rebalancing':<28}    1  1 easy" in shown
    assert "note: Made for tests." in shown
    assert "contamination: everything in it is fictional" in shown


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
    assert capsys.readouterr().err.splitlines()[-1].startswith(f"error: {tmp_path} is not an edition")
    assert list(tmp_path.iterdir()) == []


def test_build_into_a_place_that_cannot_be_written_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Use a folder below a file instead of a read-only one, because root ignores permissions."""
    occupied = tmp_path / "file"
    occupied.write_text("")
    assert cli.main(["data", "build", "--out", str(occupied / "edition")]) == 2
    printed = capsys.readouterr().err.splitlines()[-1]
    assert printed.startswith(f"error: {occupied / 'edition'}: cannot be written")
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    "command",
    [["data", "build"], ["data", "import", "."], ["score", "a", "b"], ["run"]],
    ids=lambda command: command[-1],
)
def test_an_empty_out_is_refused(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main([*command, "--out", ""]) == 2
    assert capsys.readouterr().err == "error: --out is empty; name a path\n"
    assert list(tmp_path.iterdir()) == []


def test_a_seed_over_64_bits_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["data", "build", "--seed", "9" * 20, "--out", str(tmp_path / "edition")]) == 2
    (printed,) = capsys.readouterr().err.splitlines()
    assert printed.startswith("error: Invalid value for '--seed'")
    assert list(tmp_path.iterdir()) == []


def test_a_build_into_an_edition_is_refused(edition: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["data", "build", "--out", str(edition / "new")]) == 2
    assert f"is inside the edition {edition}" in capsys.readouterr().err
    editions.load_edition(edition)


def test_a_build_that_fails_half_way_leaves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    arguments = ["data", "build", "--source", "raw-dir", "--raw-dir", str(raw), "--out", str(tmp_path / "edition")]
    assert cli.main(arguments) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith("error: ")
    assert [entry.name for entry in tmp_path.iterdir()] == ["raw"]


def test_validate_shows_findings_and_fails_with_exit_code_1(
    edition: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    findings = tuple(Finding(CheckState.FAIL, f"pc_{number}", "turnover is 0.3, allowed 0.2") for number in range(7))
    checks = (
        Check("portfolio_construction", "coverage", CheckState.PASS, {"episodes": 3}),
        Check("portfolio_construction", "truth", CheckState.FAIL, {"episodes": 7}, findings),
        Check("portfolio_construction", "prices", CheckState.SKIP, {}, reason="no panels"),
        Check("risk_management", "dates", CheckState.SKIP, {}, reason="no episodes"),
        Check("risk_management", "stress", CheckState.SKIP, {}, reason="no episodes"),
    )
    report = CheckReport("d", (Level.INTEGRITY, Level.LABELS), 10, checks)
    monkeypatch.setattr("finskillbench.edition.checks.engine.validate_edition", lambda *_: report)
    assert cli.main(["data", "validate", str(edition)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "portfolio construction",
        "PASS  coverage episodes 3",
        "FAIL  truth    episodes 7",
        *[f"      FAIL pc_{number}: turnover is 0.3, allowed 0.2" for number in range(5)],
        "      and 2 more; --json has all",
        "SKIP  prices   no panels",
        "risk management",
        "SKIP  all 2    no episodes",
        "10 episodes, 7 findings: 1 PASS, 1 FAIL, 3 SKIP",
    ]
    assert cli.main(["data", "validate", str(edition), "--json"]) == 1
    assert len(orjson.loads(capsys.readouterr().out)["checks"][1]["findings"]) == 7


def test_build_describes_its_edition(
    synthetic_edition: editions.Edition, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    received: dict[str, object] = {}

    def build_edition(progress: Callable[[str], None], **options: object) -> editions.Edition:
        received.update(options)
        progress("proving rebalancing")
        return synthetic_edition

    monkeypatch.setattr("finskillbench.edition.build.build_edition", build_edition)
    assert cli.main(["data", "build", "--companies", "30", "--out", "editions/new"]) == 0
    assert received == {
        "source": "synthetic",
        "raw_dir": None,
        "seed": 1,
        "companies": 30,
        "suite": "paper",
        "disclosure": None,
        "catalog": None,
        "cluster": None,
        "out": Path("editions/new"),
    }
    captured = capsys.readouterr()
    assert "proving rebalancing" in captured.err
    assert "kind synthetic, names 30, seed 1" in captured.out


def test_mistakes_of_a_catalog_are_a_line_each_and_leave_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine, out = tmp_path / "mine", tmp_path / "edition"
    assert cli.main(["data", "catalog", "--out", str(mine)]) == 0
    written = capsys.readouterr().out.splitlines()
    assert {str(mine / "mandates.json"), str(mine / "scenarios.json")} <= set(written)
    mandates = mine / "mandates.json"
    mandates.write_text(mandates.read_text().replace("0.08}", "8}").replace('"hard"', '"heavy"'))
    assert cli.main(["data", "build", "--catalog", str(mine), "--out", str(out)]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) > 2
    assert all(line.startswith("error: mandates.json, line ") for line in lines)
    assert not out.exists()
    assert cli.main(["data", "build", "--catalog", str(tmp_path / "none"), "--out", str(out)]) == 2
    assert capsys.readouterr().err.startswith("error: --catalog must name a folder of catalog files, not ")
