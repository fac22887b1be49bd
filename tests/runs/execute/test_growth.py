"""A run folder that grew, in whatever steps and order, equals the run that was made at once."""

from collections import Counter
from itertools import pairwise

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.sampling import THOROUGH, thorough

from finskillbench.analysis.results import collect
from finskillbench.errors import InputError
from finskillbench.harness.conditions import Condition
from finskillbench.harness.models import BASELINES, ModelKey
from finskillbench.harness.providers.prices import Price
from finskillbench.reports.tables.common import notes
from finskillbench.runs.execute.run import run
from finskillbench.runs.plan.items import make_plan
from finskillbench.runs.plan.streams import Shard, make_streams, missing
from finskillbench.runs.postprocess.merge import merge_runs
from finskillbench.runs.postprocess.show import find_trajectory
from finskillbench.runs.store.journal import read_events, read_history, read_trajectory
from finskillbench.runs.store.record import Finished, read_record
from finskillbench.runs.store.rows import TIMINGS

KEPT = "self_generated_persistent"
CONDITIONS = ["no_skill", "self_generated", KEPT]
EPOCHS, LIMIT, STEPS = 2, 3, 10
NOP = "baseline/nop"
KEYS = ["model", "arguments", "condition", "task_id", "run_idx"]


def entrants(learner) -> list:
    """One program, and one model with three sets of arguments."""
    cast = [learner("test/learner") for _ in range(3)]
    cast[1].arguments = {"seed": 1}
    cast[2].arguments = {"seed": 2, "reasoning_effort": "high"}
    return [BASELINES[NOP](), *cast]


def some(values) -> st.SearchStrategy[list]:
    return st.lists(st.sampled_from(values), min_size=1, unique=True)


STEP = st.fixed_dictionaries(
    {
        "cast": some(range(4)),
        "conditions": some(CONDITIONS),
        "epochs": st.integers(1, EPOCHS),
        "limit": st.integers(1, LIMIT),
        "shard": st.none() | st.builds(Shard, st.integers(1, 2), st.just(2)),
        "folder": st.integers(0, 2),
    }
)


def comparable(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.drop(TIMINGS)


def memories(out) -> dict[str, str]:
    """What each episode read of its memory, by its file."""
    return {
        path.relative_to(out).as_posix(): read_trajectory(path).trace.messages[1].content
        for path in out.glob("trajectories/*/*.gz")
    }


@pytest.fixture(scope="module")
def at_once(tmp_path_factory):
    """The run that was made at once, made once."""
    made = {}

    def whole(edition, learner):
        if not made:
            out = tmp_path_factory.mktemp("whole")
            rows = run(edition, entrants(learner), CONDITIONS, epochs=EPOCHS, limit=LIMIT, out=out).rows
            made.update(rows=comparable(rows), memories=memories(out), asked=read_record(out).asked)
        return made

    return whole


@thorough
@pytest.mark.slow
@settings(
    max_examples=10 if THOROUGH else 3,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=st.lists(STEP, min_size=STEPS, max_size=STEPS), turned=st.booleans())
def test_a_run_grown_in_ten_steps_equals_the_run_made_at_once(
    edition, learner, at_once, tmp_path_factory, steps, turned
) -> None:
    whole = at_once(edition, learner)
    base = tmp_path_factory.mktemp("grown")
    cast = entrants(learner)
    for step in steps:
        out = base / str(step["folder"])
        before = read_history(out).rows if out.exists() else {}
        result = run(
            edition,
            [cast[number] for number in step["cast"]],
            step["conditions"],
            epochs=step["epochs"],
            limit=step["limit"],
            shard=step["shard"],
            out=out,
        )
        found = read_history(out).rows
        assert {item: found[item] for item in before} == before, "a finished episode was run again"
        assert result.ran == len(found) - len(before)
        assert found.keys() <= {*read_record(out).items()}, "the record has forgotten what was asked for"
        assert (result.kept + result.ran + result.other_rows, result.not_run) == (result.rows.height, 0)
        assert comparable(result.rows).equals(whole["rows"].join(result.rows, on=KEYS, how="semi", nulls_equal=True))
    folders = sorted(base.iterdir(), reverse=turned)
    merged = merge_runs(base / "merged", folders)
    assert comparable(merged.rows).equals(whole["rows"].join(merged.rows, on=KEYS, how="semi", nulls_equal=True))
    last = run(edition, cast[::-1], CONDITIONS[::-1], epochs=EPOCHS, limit=LIMIT, out=base / "merged")
    assert (last.kept, last.kept + last.ran) == (merged.rows.height, whole["rows"].height)
    assert comparable(last.rows).equals(whole["rows"])
    assert comparable(pl.read_parquet(base / "merged" / "rows.parquet")).equals(whole["rows"])
    assert memories(base / "merged") == whole["memories"]
    assert read_record(base / "merged").asked == whole["asked"]
    finished = Counter(event.row.item for event in read_events(base / "merged") if isinstance(event, Finished))
    assert set(finished.values()) == {1}


def test_two_entries_of_one_model_stand_side_by_side(edition, learner, tmp_path) -> None:
    cast = entrants(learner)[1:]
    rows = run(edition, cast, ["no_skill"], limit=1, out=tmp_path).rows
    assert rows["arguments"].unique(maintain_order=True).to_list() == [
        '{"reasoning_effort":"high","seed":2}',
        '{"seed":1}',
        "{}",
    ]
    assert rows["model"].unique().to_list() == ["test/learner"]
    assert len(list(tmp_path.glob("trajectories/*/*.gz"))) == rows.height == 6
    found = read_history(tmp_path).rows
    assert {(item.arguments, item.task_id) for item in found} == {*rows.select("arguments", "task_id").iter_rows()}
    assert run(edition, cast, ["no_skill"], limit=1, out=tmp_path).kept == 6
    for row in found.values():
        trajectory = read_trajectory(tmp_path / row.item.trajectory)
        assert trajectory.item == row.item
    with pytest.raises(
        InputError, match=r"pc_uncon_000 with 3 sets of arguments; name a file instead: trajectories/test"
    ):
        find_trajectory(tmp_path, "pc_uncon_000")
    assert collect(rows).models == [
        "test/learner reasoning_effort=high seed=2",
        "test/learner reasoning_effort=- seed=1",
        "test/learner reasoning_effort=- seed=-",
    ]
    alone = rows.filter(pl.col("arguments") == '{"seed":1}')
    assert collect(alone).models == ["test/learner"]
    with pytest.raises(InputError, match=r"a model was given twice: test/learner \{\"seed\":1\}"):
        run(edition, [cast[1], cast[1]], ["no_skill"], out=tmp_path)


def test_who_resumes_with_other_arguments_is_told(edition, learner, tmp_path) -> None:
    told = []
    for number in (1, 2, 1, 2):
        cast = entrants(learner)[number]
        run(edition, [cast], ["no_skill"], limit=1, out=tmp_path, progress=lambda board, row: told.append(board.notice))
    (notice,) = {*told} - {""}
    assert notice.startswith(str(tmp_path))
    assert notice.endswith(" has these models with other arguments; they run again: test/learner seed=1")
    assert told[0] == told[-1] == ""


def test_a_stream_grows_at_its_end_alone(edition, memory_edition, learner, tmp_path) -> None:
    run(edition, [learner()], [KEPT], limit=2, out=tmp_path)
    longer = run(edition, [learner()], [KEPT], limit=4, out=tmp_path)
    assert (longer.kept, longer.ran) == (4, 4)
    again = run(edition, [learner()], [KEPT], limit=1, out=tmp_path)
    assert (again.ran, again.other_rows) == (0, 6)
    sizes = {
        path.name[:-11]: len(read_trajectory(path).trace.messages[1].content)
        for path in tmp_path.glob("trajectories/*/pc_uncon*.gz")
    }
    assert all(sizes[before] < sizes[after] for before, after in pairwise(sorted(sizes)))
    for task in ("pc_uncon_001", "pc_infeas_001"):
        (tmp_path / f"trajectories/test-oracle__{KEPT}/{task}__0.json.gz").unlink()
    journal, record = (tmp_path / "journal.jsonl").read_bytes(), (tmp_path / "run.json").read_bytes()
    with pytest.raises(
        InputError, match=r"pc_uncon_002 is finished .* but pc_uncon_001.*a stream grows only at its end"
    ):
        run(edition, [learner()], [KEPT], limit=5, out=tmp_path)
    assert ((tmp_path / "journal.jsonl").read_bytes(), (tmp_path / "run.json").read_bytes()) == (journal, record)


def test_a_sample_that_would_come_between_is_refused(edition, learner, tmp_path) -> None:
    run(edition, [learner()], [KEPT], sample=4, limit=6, out=tmp_path)
    with pytest.raises(InputError, match="a stream grows only at its end"):
        run(edition, [learner()], [KEPT], limit=6, out=tmp_path)


def test_a_stream_goes_on_after_an_error_that_is_asked_for(edition, learner, tmp_path) -> None:
    run(edition, [learner(fail=[2])], [KEPT], limit=3, out=tmp_path)
    short = run(edition, [learner()], [KEPT], limit=2, out=tmp_path)
    assert (short.ran, short.kept, short.errors, short.other_rows) == (0, 4, 0, 2)
    rows = read_history(tmp_path).rows
    (stream, *_) = make_streams(make_plan(edition.episodes(), [ModelKey("test/oracle")], [Condition(KEPT)]))
    assert missing(stream, rows, stream.items, retry_errors=True) == stream.items[2:]
    assert missing(stream, rows, stream.items, retry_errors=False) == ()
    with pytest.raises(InputError, match=r"00[2] ended in an error .* and .*_004 follows it .*; request both"):
        missing(stream, rows, stream.items[3:5], retry_errors=True)
    assert run(edition, [learner()], [KEPT], limit=5, out=tmp_path).ran == 6


def test_domains_may_come_one_after_another(memory_edition, episodes_of, oracle, tmp_path) -> None:
    edition = memory_edition(
        [
            *episodes_of("unconstrained_optimization", "pc_uncon", 1),
            *episodes_of("normalization", "fa_norm", 1, "fundamental_analysis"),
        ]
    )
    for sub_task in ("normalization", "unconstrained_optimization"):
        run(edition, [oracle()], ["docs_only"], [sub_task], out=tmp_path / "grown")
    whole = run(edition, [oracle()], ["docs_only"], out=tmp_path / "whole").rows
    assert comparable(pl.read_parquet(tmp_path / "grown" / "rows.parquet")).equals(comparable(whole))
    grown, at_once = (read_record(tmp_path / name) for name in ("grown", "whole"))
    assert grown.mounts == at_once.mounts
    assert set(grown.mounts["docs_only"]["tools"]) == {"portfolio_construction", "fundamental_analysis"}


def test_errors_of_other_parts_are_left_alone(edition, oracle, tmp_path) -> None:
    run(edition, [oracle("test/a", fail=[0])], ["no_skill"], limit=1, out=tmp_path)
    other = run(edition, [oracle("test/b")], ["no_skill"], limit=1, out=tmp_path)
    assert (other.ran, other.errors, other.other_rows) == (2, 0, 2)
    assert other.rows.filter(pl.col("status") == "error").height == 2
    again = run(edition, [oracle("test/a")], ["no_skill"], limit=1, out=tmp_path)
    assert (again.ran, again.errors, again.other_rows) == (2, 0, 2)


def test_the_budget_counts_what_other_models_have_cost(edition, paid, tmp_path, virtual_runs) -> None:
    dear = Price(input=100.0, cached_input=100.0, cache_write=100.0, output=100.0)
    first = run(edition, [paid("fake/first", price=dear)], ["no_skill"], limit=1, out=tmp_path)
    spent = first.rows["cost_usd"].sum()
    second = [paid("fake/second", price=dear)]
    stopped = run(edition, second, ["no_skill"], limit=1, max_cost=spent, out=tmp_path)
    assert (stopped.ran, stopped.not_run) == (0, 2)
    assert f"{spent:.2f} USD are spent" in stopped.stopped["run"]


def test_a_budget_over_rows_of_unknown_cost_is_refused(edition, paid, tmp_path, virtual_runs) -> None:
    price = Price(input=1.0, cached_input=1.0, cache_write=1.0, output=1.0)
    run(edition, [paid("fake/unpriced")], ["no_skill"], limit=1, out=tmp_path)
    with pytest.raises(
        InputError, match=r"needs the price of fake/unpriced: .* has episodes of it whose cost is unknown"
    ):
        run(edition, [paid("fake/priced", price=price)], ["no_skill"], limit=1, max_cost=9.0, out=tmp_path)


def test_rows_of_several_versions_are_told(edition, oracle, tmp_path, monkeypatch) -> None:
    run(edition, [oracle("test/a")], ["no_skill"], limit=1, out=tmp_path)
    monkeypatch.setattr("finskillbench.runs.store.rows.code_version", lambda: "9.9.9")
    rows = run(edition, [oracle("test/b")], ["no_skill"], limit=1, out=tmp_path).rows
    (note,) = [note for note in notes(collect(rows)) if "versions" in note]
    assert "2 by 9.9.9 (" in note
    alone = collect(rows.filter(pl.col("model") == "test/a"))
    assert not [note for note in notes(alone) if "versions" in note]


@pytest.mark.parametrize("name", ["prompts_digest", "scorer_version"])
def test_what_all_rows_share_must_agree(edition, oracle, tmp_path, monkeypatch, name) -> None:
    run(edition, [oracle()], ["no_skill"], limit=1, out=tmp_path)
    path = tmp_path / "run.json"
    path.write_text(path.read_text().replace(getattr(read_record(tmp_path), name), "f" * 12))
    with pytest.raises(
        InputError, match=rf'was run with another {name} \(then "ffffffffffff", now .*; .*another --out'
    ):
        run(edition, [oracle("test/b")], ["no_skill"], limit=1, out=tmp_path)


def test_models_that_would_share_files_are_refused_whenever_they_come(edition, oracle, tmp_path) -> None:
    run(edition, [oracle("a/b")], ["no_skill"], limit=1, out=tmp_path)
    with pytest.raises(InputError, match="two models of one run would share a file name"):
        run(edition, [oracle("a-b")], ["no_skill"], limit=1, out=tmp_path)
