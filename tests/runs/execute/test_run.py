"""Runs: complete, resumable, refused where they would mix, with rows as the specification names them."""

import asyncio
import itertools

import orjson
import polars as pl
import pytest

from finskillbench.errors import Cause, EditionError, InputError, ProviderError
from finskillbench.harness import conditions as conditions_module
from finskillbench.harness.model import Turn
from finskillbench.harness.programs.program import Nop
from finskillbench.runs.execute.run import run
from finskillbench.runs.store.journal import exclusive, read_history, read_trajectory
from finskillbench.runs.store.rows import SCHEMA, TIMINGS, to_frame

SPECIFIED = {
    *(
        "model",
        "harness",
        "domain",
        "condition",
        "task_id",
        "sub_task",
        "difficulty",
        "cluster",
        "as_of_date",
        "run_idx",
    ),
    *("score", "scores", "status", "valid_json", "scoring_method", "scoring_details", "episodes"),
    *("total_input_tokens", "total_output_tokens", "cost_usd", "skills_loaded", "scripts_run", "tool_calls"),
    *("error", "latency_seconds"),
}
PLAIN = ["no_skill", "self_generated"]


def steady(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.drop(TIMINGS)


def test_a_run_leaves_rows_journal_trajectories_and_record(edition, oracle, tmp_path) -> None:
    out = tmp_path / "run"
    seen = []
    result = run(
        edition, [oracle(), "baseline/nop"], PLAIN, out=out, progress=lambda board, row: seen.append(board.done)
    )
    assert (result.ran, result.kept, result.errors) == (48, 0, 0)
    assert set(result.rows.columns) >= SPECIFIED
    assert result.rows.columns == list(SCHEMA)
    assert pl.read_parquet(out / "rows.parquet").equals(result.rows)
    assert seen == list(range(49))
    means = result.rows.group_by("model").agg(pl.col("scores").struct.field("paper").mean()).sort("model")
    assert means["paper"].to_list() == [0.0, 1.0]
    assert to_frame(read_history(out).rows[item] for item in sorted(read_history(out).rows)).equals(
        result.rows.sort("model", "condition", "task_id", "run_idx")
    )
    trajectories = sorted((out / "trajectories").rglob("*.json.gz"))
    assert len(trajectories) == 48
    trace = read_trajectory(trajectories[-1]).trace
    assert trace.messages[0].role == "system"
    assert trace.tool_calls[0].name == "submit_answer"
    record = orjson.loads((out / "run.json").read_bytes())
    assert record["mounts"]["no_skill"]["packages"] == {}
    assert record["edition_digest"] == edition.digest
    assert not list(out.rglob("*.part"))
    assert not (out / "scratch").exists()


def test_a_row_says_what_happened(edition, oracle, tmp_path) -> None:
    row = run(edition, [oracle()], ["no_skill"], limit=1, out=tmp_path).rows.row(0, named=True)
    assert row["scores"]["paper"] == 1.0
    assert (row["model"], row["condition"], row["task_id"], row["run_idx"]) == (
        "test/oracle",
        "no_skill",
        "pc_uncon_000",
        0,
    )
    assert (row["status"], row["valid_json"], row["episodes"], row["tool_calls"]) == ("scored", True, 1, 1)
    assert (row["total_input_tokens"], row["total_output_tokens"], row["cost_usd"]) == (10, 5, 0.01)
    assert row["scoring_method"] == "l2_distance_and_objective"
    assert row["edition"] == edition.digest
    assert row["score"] == row["scores"][row["score_profile"]]
    assert row["error"] is None


def test_the_same_command_again_runs_nothing(edition, oracle, tmp_path) -> None:
    first = run(edition, [oracle()], PLAIN, out=tmp_path)
    model = oracle()
    again = run(edition, [model], PLAIN, out=tmp_path, max_concurrency=3)
    assert (again.ran, again.kept, model.calls) == (0, 24, 0)
    assert again.rows.equals(first.rows)


@pytest.mark.parametrize("keep", [0, 1, 7, 23])
def test_resuming_equals_an_uninterrupted_run(edition, oracle, tmp_path, keep: int) -> None:
    whole = run(edition, [oracle()], PLAIN, out=tmp_path / "whole").rows

    class StopHereError(Exception):
        pass

    def stop(board, row):
        if board.done > keep:
            raise StopHereError

    with pytest.raises(StopHereError):
        run(edition, [oracle()], PLAIN, out=tmp_path / "cut", progress=stop, max_concurrency=5)
    assert not (tmp_path / "cut" / "rows.parquet").exists()
    model = oracle()
    result = run(edition, [model], PLAIN, out=tmp_path / "cut")
    assert keep < result.kept < 24 or keep == 23
    assert (model.calls, result.ran) == (24 - result.kept, 24 - result.kept)
    assert steady(result.rows).equals(steady(whole))


def test_errors_are_rows_without_scores_and_run_again(edition, oracle, tmp_path) -> None:
    first = run(edition, [oracle(fail=[1, 2])], ["no_skill"], out=tmp_path)
    failed = first.rows.filter(pl.col("status") == "error")
    assert (first.errors, failed.height) == (4, 4)
    assert failed["score"].null_count() == 4
    assert failed["scores"].struct.field("paper").null_count() == 4
    assert "provider is down" in failed["error"][0]
    model = oracle()
    again = run(edition, [model], ["no_skill"], out=tmp_path)
    assert (again.ran, again.kept, again.errors, model.calls) == (4, 8, 0, 4)


def test_retries_wait_by_the_given_sleep(edition, tmp_path) -> None:
    waits = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    class Busy:
        name = "test/busy"

        async def generate(self, messages, tools, tool_choice) -> Turn:
            raise ProviderError("503", Cause.SERVER)

    result = run(edition, [Busy()], ["no_skill"], limit=1, out=tmp_path, sleep=sleep)
    assert (result.errors, waits) == (2, [1.0, 2.0, 4.0] * 2)


@pytest.mark.parametrize(
    ("change", "ran", "others"),
    [
        ({"models": ["baseline/trivial"]}, 4, 4),
        ({"conditions": ["self_generated"]}, 4, 4),
        ({"subtasks": ["unconstrained_optimization"]}, 0, 2),
        ({"limit": 3}, 2, 0),
        ({"limit": 1}, 0, 2),
        ({"epochs": 2}, 4, 0),
        ({"seed": 1}, 0, 0),
    ],
)
def test_what_a_folder_does_not_have_is_run_and_the_rest_left(edition, tmp_path, change: dict, ran, others) -> None:
    arguments = {"models": ["baseline/nop"], "conditions": ["no_skill"], "limit": 2}
    run(edition, out=tmp_path, **arguments)
    grown = run(edition, out=tmp_path, **{**arguments, **change})
    assert (grown.ran, grown.other_rows, grown.not_run) == (ran, others, 0)
    assert grown.rows.height == 4 + ran


def test_another_edition_is_refused(edition, memory_edition, tmp_path) -> None:
    run(edition, ["baseline/nop"], ["no_skill"], limit=1, out=tmp_path)
    other = memory_edition(edition.episodes(), digest="f" * 64)
    with pytest.raises(InputError, match="another edition_digest"):
        run(other, ["baseline/nop"], ["no_skill"], limit=1, out=tmp_path)


def test_a_folder_with_other_things_in_it_is_refused(edition, tmp_path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(InputError, match=r"not empty and not a run folder \(contains thesis\.tex\)"):
        run(edition, ["baseline/nop"], ["no_skill"], out=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_folder_in_an_edition_is_refused(edition, tmp_path) -> None:
    (tmp_path / "manifest.json").write_text('{"format": 1, "files": {}}')
    for out in (tmp_path, tmp_path / "truth" / "a"):
        with pytest.raises(InputError, match="is inside the edition"):
            run(edition, ["baseline/nop"], ["no_skill"], out=out)
    assert [path.name for path in tmp_path.iterdir()] == ["manifest.json"]


def test_an_item_whose_trajectory_is_gone_is_run_again(edition, oracle, tmp_path) -> None:
    first = run(edition, [oracle()], PLAIN, out=tmp_path)
    lost = sorted((tmp_path / "trajectories").rglob("*.json.gz"))[:3]
    for path in lost:
        path.unlink()
    model = oracle()
    again = run(edition, [model], PLAIN, out=tmp_path)
    assert (again.ran, again.kept, model.calls) == (3, 21, 3)
    assert all(path.is_file() for path in lost)
    assert steady(again.rows).equals(steady(first.rows))


def test_a_folder_in_use_is_refused(edition, tmp_path) -> None:
    with exclusive(tmp_path), pytest.raises(InputError, match="another process is writing this run"):
        run(edition, ["baseline/nop"], ["no_skill"], out=tmp_path)
    assert run(edition, ["baseline/nop"], ["no_skill"], out=tmp_path).ran == 12


def test_a_damaged_record_is_refused(edition, tmp_path) -> None:
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(InputError, match="not a readable run record"):
        run(edition, ["baseline/nop"], ["no_skill"], out=tmp_path)


def test_an_output_that_cannot_be_made_is_one_clear_error(edition, tmp_path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="choose a writable --out"):
        run(edition, ["baseline/nop"], ["no_skill"], out=tmp_path / "file" / "run")


def test_a_truth_that_is_damaged_is_refused_before_anything_runs(edition, tmp_path, monkeypatch) -> None:
    def damaged(task_id: str):
        raise EditionError("truth/normalization.jsonl, line 1: not JSON")

    monkeypatch.setattr(edition, "truth", damaged)
    with pytest.raises(EditionError, match="not JSON"):
        run(edition, ["baseline/nop"], ["no_skill"], out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"models": ["nobody"]}, "'nobody' is unknown"),
        ({"conditions": ["none"]}, "'none' is unknown"),
        ({"subtasks": ["none"]}, "none"),
        ({"max_concurrency": 0}, "max_concurrency is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": 2**63}, "seed is too large"),
        ({"limit": 2**63}, "limit is too large"),
        ({"epochs": 2**63}, "epochs is too large"),
    ],
)
def test_wrong_arguments_write_nothing(edition, tmp_path, change: dict, words: str) -> None:
    out = tmp_path / "run"
    arguments = {"models": ["baseline/nop"], "conditions": ["no_skill"], **change}
    with pytest.raises(InputError, match=words):
        run(edition, out=out, **arguments)
    assert not out.exists()


def test_epochs_repeat_each_episode(edition, oracle, tmp_path) -> None:
    rows = run(edition, [oracle()], ["no_skill"], limit=2, epochs=3, out=tmp_path).rows
    keys = rows.select("task_id", "run_idx").rows()
    tasks = ["pc_uncon_000", "pc_uncon_001", "pc_infeas_000", "pc_infeas_001"]
    assert keys == [(task, epoch) for epoch, task in itertools.product(range(3), tasks)]


@pytest.mark.slow
def test_a_thousand_episodes_in_flight(memory_edition, episodes_of, oracle, tmp_path) -> None:
    class Waiting(oracle):
        most = now = 0

        async def generate(self, messages, tools, tool_choice) -> Turn:
            Waiting.now += 1
            Waiting.most = max(Waiting.most, Waiting.now)
            await asyncio.sleep(0.05)
            Waiting.now -= 1
            return await super().generate(messages, tools, tool_choice)

    edition = memory_edition(episodes_of("unconstrained_optimization", "pc_uncon", 1_000))
    result = run(edition, [Waiting()], ["no_skill"], limit=1_000, max_concurrency=1_000, out=tmp_path)
    assert (result.ran, result.rows.n_unique("task_id"), Waiting.most) == (1_000, 1_000, 1_000)


def test_eight_episodes_of_programs_are_in_flight_at_most(memory_edition, episodes_of, tmp_path) -> None:
    """However many may be: their tables and payloads would be in memory at once."""
    flying, most = 0, 0

    class Slow(Nop):
        async def generate(self, messages, tools, tool_choice: str) -> Turn:
            nonlocal flying, most
            flying += 1
            most = max(most, flying)
            await asyncio.sleep(0.01)
            flying -= 1
            return await super().generate(messages, tools, tool_choice)

    run(
        memory_edition(episodes_of("unconstrained_optimization", "pc_uncon", 20)),
        [Slow()],
        ["no_skill"],
        max_concurrency=64,
        out=tmp_path,
    )
    assert most == 8


def test_the_curated_arm_records_what_it_mounted(edition, oracle, tmp_path, monkeypatch) -> None:
    from finskillbench.harness.skills.loader import SkillPackage

    package = SkillPackage("portfolio-construction", "Builds.", tmp_path, "body", {}, (), "d" * 64)
    monkeypatch.setattr(conditions_module, "curated", lambda: {package.name: package})

    class NoRunner:
        def __init__(self, *_, **__):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

    monkeypatch.setattr("finskillbench.runs.execute.backend.MountedScripts", NoRunner)
    out = tmp_path / "run"
    result = run(edition, [oracle()], ["no_skill", "curated"], limit=1, out=out)
    assert result.rows["condition"].to_list() == ["no_skill", "no_skill", "curated", "curated"]
    mounts = orjson.loads((out / "run.json").read_bytes())["mounts"]
    assert mounts["no_skill"]["packages"] == {}
    assert mounts["curated"]["packages"] == {package.name: package.digest}
    digests = {
        path.parent.name: read_trajectory(path).trace.mount_digest for path in (out / "trajectories").rglob("*.gz")
    }
    assert {digests["test-oracle__curated"]} == set(mounts["curated"]["digest"].values())
    assert {digests["test-oracle__no_skill"]} == set(mounts["no_skill"]["digest"].values())


def test_the_record_holds_the_guards_of_the_sandbox_and_a_resumed_run_may_have_others(
    edition, oracle, tmp_path, monkeypatch
) -> None:
    for held in (False, True):
        monkeypatch.setattr(
            "finskillbench.runs.execute.open_backend.check_guards", lambda *_, held=held, **__: {"files": held}
        )
        run(edition, [oracle()], ["no_skill"], limit=1, out=tmp_path / "run")
        assert orjson.loads((tmp_path / "run" / "run.json").read_bytes())["sandbox"] == {"files": False}
