"""Behaviour common to all commands: help, exit codes, one line per error, and a quick start."""

from __future__ import annotations

import errno
import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest

from finskillbench import cli
from finskillbench.cli.display import console
from finskillbench.errors import InternalError, SourceError

COMMANDS = [
    ["data", "build"],
    ["data", "info"],
    ["data", "validate"],
    ["data", "import"],
    ["audit"],
    ["doctor"],
    ["export-tasks"],
    ["run"],
    ["score"],
    ["skills", "list"],
    ["skills", "lint"],
    ["skills", "new"],
    ["skills", "show"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_helps_with_an_example(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*command, "--help"]) == 0
    shown = capsys.readouterr().out
    assert "Example" in shown
    assert f"finskillbench {' '.join(command)}" in shown


@pytest.mark.parametrize("alone", [[], ["data"], ["skills"]], ids=str)
def test_a_group_alone_lists_its_commands(alone: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(alone) == 0
    assert ("Commands:" if alone else "Start:") in capsys.readouterr().out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == "finskillbench 0.1.0\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["data", "build"],
        ["data", "build", "--companies", "many", "--out", "x"],
        ["data", "build", "--source", "moon", "--out", "x"],
        ["data", "build", "--source", "raw-dir", "--out", "x"],
        ["data", "build", "--raw-dir", ".", "--out", "x"],
        ["skills", "show", "no-such-package"],
        ["skills", "new", "Two Words"],
        ["skills", "new", "."],
    ],
    ids=" ".join,
)
def test_wrong_arguments_are_one_line_and_exit_code_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("error: ")
    assert printed.err.count("\n") == 1


@pytest.mark.parametrize(
    ("raised", "code", "printed"),
    [
        (SourceError("prices.csv", "two\nlines", line=3), 2, "error: prices.csv, line 3: two lines\n"),
        (InternalError("lost"), 2, "error: lost (a bug in finskillbench: please report it)\n"),
        (OSError(errno.EROFS, "Read-only file system", "out/x"), 2, "error: out/x: Read-only file system; "),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
    ids=["user", "bug", "disk", "interrupt"],
)
def test_exit_codes(
    raised: BaseException, code: int, printed: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise raised

    monkeypatch.setattr(console, "help_when_alone", fail)
    assert cli.main([]) == code
    shown = capsys.readouterr().err
    assert shown.startswith(printed)
    assert shown.count("\n") == 1


@pytest.mark.parametrize(("option", "shown"), [([], ""), (["-v"], "INFO"), (["-vv"], "INFO, DEBUG")], ids=str)
def test_the_log_goes_to_standard_error(
    option: list[str], shown: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An error stays one line without -v; -vv shows the traceback of what failed."""

    def fail(*_: object) -> None:
        log = logging.getLogger("finskillbench.here")
        log.info("at work")
        try:
            raise ValueError("the cause")
        except ValueError as error:
            log.debug("it failed", exc_info=True)
            raise InternalError("lost") from error

    monkeypatch.setattr(console, "help_when_alone", fail)
    for _ in range(2):  # a second command in a process does not log twice
        assert cli.main(option) == 2
        printed = capsys.readouterr().err
        assert printed.endswith("error: lost (a bug in finskillbench: please report it)\n")
        assert printed.count("INFO finskillbench.here: at work\n") == ("INFO" in shown)
        assert printed.count("DEBUG finskillbench.here: it failed\n") == ("DEBUG" in shown)
        assert ("ValueError: the cause" in printed) == ("DEBUG" in shown)
        assert printed.count("\n") == 1 or option


@pytest.mark.parametrize("arguments", [["data", "info", "nowhere"], ["doctor"]])
def test_a_limit_that_no_library_fits_in_is_one_line(arguments: list[str]) -> None:
    """As `ulimit -v 700000` sets it: libraries ended in an ImportError, or ended the process."""
    program = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (700_000 << 10,) * 2); "
        "from finskillbench.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False, timeout=600
    )
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: address space is limited to 683 MB, but the libraries need 1,400 MB")


def test_help_loads_nothing_heavy() -> None:
    """Starting must not pay for tables and solvers."""
    probe = (
        "import sys; from finskillbench.cli import main; main(['run', '--help']); print(*sys.modules, file=sys.stderr)"
    )
    loaded = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True).stderr.split()
    assert not {"numpy", "polars", "scipy", "clarabel", "pyarrow", "sklearn"} & set(loaded)


def test_the_help_groups_the_commands_and_hides_the_former_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == 0
    shown = capsys.readouterr().out
    places = [shown.index(f"\n{title}:\n") for title in ("Start", "Evaluate", "Report", "Editions", "Publish")]
    assert places == sorted(places)
    assert "\nOther:\n" not in shown
    assert "\n  read " not in shown
    assert cli.main(["read", "--help"]) == 0


@pytest.mark.parametrize("arguments", [["--json"], ["--json", "report.json"], []], ids=str)
def test_json_goes_to_standard_output_or_a_file(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "raw").mkdir()
    assert cli.main(["data", "doctor", "raw", *arguments]) == 1
    shown = capsys.readouterr().out
    printed = {"--json": shown, "report.json": (tmp_path / "report.json").is_file() and Path("report.json").read_text()}
    if arguments:
        assert isinstance(json.loads(printed[arguments[-1]] or ""), dict)
    assert shown.startswith("{") is (arguments == ["--json"])
