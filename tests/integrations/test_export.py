"""Runs as Inspect logs: complete, readable by Inspect, the same every time, and without the truth."""

from __future__ import annotations

import json
import math
import shutil
import zipfile
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest
from inspect_ai.log import list_eval_logs, read_eval_log
from inspect_ai.model import ChatMessageAssistant, ChatMessageTool
from tests.integrations.conftest import PLANTED
from tests.integrations.reading import members

from finskillbench import cli
from finskillbench.edition import Edition
from finskillbench.errors import Cause, InputError, ProviderError
from finskillbench.harness.model import Message, ToolCall, ToolSpec, Turn, Usage
from finskillbench.integrations import logs as export_module
from finskillbench.integrations.logs import export_run
from finskillbench.runs.execute.run import RunResult, run
from finskillbench.runs.store.rows import write_rows

ANSWER = '{"metrics": {"revenue": 1.0}, "new_weights": {"AAA": 0.5}, "turnover": 0.1}'


class Busy:
    """Reads a field, then submits; task 1 of each subtask meets a provider that refuses."""

    def __init__(self, name: str = "test/busy") -> None:
        self.name = name

    async def generate(self, messages: Sequence[Message], tools: Sequence[ToolSpec], tool_choice: str) -> Turn:
        usage = Usage(
            input_tokens=100, cached_tokens=60, cache_write_tokens=10, output_tokens=5, reasoning_tokens=2, cost_usd=0.5
        )
        if "Do task 1." in messages[1].content:
            raise ProviderError("test/busy: HTTP 400: no", Cause.BAD_REQUEST)
        if len(messages) == 2:
            calls = (ToolCall("a", "get_task_data", '{"field": "cash"}'), ToolCall("b", "get_task_data", "broken"))
            return Turn("Let me see.", calls, usage, served_model="busy-2026")
        return Turn("", (ToolCall("c", "submit_answer", json.dumps({"answer": ANSWER})),), usage)


@pytest.fixture(scope="module")
def finished(small_edition: Edition, tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    out = tmp_path_factory.mktemp("run") / "run"
    return run(small_edition, [Busy(), "baseline/nop"], ["no_skill", "curated"], epochs=2, out=out)


@pytest.mark.slow
def test_a_log_for_each_model_and_condition(finished: RunResult, tmp_path: Path) -> None:
    steps: list[tuple[str, int, int]] = []
    out = tmp_path / "new" / "logs"
    logs = export_run(finished.folder, out, progress=lambda *step: steps.append(step))
    names = [
        f"{model}__{condition}.eval" for model in ("test-busy", "baseline-nop") for condition in ("no_skill", "curated")
    ]
    assert [path.name for path in logs] == names
    assert sorted(path.name for path in out.iterdir()) == sorted(names)
    assert len(list_eval_logs(str(out))) == 4
    assert steps[:3] == [("test-busy__no_skill", 1, 12), ("test-busy__no_skill", 2, 12), ("test-busy__no_skill", 3, 12)]


def test_a_log_that_lacks_episodes_is_no_success(finished: RunResult, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(finished.folder, folder)
    (whole,) = export_run(folder, tmp_path / "whole", ["baseline/nop"], ["no_skill"])
    write_rows(folder / "rows.parquet", finished.rows.filter(pl.col("task_id") != "pc_rebal_0"))
    (part,) = export_run(folder, tmp_path / "part", ["baseline/nop"], ["no_skill"])
    assert [read_eval_log(str(log)).status for log in (whole, part)] == ["success", "cancelled"]


def test_a_log_can_be_chosen(finished: RunResult, tmp_path: Path) -> None:
    (log,) = export_run(finished.folder, tmp_path / "logs", ["baseline/nop"], ["curated"])
    assert log.name == "baseline-nop__curated.eval"
    for models, conditions, words in (
        (["baseline/other"], None, "has no model 'baseline/other'; it holds test/busy, baseline/nop"),
        (None, ["inline"], "has no condition 'inline'; it holds no_skill, curated"),
        (None, ["none"], "condition 'none' is unknown"),
    ):
        with pytest.raises(InputError, match=words):
            export_run(finished.folder, tmp_path / "other", models, conditions)
    assert not (tmp_path / "other").exists()


def test_a_sample_tells_the_whole_episode(finished: RunResult, tmp_path: Path) -> None:
    (path,) = export_run(finished.folder, tmp_path, ["test/busy"], ["no_skill"])
    log = read_eval_log(str(path), resolve_attachments=True)
    assert log.samples is not None
    row = next(
        row for row in finished.rows.iter_rows(named=True) if (row["task_id"], row["run_idx"]) == ("pc_rebal_0", 1)
    )
    (sample,) = (each for each in log.samples if (each.id, each.epoch) == ("pc_rebal_0", 2))
    assert [message.role for message in sample.messages] == [
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
        "tool",
    ]
    assert sample.messages[1].text == sample.input
    assert "Do task 0." in str(sample.input)
    first = sample.messages[2]
    assert isinstance(first, ChatMessageAssistant)
    assert first.tool_calls is not None
    assert [(c.function, c.arguments, c.parse_error) for c in first.tool_calls] == [
        ("get_task_data", {"field": "cash"}, None),
        ("get_task_data", {}, "broken"),
    ]
    result = sample.messages[3]
    assert isinstance(result, ChatMessageTool)
    assert (result.tool_call_id, result.function, json.loads(result.text)) == (
        "a",
        "get_task_data",
        {"field": "cash", "value": 1},
    )
    assert sample.scores is not None
    score = sample.scores["verdict"]
    values = score.as_dict()
    assert (values["strict"], values["paper"]) == (row["scores"]["strict"], row["scores"]["paper"])
    assert math.isnan(float(values["certified"] or 0))
    assert (score.explanation, score.answer) == ("scored", ANSWER)
    assert sample.output.completion == ANSWER
    usage = sample.model_usage["test/busy"]
    assert (usage.input_tokens, usage.input_tokens_cache_read, usage.input_tokens_cache_write) == (60, 120, 20)
    assert (usage.output_tokens, usage.reasoning_tokens, usage.total_tokens, usage.total_cost) == (10, 4, 210, 1.0)
    assert sample.turn_count == 2
    known = sample.metadata
    assert (known["sub_task"], known["status"], known["served_models"]) == ("rebalancing", "scored", ["busy-2026"])
    assert known["incidents"] == ["invalid_arguments"]
    assert (sample.target, sample.store) == ("", {})


def test_a_failed_episode_is_an_error_without_a_score(finished: RunResult, tmp_path: Path) -> None:
    (path,) = export_run(finished.folder, tmp_path, ["test/busy"], ["no_skill"])
    log = read_eval_log(str(path))
    failed = [sample for sample in log.samples or () if sample.error is not None]
    ids = ("fa_norm_1", "pc_rebal_1", "pc_tool_1")
    assert sorted((sample.epoch, str(sample.id)) for sample in failed) == [(n, each) for n in (1, 2) for each in ids]
    assert {(sample.error.message, str(sample.scores)) for sample in failed if sample.error} == {
        ("test/busy: HTTP 400: no", "{}")
    }
    assert log.status == "error"
    assert log.results is not None
    assert (log.results.total_samples, log.results.completed_samples) == (12, 6)


def test_an_episode_out_of_turns_names_its_limit(small_edition: Edition, tmp_path: Path) -> None:
    class Talker(Busy):
        async def generate(self, messages: Sequence[Message], tools: Sequence[ToolSpec], tool_choice: str) -> Turn:
            return Turn("Well.") if tool_choice == "auto" else Turn(stop="context_overflow")

    run(small_edition, [Talker()], ["no_skill"], limit=1, subtasks=["rebalancing"], out=tmp_path / "run")
    (path,) = export_run(tmp_path / "run", tmp_path / "logs")
    (sample,) = read_eval_log(str(path)).samples or ()
    assert sample.limit is not None
    assert sample.limit.type == "context"
    assert sample.metadata["status"] == "incomplete_submission"


def test_the_header_says_what_was_run(finished: RunResult, small_edition: Edition, tmp_path: Path) -> None:
    (path,) = export_run(finished.folder, tmp_path, ["test/busy"], ["curated"])
    log = read_eval_log(str(path), header_only=True)
    spec = log.eval
    assert (spec.task, spec.model, spec.tags) == ("finskillbench/all", "test/busy", ["curated"])
    assert (spec.dataset.samples, spec.config.epochs) == (6, 2)
    assert spec.task_args == {"condition": "curated", "edition": str(small_edition.path)}
    assert spec.metadata is not None
    assert spec.metadata["edition"] == small_edition.digest
    assert spec.metadata["statuses"] == {"error": 6, "scored": 6}
    assert log.results is not None
    means = {score.name: score.metrics["mean"].value for score in log.results.scores}
    rows = [
        row
        for row in finished.rows.iter_rows(named=True)
        if (row["model"], row["condition"]) == ("test/busy", "curated")
    ]
    paper = [row["scores"]["paper"] for row in rows if row["status"] == "scored"]
    assert means["paper"] == pytest.approx(sum(paper) / len(paper))
    assert 0 < means["paper"] < 1
    assert math.isnan(means["certified"])
    assert log.stats.model_usage["test/busy"].output_tokens == 6 * 10


@pytest.mark.slow
def test_a_log_is_the_same_every_time(finished: RunResult, tmp_path: Path) -> None:
    def content(path: Path) -> dict[str, bytes]:
        with zipfile.ZipFile(path) as archive:
            return {name: archive.read(name) for name in archive.namelist()}

    first = [content(path) for path in export_run(finished.folder, tmp_path / "a")]
    assert [content(path) for path in export_run(finished.folder, tmp_path / "b")] == first
    assert len({(json.loads(log["header.json"])["eval"]["eval_id"]) for log in first}) == 4
    # Over what is there already
    assert [content(path) for path in export_run(finished.folder, tmp_path / "a")] == first


def test_no_log_holds_what_was_planted_in_the_truth(
    finished: RunResult, small_edition: Edition, tmp_path: Path
) -> None:
    stored = "".join(path.read_text() for path in small_edition.path.rglob("*.jsonl"))
    details = finished.rows["scoring_details"].to_list()
    for path in export_run(finished.folder, tmp_path):
        text = members(path)
        for word in PLANTED:
            assert word in stored
            assert word not in text, (path.name, word)
        assert not [each for each in details if json.dumps(each) in text or (len(each) > 2 and each in text)]
        assert "scoring_details" not in text


def test_nothing_half_written_stays(finished: RunResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(log: object, location: Path, **_: object) -> None:
        location.write_text("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(export_module, "write_eval_log", full)
    with pytest.raises(InputError, match=r"cannot be written \(No space left on device\)"):
        export_run(finished.folder, tmp_path / "logs")
    assert not list((tmp_path / "logs").iterdir())


def test_what_is_no_run_is_refused(finished: RunResult, small_edition: Edition, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="neither a run folder"):
        export_run(tmp_path, tmp_path / "logs")
    with pytest.raises(InputError, match="is inside the edition"):
        export_run(finished.folder, small_edition.path / "logs")
    (tmp_path / "run.json").write_bytes((finished.folder / "run.json").read_bytes())
    with pytest.raises(InputError, match="no episode has finished"):
        export_run(tmp_path, tmp_path / "logs")
    (tmp_path / "rows.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match="not a table"):
        export_run(tmp_path, tmp_path / "logs")
    finished.rows.drop("mount").write_parquet(tmp_path / "rows.parquet")
    with pytest.raises(InputError, match=r"another version .*`mount`"):
        export_run(tmp_path, tmp_path / "logs")
    (tmp_path / "rows.parquet").write_bytes((finished.folder / "rows.parquet").read_bytes())
    with pytest.raises(InputError, match="not a readable trajectory"):
        export_run(tmp_path, tmp_path / "logs")


def test_the_command(finished: RunResult, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "logs"
    assert cli.main(["export", str(finished.folder), "--out", str(out), "--condition", "no_skill"]) == 0
    assert capsys.readouterr().out.split() == [
        str(out / name) for name in ("test-busy__no_skill.eval", "baseline-nop__no_skill.eval")
    ]
    assert cli.main(["export", str(tmp_path / "none"), "--out", str(out)]) == 2


def test_without_the_extra_one_line_says_what_installs_it(
    finished: RunResult, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("finskillbench.integrations.find_spec", lambda name: None)
    assert cli.main(["export", str(finished.folder), "--out", str(tmp_path / "logs")]) == 2
    (printed,) = capsys.readouterr().err.splitlines()
    assert printed == "error: Inspect is not installed; run: pip install 'finskillbench[llm]' (in a checkout: make llm)"
    assert not (tmp_path / "logs").exists()
