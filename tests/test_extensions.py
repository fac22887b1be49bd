"""Entry points that cannot be used: one line with the distribution and a remedy, and only where they are needed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.metadata import Distribution, EntryPoint
from types import ModuleType

import pytest
import typer

from finskillbench import cli, extensions
from finskillbench.errors import InputError
from finskillbench.extensions import COMMANDS, HARNESSES, PRICES, REPORTS, registered_extensions

OF = " of someones-package 2.1"


class _Package(Distribution):
    def __init__(self, name: str) -> None:
        self._name = name

    def read_text(self, filename: str) -> str | None:
        return f"Metadata-Version: 2.1\nName: {self._name}\nVersion: 2.1\n" if filename == "METADATA" else None

    def locate_file(self, path: object) -> object:
        raise NotImplementedError


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Adds entry points of a package beside those that there are, with what they name in the module `theirs`."""
    theirs = ModuleType("theirs")
    monkeypatch.setitem(sys.modules, "theirs", theirs)
    monkeypatch.setattr(cli, "_command", cli._command.__wrapped__)
    real = extensions.entry_points
    added: list[EntryPoint] = []
    monkeypatch.setattr(
        extensions, "entry_points", lambda group: [*real(group=group), *(one for one in added if one.group == group)]
    )

    def installed(group: str, name: str, value: object = None, package: str = "someones-package") -> None:
        if value is not None:
            setattr(theirs, name.replace(".", "_"), value)
        point = EntryPoint(name, f"theirs:{name.replace('.', '_')}", group)
        added.append(point._for(_Package(package)))  # type: ignore[attr-defined]

    return installed


def _app(text: str) -> typer.Typer:
    app = typer.Typer()

    @app.command()
    def speak() -> None:
        """Speak."""
        typer.echo(text)

    return app


def test_commands_join_the_groups(install: Callable[..., None], capsys: pytest.CaptureFixture[str]) -> None:
    install(COMMANDS, "alone", _app("alone"))
    install(COMMANDS, "data.alone", _app("under data"))
    group = typer.Typer(help="Several.")
    group.command("one")(lambda: typer.echo("one of several"))
    group.command("two")(lambda: None)
    install(COMMANDS, "several", group)
    for arguments, said in (
        (["alone"], "alone"),
        (["data", "alone"], "under data"),
        (["several", "one"], "one of sev"),
    ):
        assert cli.main(arguments) == 0
        assert said in capsys.readouterr().out
    assert cli.main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert "Speak." in shown
    assert "Several." in shown
    assert cli.main(["severa"]) == 2
    assert "Did you mean 'several'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("gone", None, "cannot be loaded (AttributeError: module 'theirs' has no attribute 'gone'); fix or uninstall"),
        ("wrong", 3, "is a int, not a Typer; fix or uninstall the package"),
        ("run", _app("mine"), "its name is taken by finskillbench; rename it"),
        ("data.info", _app("mine"), "its name is taken by finskillbench; rename it"),
        ("submit", _app("mine"), "its name is taken by entry point submit"),
    ],
)
def test_a_broken_command_stops_no_other(
    name: str, value: object, why: str, install: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    install(COMMANDS, name, value)
    group = ["data"] if name.startswith("data.") else []
    assert cli.main(["skills", "--help"]) == 0
    assert capsys.readouterr().err == ""
    assert cli.main([*group, "--help"]) == 0
    (warning,) = capsys.readouterr().err.splitlines()
    assert warning.startswith("warning: entry point " + name)
    assert OF in warning
    assert why in warning
    if name not in ("run", "data.info"):
        assert cli.main([name]) == 2
        assert capsys.readouterr().err == warning.replace("warning", "error") + "\n"


def test_broken_reports_harnesses_and_prices(
    install: Callable[..., None], tmp_path, capsys: pytest.CaptureFixture[str]
) -> None:
    for group in (REPORTS, HARNESSES, PRICES):
        install(group, "gone")
    for arguments in (
        ["report", str(tmp_path), "--format", "gone"],
        ["run", "--harness", "gone", "--edition", str(tmp_path)],
        [
            "data",
            "fetch",
            "--from=2025-01",
            "--to=2025-01",
            f"--out={tmp_path / 'raw'}",
            "--prices=gone",
            "--user-agent=A me@x.org",
        ],
    ):
        assert cli.main(arguments) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(f"error: entry point gone (theirs:gone){OF}: cannot be loaded")
    assert cli.main(["doctor"]) in (0, 1)
    missing = [line for line in capsys.readouterr().out.splitlines() if line.startswith("MISSING  extension")]
    assert len(missing) == 3
    assert all(OF in line for line in missing)


def test_an_unknown_report_or_harness_is_told_which_there_are(
    install: Callable[..., None], tmp_path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["report", str(tmp_path), "--format", "mine"]) == 2
    assert "choose from: table, md, csv, latex, json, html, validation" in capsys.readouterr().err
    assert cli.main(["run", "--harness", "mine", "--edition", str(tmp_path)]) == 2
    assert "choose from: finskillbench, hermes" in capsys.readouterr().err


def test_a_name_that_two_packages_register_is_of_neither(install: Callable[..., None]) -> None:
    install(COMMANDS, "both", _app("a"), "one-package")
    install(COMMANDS, "both", _app("b"), "another-package")
    with pytest.raises(
        InputError, match=r"of one-package 2\.1: its name is taken by .* of another-package 2\.1; rename"
    ):
        registered_extensions(COMMANDS)["both"].load(typer.Typer)
