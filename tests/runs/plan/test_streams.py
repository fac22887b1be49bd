"""Streams: order where memory is kept, and shards of whole streams; the persistent arm resumed in its middle."""

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from finskillbench.episode import Status
from finskillbench.errors import InputError
from finskillbench.harness.conditions import Condition
from finskillbench.harness.loop import run_episode
from finskillbench.harness.models import ModelKey
from finskillbench.harness.skills.user_skills import Feedback
from finskillbench.runs.execute.run import run
from finskillbench.runs.plan.items import make_plan
from finskillbench.runs.plan.streams import (
    Shard,
    Stream,
    extend_streams,
    make_streams,
    missing,
    parse_shard,
    restore_memory,
)
from finskillbench.runs.store.journal import read_history, read_trajectory
from finskillbench.runs.store.rows import TIMINGS

KEPT = "self_generated_persistent"
ARMS = [Condition.NO_SKILL, Condition(KEPT)]


def memories(out) -> dict[str, str]:
    """Task to the end of the prompt, where the persistent arm shows what it remembers."""
    return {
        trajectory.trace.task_id: trajectory.trace.messages[1].content
        for trajectory in map(read_trajectory, out.glob(f"trajectories/*{KEPT}/*.gz"))
    }


def test_a_stream_is_one_model_repeat_and_subtask_in_plan_order(edition) -> None:
    plan = make_plan(edition.episodes(), [ModelKey("a"), ModelKey("b")], ARMS, epochs=2)
    streams = make_streams(plan)
    assert sorted(item for stream in streams for item in stream.items) == sorted(plan.items)
    kept = [stream for stream in streams if stream.has_memory]
    assert len(kept) == 2 * 2 * 2
    for stream in kept:
        assert len({(i.model, i.condition, i.run_idx, i.task_id[:8]) for i in stream.items}) == 1
        assert list(stream.items) == sorted(stream.items, key=plan.items.index)
    assert all(len(stream.items) == 1 for stream in streams if not stream.has_memory)
    assert streams[: len(kept)] == tuple(kept), "what cannot be run side by side starts first"


def test_each_episode_of_a_stream_knows_the_ones_before_it(edition, learner, tmp_path, monkeypatch) -> None:
    known = {}

    async def spy(model, given, around):
        known[given.episode.task_id] = given.memory
        return await run_episode(model, given, around)

    monkeypatch.setattr("finskillbench.harness.loop.run_episode", spy)
    rows = run(edition, [learner()], [KEPT], out=tmp_path, max_concurrency=8).rows
    prompts = memories(tmp_path)
    scores = {row["task_id"]: Feedback(row["task_id"], row["status"], row["score"]) for row in rows.to_dicts()}
    for name in ("pc_uncon", "pc_infeas"):
        tasks = [f"{name}_{i:03}" for i in range(6)]
        for place, task in enumerate(tasks):
            assert known[task].verdicts == tuple(scores[earlier] for earlier in tasks[:place])
            notes = f"# Notes\n\nprompt of {len(prompts[tasks[place - 1]])} characters"
            assert known[task].skills == ({"notes": notes} if place else {})


class StopHereError(Exception):
    pass


@pytest.mark.slow
@pytest.mark.parametrize("keep", [1, 2, 5, 9, 11])
def test_a_stream_resumed_in_its_middle_equals_one_that_was_not_stopped(edition, learner, tmp_path, keep) -> None:
    whole = run(edition, [learner()], [KEPT], out=tmp_path / "whole").rows

    def stop(board, row) -> None:
        if board.done >= keep and row is not None:
            raise StopHereError

    with pytest.raises(StopHereError):
        run(edition, [learner()], [KEPT], out=tmp_path / "cut", progress=stop)
    result = run(edition, [learner()], [KEPT], out=tmp_path / "cut")
    assert result.kept >= keep
    assert result.rows.drop(TIMINGS).equals(whole.drop(TIMINGS))
    assert memories(tmp_path / "cut") == memories(tmp_path / "whole")


def test_a_stream_stops_at_an_error_and_goes_on_from_there(edition, learner, tmp_path) -> None:
    whole = run(edition, [learner()], [KEPT], out=tmp_path / "whole").rows
    out = tmp_path / "run"
    first = run(edition, [learner(fail=[2])], [KEPT], out=out)
    # Task 2 of either subtask fails; the three behind it are not begun.
    assert (first.ran, first.errors, first.not_run) == (6, 2, 6)
    kept = run(edition, [learner()], [KEPT], out=out, retry_errors=False)
    assert (kept.ran, kept.kept, kept.errors, kept.not_run) == (0, 6, 2, 6)
    again = run(edition, [learner()], [KEPT], out=out)
    assert (again.ran, again.kept, again.errors, again.not_run) == (8, 4, 0, 0)
    assert again.rows.drop(TIMINGS).equals(whole.drop(TIMINGS))
    assert memories(out) == memories(tmp_path / "whole")


def test_a_hole_in_a_stream_is_refused_and_named(edition, learner, tmp_path) -> None:
    run(edition, [learner()], [KEPT], out=tmp_path)
    (tmp_path / f"trajectories/test-oracle__{KEPT}/pc_uncon_002__0.json.gz").unlink()
    with pytest.raises(InputError, match=rf"pc_uncon_003 is finished under test-oracle__{KEPT}, but pc_uncon_002"):
        run(edition, [learner()], [KEPT], out=tmp_path)


def test_what_a_folder_has_of_a_stream_is_its_past_whoever_asked_for_it(edition, learner, tmp_path) -> None:
    run(edition, [learner()], [KEPT], epochs=2, limit=2, out=tmp_path)
    rows = read_history(tmp_path).rows
    plan = make_plan(edition.episodes(), [ModelKey("test/oracle")], [Condition(KEPT)])
    whole = make_streams(plan)[0]
    asked = Stream(whole.items[4:], has_memory=True)
    (stream,) = extend_streams([asked], rows, edition.episodes())
    assert stream.items == (*whole.items[:2], *whole.items[4:])
    assert missing(stream, rows, asked.items, retry_errors=True) == asked.items
    assert [each.task_id for each in restore_memory(stream, rows, tmp_path).verdicts] == [
        "pc_uncon_000",
        "pc_uncon_001",
    ]
    (before,) = extend_streams([Stream(whole.items[:1], has_memory=True)], rows, edition.episodes())
    assert missing(before, rows, whole.items[:1], retry_errors=True) == ()


def test_errors_are_kept_where_nobody_wants_them_run_again(edition, oracle, tmp_path) -> None:
    run(edition, [oracle(fail=[1])], ["no_skill"], out=tmp_path)
    model = oracle()
    again = run(edition, [model], ["no_skill"], out=tmp_path, retry_errors=False)
    assert (again.ran, again.kept, again.errors, model.calls) == (0, 12, 2, 0)
    rows = read_history(tmp_path).rows
    assert [row.task_id for row in rows.values() if row.status is Status.ERROR] == ["pc_uncon_001", "pc_infeas_001"]
    assert again.rows.filter(pl.col("status") == "error").height == 2


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(of=st.integers(1, 40), epochs=st.integers(1, 3), models=st.integers(1, 3))
def test_every_stream_belongs_to_exactly_one_shard(edition, of, epochs, models) -> None:
    plan = make_plan(edition.episodes(), [ModelKey(f"m{i}") for i in range(models)], ARMS, epochs=epochs)
    streams = make_streams(plan)
    for stream in streams:
        assert sum(Shard(number, of).contains(stream) for number in range(1, of + 1)) == 1


@pytest.mark.parametrize(
    "text", ["3/2", "0/2", "1/0", "1", "a/b", "1/2/3", "-1/2", "1/-2", "", "1 / 2", "٣/٤", "1/9999999"]
)
def test_a_shard_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="write i/n with 1 <= i <= n"):
        parse_shard(text)


def test_a_shard_reads_as_it_is_written() -> None:
    assert (parse_shard("2/3"), str(Shard(2, 3))) == (Shard(2, 3), "2/3")
