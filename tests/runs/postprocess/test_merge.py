"""Shards merged are the run that was never cut."""

import shutil
from dataclasses import replace
from itertools import pairwise

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.sampling import THOROUGH

from finskillbench.errors import InputError
from finskillbench.runs.execute.run import run
from finskillbench.runs.plan.streams import Shard
from finskillbench.runs.postprocess.merge import merge_runs
from finskillbench.runs.store.journal import JOURNAL, Journal, Trajectory, read_events, read_history, read_trajectory
from finskillbench.runs.store.record import Finished, Rescored
from finskillbench.runs.store.rows import TIMINGS, with_digest

CONDITIONS = ["no_skill", "self_generated_persistent"]


def files(folder) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()} - {"run.lock"}


def timeless(trajectory: Trajectory) -> Trajectory:
    times = dict.fromkeys(("latency_seconds", "queue_seconds", "retry_seconds"), 0.0)
    trace = replace(trajectory.trace, started=None, tool_calls=(), model_calls=(), **times)
    return replace(trajectory, trace=trace)


@pytest.mark.slow
@settings(max_examples=12 if THOROUGH else 4, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(of=st.integers(1, 9), count=st.integers(1, 4), epochs=st.integers(1, 2), models=st.integers(1, 2))
def test_sharded_and_merged_equals_unsharded(
    memory_edition, episodes_of, learner, tmp_path_factory, of, count, epochs, models
) -> None:
    episodes = [
        *episodes_of("unconstrained_optimization", "pc_uncon", count),
        *episodes_of("infeasibility_detection", "pc_infeas", count),
    ]
    edition = memory_edition(episodes)
    base = tmp_path_factory.mktemp("merge")
    cast = [learner(f"test/{i}") for i in range(models)]
    whole = run(edition, cast, CONDITIONS, epochs=epochs, out=base / "whole")
    parts = [base / f"part{number}" for number in range(1, of + 1)]
    ran = 0
    for number, part in enumerate(parts, start=1):
        result = run(edition, cast, CONDITIONS, epochs=epochs, shard=Shard(number, of), out=part)
        assert result.ran == result.rows.height
        ran += result.ran
    assert ran == whole.rows.height
    merged = merge_runs(base / "merged", parts[::-1])
    assert merged.missing == ()
    assert pl.read_parquet(base / "merged" / "rows.parquet").drop(TIMINGS).equals(whole.rows.drop(TIMINGS))
    assert files(base / "merged") == files(base / "whole")
    assert (base / "merged" / "run.json").read_bytes() == (base / "whole" / "run.json").read_bytes()
    for path in (base / "merged").glob("trajectories/*/*"):
        twin = base / "whole" / path.relative_to(base / "merged")
        assert timeless(read_trajectory(path)) == timeless(read_trajectory(twin))
    again = run(edition, cast, CONDITIONS, epochs=epochs, out=base / "merged")
    assert (again.ran, again.kept) == (0, ran)


@pytest.fixture
def halves(edition, oracle, tmp_path):
    parts = [tmp_path / "a", tmp_path / "b"]
    for number, part in enumerate(parts, start=1):
        run(edition, [oracle()], ["no_skill"], shard=Shard(number, 2), out=part)
    return parts


def test_what_is_missing_is_named_and_can_be_run_in_the_merged_folder(edition, oracle, halves, tmp_path) -> None:
    whole = run(edition, [oracle()], ["no_skill"], out=tmp_path / "whole").rows
    merged = merge_runs(tmp_path / "all", halves[1:])
    assert merged.rows.height + len(merged.missing) == 12
    assert merged.missing[0] not in merged.rows["task_id"].to_list()
    result = run(edition, [oracle()], ["no_skill"], out=tmp_path / "all")
    assert (result.kept, result.ran) == (merged.rows.height, len(merged.missing))
    assert result.rows.drop(TIMINGS).equals(whole.drop(TIMINGS))


def test_the_same_rows_twice_count_once(halves, tmp_path) -> None:
    twin = tmp_path / "twin"
    shutil.copytree(halves[0], twin)
    merged = merge_runs(tmp_path / "all", [*halves, twin, halves[0]])
    assert (merged.rows.height, merged.rows.n_unique("task_id")) == (12, 12)
    assert len(read_events(tmp_path / "all")) == 12


def test_what_was_run_twice_was_paid_twice(halves, tmp_path) -> None:
    """A copied line was paid once; a line of the same row with another amount is of another try."""
    twin = tmp_path / "twin"
    shutil.copytree(halves[0], twin)
    row = next(iter(read_history(twin).rows.values()))
    with Journal(twin) as journal:
        journal.append(Finished(row, lost_usd=0.5))
    merge_runs(tmp_path / "all", [*halves, twin])
    paid = sum(read_history(folder).spent({}) for folder in halves)
    assert read_history(tmp_path / "all").spent({}) == pytest.approx(paid + row.usage.cost_usd + 0.5)


def test_shards_of_an_earlier_version_are_refused(halves, tmp_path) -> None:
    (halves[1] / "journal").mkdir()
    (halves[1] / JOURNAL).rename(halves[1] / "journal" / "no_skill.jsonl")
    with pytest.raises(InputError, match="b: written by an earlier version"):
        merge_runs(tmp_path / "all", halves)
    assert not (tmp_path / "all").exists()


def test_two_rows_of_an_item_are_refused_and_both_files_named(halves, tmp_path) -> None:
    twin = tmp_path / "twin"
    shutil.copytree(halves[0], twin)
    row = list(read_history(twin).rows.values())[1]
    with Journal(twin) as journal:
        journal.append(Rescored(with_digest(replace(row, score=0.25))))
    with pytest.raises(InputError, match=rf"a/journal.*twin/journal.*different rows of {row.task_id}, run 0"):
        merge_runs(tmp_path / "all", [halves[0], twin])
    assert not (tmp_path / "all").exists()


def test_other_runs_are_refused(edition, memory_edition, oracle, halves, tmp_path) -> None:
    other = memory_edition(edition.episodes(), digest="f" * 64)
    run(other, [oracle()], ["no_skill"], shard=Shard(2, 2), out=tmp_path / "other")
    with pytest.raises(InputError, match=r"other: cannot be merged with .*a: different edition_digest"):
        merge_runs(tmp_path / "all", [halves[0], tmp_path / "other"])
    with pytest.raises(InputError, match=r"nowhere/run\.json: not a readable run record"):
        merge_runs(tmp_path / "all", [halves[0], tmp_path / "nowhere"])
    with pytest.raises(InputError, match="no run folder was named"):
        merge_runs(tmp_path / "all", [])
    assert not (tmp_path / "all").exists()


def test_a_folder_that_is_not_empty_is_left_alone(halves, tmp_path) -> None:
    with pytest.raises(InputError, match="exists and is not an empty folder"):
        merge_runs(halves[0], halves)


def test_a_lost_trajectory_is_named_and_nothing_is_left(halves, tmp_path) -> None:
    lost = next(halves[0].glob("trajectories/*/*"))
    lost.unlink()
    with pytest.raises(InputError, match=rf"{lost.name}: is missing; rerun the command of that run folder"):
        merge_runs(tmp_path / "all", halves)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_the_order_is_that_of_the_plan(halves, tmp_path) -> None:
    rows = merge_runs(tmp_path / "all", halves).rows
    numbers = [(not task.startswith("pc_uncon"), task) for task in rows["task_id"]]
    assert all(before < after for before, after in pairwise(numbers))


def test_the_folder_of_a_shard_grows_to_the_whole(edition, oracle, halves, tmp_path) -> None:
    whole = run(edition, [oracle()], ["no_skill"], out=tmp_path / "whole").rows
    grown = run(edition, [oracle()], ["no_skill"], out=halves[0])
    assert grown.ran + grown.kept == 12
    assert grown.rows.drop(TIMINGS).equals(whole.drop(TIMINGS))


def test_any_runs_of_an_edition_are_merged_in_any_order(edition, oracle, tmp_path) -> None:
    cast = [oracle("test/a"), oracle("test/b")]
    whole = run(edition, cast, ["no_skill", "self_generated"], epochs=2, out=tmp_path / "whole").rows
    run(edition, cast[1:], ["no_skill", "self_generated"], epochs=2, out=tmp_path / "models")
    run(edition, cast[:1], ["no_skill"], epochs=2, out=tmp_path / "conditions")
    run(edition, cast[:1], ["self_generated"], limit=3, out=tmp_path / "few")
    run(edition, cast, ["self_generated"], epochs=2, out=tmp_path / "others")
    runs = [tmp_path / name for name in ("models", "conditions", "few", "others")]
    for number, order in enumerate((runs, runs[::-1])):
        merged = merge_runs(tmp_path / f"all{number}", order)
        assert merged.missing == ()
        assert merged.rows.drop(TIMINGS).equals(whole.drop(TIMINGS))
    assert run(edition, cast, ["no_skill", "self_generated"], epochs=2, out=tmp_path / "all0").ran == 0


def test_an_error_gives_way_to_a_row_and_both_were_paid(edition, oracle, tmp_path) -> None:
    run(edition, [oracle(fail=[0])], ["no_skill"], limit=2, out=tmp_path / "failed")
    good = run(edition, [oracle()], ["no_skill"], limit=1, out=tmp_path / "good")
    for number, order in enumerate((["failed", "good"], ["good", "failed"])):
        merged = merge_runs(tmp_path / f"all{number}", [tmp_path / name for name in order])
        assert merged.rows["status"].unique().to_list() == ["scored"]
        assert merged.rows.height == 4
        paid = read_history(tmp_path / f"all{number}").spent({})
        assert paid == pytest.approx(good.rows["cost_usd"].sum() + 2 * 0.01)
    again = run(edition, [oracle()], ["no_skill"], limit=2, out=tmp_path / "all0")
    assert (again.ran, again.errors) == (0, 0)


def test_a_stream_that_two_folders_have_in_parts_is_refused(edition, learner, tmp_path) -> None:
    """What the second folder has further on was played without a memory of what the first has."""
    run(edition, [learner()], CONDITIONS[1:], limit=2, out=tmp_path / "a")
    run(edition, [learner()], CONDITIONS[1:], limit=5, out=tmp_path / "b")
    assert merge_runs(tmp_path / "all", [tmp_path / "a", tmp_path / "b"]).rows.height == 10
    run(edition, [learner()], CONDITIONS[1:], sample=6, limit=6, out=tmp_path / "c")
    with pytest.raises(InputError, match=r"both have a part of the stream of pc_"):
        merge_runs(tmp_path / "no", [tmp_path / "a", tmp_path / "c"])
    assert not (tmp_path / "no").exists()
