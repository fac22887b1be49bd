"""`finskillbench run`, and its defaults."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import polars as pl
import pytest

from finskillbench import cli
from finskillbench.cli.display.console import Progress
from finskillbench.edition import load_edition
from finskillbench.errors import InputError
from finskillbench.runs.execute.run import RunResult
from finskillbench.runs.plan import streams
from finskillbench.runs.store.rows import TIMINGS, to_frame
from finskillbench.runs.store.version import scorer_version

NOP = ["--model", "baseline/nop", "--condition", "no_skill"]
needs_llm = pytest.mark.skipif(find_spec("inspect_ai") is None, reason="the extra llm is not installed")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs and caches of these tests stay in the test's own folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_a_table_its_files_and_the_same_command_again(edition: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["run", "--edition", str(edition), *NOP, "--epochs", "2"]
    assert cli.main(arguments) == 0
    first = capsys.readouterr().out
    (folder,) = Path("runs").iterdir()
    assert f"Rows:         {folder / 'rows.parquet'}" in first
    assert "Episodes:     6 run\n" in first
    assert pl.read_parquet(folder / "rows.parquet")["task_id"].value_counts()["count"].to_list() == [2, 2, 2]

    assert cli.main(arguments) == 0
    second = capsys.readouterr().out
    assert "Episodes:     0 run, 6 kept from before\n" in second
    assert second.split("Episodes:")[0] == first.split("Episodes:")[0]


@pytest.mark.slow
def test_a_run_that_has_not_finished_is_reported_from_its_journal(
    edition: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["run", "--edition", str(edition), *NOP, "--out", "mine"]) == 0
    capsys.readouterr()
    assert cli.main(["report", "mine", "--format", "json"]) == 0
    whole = capsys.readouterr().out
    Path("mine/rows.parquet").unlink()
    assert cli.main(["report", "mine", "--format", "json"]) == 0
    assert capsys.readouterr().out == whole
    journal = Path("mine/journal.jsonl").read_text().splitlines(keepends=True)
    finished = [place for place, line in enumerate(journal) if '"finished"' in line]
    Path("mine/journal.jsonl").write_text("".join(journal[: finished[-1]]))
    assert cli.main(["report", "mine", "--format", "json"]) == 0
    assert "mine: not finished, 1 of 3 episodes have no row yet" in capsys.readouterr().err


def test_a_run_of_programs_ends_with_how_to_run_a_model(edition: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "--edition", str(edition), *NOP, "--out", "mine"]) == 0
    printed = capsys.readouterr().out
    assert "1 baseline program answered 3 episodes under 1 condition; no language model took part" in printed
    (command,) = (line.split() for line in printed.splitlines() if "finskillbench run --model" in line)
    assert cli.main([*command[1:], "--edition", str(edition), "--help"]) == 0


@pytest.mark.slow
def test_its_page_is_written_on_request_and_its_path_printed(edition: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("font_lato")
    assert cli.main(["run", "--edition", str(edition), *NOP, "--out", "mine", "--page"]) == 0
    assert "Page:         mine/report/index.html\n" in capsys.readouterr().out
    assert Path("mine/report/index.html").is_file()


def test_a_condition_may_have_its_own_limit(edition: Path, capsys: pytest.CaptureFixture[str]) -> None:
    which = ["--model", "baseline/nop", "--condition", "no_skill", "--condition", "placebo", "--out", "mine"]
    arguments = ["run", "--edition", str(edition), *which, "--limit-for", "no_skill=1"]
    assert cli.main(arguments) == 0
    rows = pl.read_parquet("mine/rows.parquet")
    subtasks = rows["sub_task"].n_unique()
    assert rows.filter(condition="no_skill").height == subtasks
    assert rows.filter(condition="placebo").height == 3
    assert cli.main(arguments) == 0
    assert f"Episodes:     0 run, {rows.height} kept from before\n" in capsys.readouterr().out
    for wrong in ("no_skill", "no_skill=", "=3", "no_skill=-1"):
        assert cli.main([*arguments[:-1], wrong]) == 2
        assert f"--limit-for '{wrong}' is not CONDITION=N, such as no_skill=20" in capsys.readouterr().err


async def broken(task, tools):
    raise KeyError("covariance matrix")


def test_a_run_in_error_ends_with_the_first_error_of_each_cause(
    edition: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--model", f"{__name__}:broken", "--condition", "no_skill", "--out", "mine")
    assert cli.main(["run", "--edition", str(edition), *words]) == 1
    errors = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Error:")]
    assert errors == ["Error:        adapter: agent/broken: KeyError: 'covariance matrix'"]


def test_a_harness_that_there_is_not_is_refused(edition: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["run", "--edition", str(edition), *NOP, "--harness"]
    assert cli.main([*arguments, "zeus"]) == 2
    assert capsys.readouterr().err == "error: harness 'zeus' is unknown; choose from: finskillbench, hermes\n"
    assert cli.main([*arguments, "hermes", "--hermes-python", "/nowhere/python"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: Hermes Agent 0.19.0 is not installed (/nowhere/python); run make hermes")


def test_other_arguments_get_a_folder_of_their_own(edition: Path) -> None:
    for limit in ("1", "2"):
        assert cli.main(["run", "--edition", str(edition), *NOP, "--subtask", "rebalancing", "--limit", limit]) == 0
    assert len(list(Path("runs").iterdir())) == 2


@pytest.mark.slow
def test_a_named_folder_grows(edition: Path, capsys: pytest.CaptureFixture[str]) -> None:
    few_of_it = ["run", "--edition", str(edition), *NOP, "--out", "mine"]
    arguments = [*few_of_it, "--epochs", "2"]
    assert cli.main(few_of_it) == 0
    few = pl.read_parquet("mine/rows.parquet").height
    capsys.readouterr()
    assert cli.main(arguments) == 0
    all_of_it = pl.read_parquet("mine/rows.parquet").height
    assert few < all_of_it
    assert f"Episodes:     {all_of_it - few} run, {few} kept from before\n" in capsys.readouterr().out
    assert cli.main(few_of_it) == 0
    counts = f"Episodes:     0 run, {few} kept from before, {all_of_it - few} of other commands in the folder\n"
    assert counts in capsys.readouterr().out
    assert pl.read_parquet("mine/rows.parquet").height == all_of_it


def test_a_folder_judged_by_other_scorers_names_the_command_that_mends_it(
    edition: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["run", "--edition", str(edition), *NOP, "--out", "mine"]
    assert cli.main(arguments) == 0
    record = Path("mine/run.json")
    record.write_text(record.read_text().replace(scorer_version(), "f" * 12))
    assert cli.main(arguments) == 2
    assert "judge it again with finskillbench rescore" in capsys.readouterr().err


@pytest.mark.slow
@needs_llm
def test_a_missing_key_or_price_is_refused_before_an_edition_is_built(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("MINE_API_KEY", raising=False)
    monkeypatch.setattr("finskillbench.edition.build_edition", lambda **_: pytest.fail("an edition was built"))
    model = ["run", "--model", "openai-api/mine/m"]
    for arguments, printed in (
        ([], "MINE_API_KEY"),
        (["--base-url", "http://x", "--max-cost", "1"], "needs the price"),
    ):
        assert cli.main([*model, *arguments]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert printed in line


@needs_llm
def test_timeouts_and_effort_reach_the_model(edition: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def refuse(name: str, options: Any) -> Any:
        seen.append((options.request_timeout, options.attempt_timeout, options.reasoning_effort))
        raise InputError("enough")

    monkeypatch.setattr("finskillbench.runs.execute.run.get_participant", refuse)
    options = ["--request-timeout", "7", "--attempt-timeout", "9", "--reasoning-effort", "low"]
    assert cli.main(["run", "--edition", str(edition), "--model", "openai-api/mine/m", *options]) == 2
    assert seen == [(7.0, 9.0, "low")]


def test_a_folder_that_cannot_be_made(edition: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("file").write_text("")
    assert cli.main(["run", "--edition", str(edition), *NOP, "--out", "file/run"]) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith("error: file/run: cannot be created")


@pytest.mark.slow
def test_the_default_edition_is_built_once_into_the_cache(edition: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[Path] = []

    def build(*, suite: str, out: Path, progress: Progress) -> None:
        assert suite == "paper"
        built.append(out)
        out.parent.mkdir(parents=True, exist_ok=True)
        edition.rename(out)

    monkeypatch.setattr("finskillbench.edition.build_edition", build)
    for _ in range(2):
        assert cli.main(["run", *NOP]) == 0
    assert len(built) == 1
    assert built[0].is_relative_to(Path("cache").resolve())


def test_two_first_commands_build_the_default_edition_once(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[Path] = []
    waiting = threading.Event()

    def build(*, suite: str, out: Path, progress: object) -> None:
        built.append(out)
        assert waiting.wait(20)
        out.mkdir()

    monkeypatch.setattr("finskillbench.edition.build_edition", build)

    def notice(stage: str) -> None:
        assert stage.startswith("waiting for another process")
        waiting.set()

    with ThreadPoolExecutor() as pool:
        one, two = [pool.submit(streams.default_edition, cast(Progress, notice)) for _ in range(2)]
        assert one.result(30) == two.result(30)
    assert len(built) == 1


@pytest.mark.parametrize("place", ["", "runs/a"])
def test_an_edition_is_never_run_into(place: str, edition: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = edition / place
    assert cli.main(["run", "--edition", str(edition), *NOP, "--out", str(out)]) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith(f"error: {out} is inside the edition {edition}")
    load_edition(edition)


def test_the_default_folder_changes_with_edition_arguments_and_code(
    edition: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = load_edition(edition)
    folder = streams.run_folder(loaded, ["a"], 1)
    assert folder == streams.run_folder(loaded, ["a"], 1)
    assert folder != streams.run_folder(loaded, ["a"], 2)
    monkeypatch.setattr(streams, "_RUNNERS", ("episode.py",))
    assert folder != streams.run_folder(loaded, ["a"], 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--shard", "3/2"], "shard '3/2' is not valid; write i/n with 1 <= i <= n, for example 1/4"),
        (["--max-cost", "-1"], "Invalid value for '--max-cost': Input should be greater than or equal to 0"),
        (["--max-cost", "nan"], "Invalid value for '--max-cost': Input should be greater than or equal to 0"),
        (["--max-tokens", "0"], "Invalid value for '--max-tokens': Input should be greater than or equal to 1"),
        (["--limit", "0"], "Invalid value for '--limit'"),
        *((["--seed", "9" * 20], "Invalid value for '--seed'"), (["--limit", "9" * 20], "Invalid value for '--limit'")),
        (["--epochs", "9" * 20], "Invalid value for '--epochs'"),
        (["--model", "baseline/none"], "model 'baseline/none' is unknown"),
        (["--condition", "none"], "condition 'none' is unknown"),
        (["--subtask", "chess"], "unknown subtask 'chess'"),
        (["--prices", "absent.json"], "absent.json: "),
    ],
)
@pytest.mark.parametrize("command", ["run", "plan"])
def test_an_option_that_makes_no_sense_is_one_line(
    command: str, options: list[str], message: str, edition: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([command, "--edition", str(edition), "--condition", "no_skill", *options]) == 2
    captured = capsys.readouterr()
    lines = captured.err.splitlines()
    assert captured.out == ""
    assert lines[-1].startswith(f"error: {message}")
    assert len([line for line in lines if line.startswith("error")]) == 1
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("command", "options", "message"),
    [
        ("run", ["--max-cost", "inf"], "max_cost is inf; it must be a number of US dollars, 0 or more"),
        ("plan", ["--like", "nowhere"], "Invalid value for '--like'"),
    ],
)
def test_an_option_of_one_command_is_one_line_too(
    command: str, options: list[str], message: str, edition: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([command, "--edition", str(edition), *NOP, *options]) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith(f"error: {message}")


def test_shards_are_run_and_merged(edition: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["run", "--edition", str(edition), *NOP, "--epochs", "3"]
    assert cli.main([*arguments, "--out", "whole"]) == 0
    for number in ("1", "2"):
        assert cli.main([*arguments, "--shard", f"{number}/2", "--out", f"part{number}"]) == 0
    capsys.readouterr()
    assert cli.main(["merge", "all", "part2", "part1"]) == 0
    assert capsys.readouterr().out == "Rows:         all/rows.parquet\nEpisodes:     9 of 9\n"
    rows = [pl.read_parquet(Path(name) / "rows.parquet").drop(TIMINGS) for name in ("all", "whole")]
    assert rows[0].equals(rows[1])

    assert cli.main(["merge", "some", "part1"]) == 1
    printed = capsys.readouterr().out.splitlines()
    done = pl.read_parquet("part1/rows.parquet").height
    assert printed[1] == f"Episodes:     {done} of 9"
    assert printed[2].startswith(f"Missing:      {9 - done}, the first is ")
    assert cli.main(["merge", "other", "part1", "nowhere"]) == 2
    assert capsys.readouterr().err.startswith("error: nowhere/run.json: not a readable run record")


def test_shards_without_a_folder_get_one_each(edition: Path) -> None:
    for shard in ("1/2", "2/2"):
        assert cli.main(["run", "--edition", str(edition), *NOP, "--shard", shard]) == 0
    assert len(list(Path("runs").iterdir())) == 2


def result(rows: pl.DataFrame, **more: Any) -> RunResult:
    numbers = {"ran": 3, "kept": 0, "errors": 0, "dropped": 0, "not_run": 0, "stopped": {}}
    return RunResult(Path("x"), rows, **{**numbers, **more})


@pytest.mark.parametrize(
    ("more", "code", "printed"),
    [
        ({}, 0, ["Episodes:     3 run"]),
        (
            {"errors": 2, "not_run": 4, "stopped": {"a/b": "auth: no key"}},
            1,
            ["Episodes:     3 run, 2 ended in an error, 4 not run", "Stopped:      a/b: auth: no key"],
        ),
        (
            {"kept": 5, "dropped": 1, "stopped": {"run": "interrupted"}},
            130,
            ["Episodes:     3 run, 5 kept from before, 1 dropped in flight", "Stopped:      interrupted"],
        ),
        (
            {"ran": 0, "not_run": 9, "stopped": {"run": "--max-cost 1 is reached"}},
            1,
            ["Episodes:     0 run, 9 not run", "Stopped:      --max-cost 1 is reached"],
        ),
    ],
)
def test_the_last_lines_count_every_episode(
    edition: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    more: dict[str, Any],
    code: int,
    printed: list[str],
) -> None:
    rows = to_frame([])
    monkeypatch.setattr("finskillbench.runs.execute.run.execute", lambda *_, **__: result(rows, **more))
    assert cli.main(["run", "--edition", str(edition), *NOP]) == code
    lines = capsys.readouterr().out.splitlines()
    at = lines.index(printed[0])
    assert lines[at : at + len(printed)] == printed
    assert (len(lines) > at + len(printed)) is bool(code)
