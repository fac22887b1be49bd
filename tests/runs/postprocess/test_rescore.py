"""Judging again: exactly what the scorers changed moves, nothing is lost when it is cut short or refused."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import orjson
import polars as pl
import pytest

from finskillbench import domains as subtasks
from finskillbench.episode import Profile, Score
from finskillbench.errors import EditionError, InputError
from finskillbench.runs.execute.run import run
from finskillbench.runs.postprocess.rescore import rescore_run
from finskillbench.runs.store import version
from finskillbench.runs.store.journal import JOURNAL, exclusive, read_events, read_history, read_trajectory
from finskillbench.runs.store.rows import to_frame

CHANGED = "infeasibility_detection"
ARMS = ["no_skill", "self_generated"]


@pytest.fixture
def new_scorers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Scorers of tomorrow: the strict profile of one subtask pays half."""

    def half(answer, truth, task_input) -> Score:
        return Score(0.5, {"half": True})

    subtask = subtasks.subtask_named(CHANGED)
    changed = replace(subtask, scorers={**subtask.scorers, Profile.STRICT: half})
    monkeypatch.setitem(subtasks._subtasks_by_name(), CHANGED, changed)
    monkeypatch.setattr(version, "code_digest", lambda *names: "f" * 64)
    version.scorer_version.cache_clear()
    yield
    monkeypatch.undo()
    version.scorer_version.cache_clear()


@pytest.fixture
def folder(edition, oracle, tmp_path: Path) -> Path:
    """A run of 24 episodes of two subtasks; two of them first ended in an error and were run again."""
    out = tmp_path / "run"
    run(edition, [oracle(fail=[3])], ARMS, out=out)
    run(edition, [oracle()], ARMS, out=out)
    return out


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.usefixtures("new_scorers")
def test_nothing_is_said_to_move_without_a_change(edition, oracle, tmp_path: Path) -> None:
    run(edition, [oracle()], ARMS, out=tmp_path)
    before = content(tmp_path)
    assert rescore_run(tmp_path, edition).moved == ()
    assert content(tmp_path) == before


def test_exactly_the_changed_scores_move(folder: Path, edition, oracle, request) -> None:
    before, rows_before = content(folder), pl.read_parquet(folder / "rows.parquet")
    spent = read_history(folder).spent({})
    old_version = version.scorer_version()
    request.getfixturevalue("new_scorers")
    result = rescore_run(folder, edition)
    new_version = version.scorer_version()
    assert new_version != old_version
    assert (result.scorers_before, result.scorers_after) == (old_version, new_version)
    assert {(change.sub_task, change.profile) for change in result.moved} == {(CHANGED, Profile.STRICT)}
    assert len(result.moved) == 12
    (group,) = [each for each in result.groups() if each.moved]
    assert (group.episodes, group.moved, group.before, group.after) == (12, 12, 1.0, 0.5)

    rows = pl.read_parquet(folder / "rows.parquet")
    same = ("score", "scores", "scoring_details", "scorer_version", "digest")
    assert rows.drop(same).equals(rows_before.drop(same))
    assert rows["scorer_version"].unique().to_list() == [new_version]
    kept, moved = rows.filter(pl.col("sub_task") != CHANGED), rows.filter(sub_task=CHANGED)
    unmoved = rows_before.filter(pl.col("sub_task") != CHANGED)
    assert kept.drop("scorer_version", "digest").equals(unmoved.drop("scorer_version", "digest"))
    assert moved["scores"].struct.field("strict").to_list() == [0.5] * 12
    assert moved["score"].to_list() == [0.5] * 12
    assert all('"half":true' in details for details in moved["scoring_details"])

    after = content(folder)
    written = {JOURNAL, "run.json", "rows.parquet"}
    assert {name for name in before if after[name] != before[name]} == written
    assert after.keys() == before.keys()
    # The journal stays as it was, and behind it stands each finished episode as it is judged now.
    assert after[JOURNAL].startswith(before[JOURNAL])
    assert to_frame(event.row for event in read_events(folder)[-24:]).equals(rows)
    assert len(read_events(folder)) == before[JOURNAL].count(b"\n") + 24
    assert read_history(folder).spent({}) == spent
    record, old_record = orjson.loads(after["run.json"]), orjson.loads(before["run.json"])
    assert record == {**old_record, "scorer_version": version.scorer_version()}

    # A resume agrees: it runs nothing and writes the same rows.
    again = run(edition, [oracle()], ARMS, out=folder)
    assert (again.ran, again.kept) == (0, 24)
    assert again.rows.equals(rows)


@pytest.mark.slow
@pytest.mark.parametrize("share", [b"0.25", b"99.0"])
def test_a_score_that_somebody_edited_is_refused_and_judged_again(folder: Path, edition, oracle, share: bytes) -> None:
    written = pl.read_parquet(folder / "rows.parquet")
    journal = (folder / JOURNAL).read_bytes()
    (folder / JOURNAL).write_bytes(journal.replace(b'"strict":1.0', b'"strict":' + share))
    with pytest.raises(InputError, match=r"journal.jsonl: the row of \w+ was altered; run finskillbench rescore"):
        run(edition, [oracle()], ARMS, out=folder)
    assert rescore_run(folder, edition).moved
    assert run(edition, [oracle()], ARMS, out=folder).rows.equals(written)


def test_an_answer_that_somebody_edited_is_named(folder: Path, edition) -> None:
    path = sorted((folder / "trajectories").rglob("*.gz"))[0]
    text = gzip.decompress(path.read_bytes())
    path.write_bytes(gzip.compress(text.replace(b"0.4", b"0.5")))
    with pytest.raises(InputError, match=f"{path.name}: holds another answer than the one that was judged; restore it"):
        rescore_run(folder, edition)


def test_a_second_time_moves_nothing(folder: Path, edition, new_scorers) -> None:
    rescore_run(folder, edition)
    after = content(folder)
    second = rescore_run(folder, edition)
    assert second.moved == ()
    assert len(second.changes) > 0
    assert content(folder) == after


def test_a_dry_run_says_the_same_and_writes_nothing(folder: Path, edition, new_scorers) -> None:
    before = content(folder)
    said = rescore_run(folder, edition, dry_run=True)
    assert content(folder) == before
    assert rescore_run(folder, edition).changes == said.changes


@pytest.mark.slow
@pytest.mark.parametrize("writes", [0, 5, 23, 24, 25])
def test_cut_short_it_is_mended_by_the_next(folder: Path, edition, new_scorers, monkeypatch, writes: int) -> None:
    """24 lines of the journal, the rows and the record are written: killed in the middle of one of them."""

    class KilledError(BaseException):
        pass

    done = []
    append, write_whole = os.write, version.write_atomic

    def write_line(handle: int, data: bytes) -> int:
        done.append(len(data))
        if len(done) > writes:
            append(handle, data[: len(data) // 2])
            raise KilledError
        return append(handle, data)

    def write_atomic(path: Path, data: bytes, *, durable: bool = False) -> None:
        done.append(len(data))
        if len(done) > writes:
            path.with_name(path.name + ".part").write_bytes(data[: len(data) // 2])
            raise KilledError
        write_whole(path, data, durable=durable)

    with monkeypatch.context() as patched:
        patched.setattr("finskillbench.runs.store.journal.os.write", write_line)
        patched.setattr("finskillbench.runs.store.record.write_atomic", write_atomic)
        patched.setattr("finskillbench.runs.store.rows.write_atomic", write_atomic)
        with pytest.raises(KilledError):
            rescore_run(folder, edition)
    assert orjson.loads((folder / "run.json").read_bytes())["scorer_version"] != version.scorer_version()
    rescore_run(folder, edition)
    assert not list(folder.rglob("*.part"))
    rows = pl.read_parquet(folder / "rows.parquet")
    assert rows.filter(sub_task=CHANGED)["score"].to_list() == [0.5] * 12
    assert rows["scorer_version"].unique().to_list() == [version.scorer_version()]
    assert orjson.loads((folder / "run.json").read_bytes())["scorer_version"] == version.scorer_version()
    assert {row.scorer_version for row in read_history(folder).rows.values()} == {version.scorer_version()}
    assert rescore_run(folder, edition).moved == ()


def test_an_episode_in_error_has_nothing_to_judge(edition, oracle, tmp_path: Path, request) -> None:
    run(edition, [oracle(fail=[1, 2])], ["no_skill"], out=tmp_path)
    request.getfixturevalue("new_scorers")
    result = rescore_run(tmp_path, edition)
    assert len({change.item for change in result.changes}) == 8
    failed = pl.read_parquet(tmp_path / "rows.parquet").filter(status="error")
    assert failed["score"].null_count() == failed.height == 4


def test_a_stopped_run_keeps_what_it_has(folder: Path, edition, oracle, new_scorers) -> None:
    """Rows that are not there are written from the journals; the torn line of an episode run again is left out."""
    (folder / "rows.parquet").unlink()
    journal = folder / JOURNAL
    journal.write_bytes(journal.read_bytes()[:-20])
    rescore_run(folder, edition)
    rows = pl.read_parquet(folder / "rows.parquet")
    assert rows.filter(status="error").height == 1
    assert rows.height == 24
    assert journal.read_bytes().endswith(b"}\n")


def _other_answer(path: Path) -> None:
    trajectory = read_trajectory(path)
    changed = replace(trajectory, trace=replace(trajectory.trace, task_id="pc_uncon_005"))
    path.write_bytes(gzip.compress(orjson.dumps(changed)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("harm", "printed"),
    [
        (Path.unlink, "not a readable trajectory"),
        (lambda path: path.write_bytes(path.read_bytes()[:-9]), "not a readable trajectory"),
        (lambda path: path.write_bytes(gzip.compress(b"[1]")), "not a trajectory"),
        (lambda path: path.write_bytes(gzip.compress(b'{"task_id": "x"}')), "not a trajectory"),
        (_other_answer, "of another episode"),
    ],
)
def test_a_bad_trajectory_is_named_and_nothing_changes(folder: Path, edition, new_scorers, harm, printed: str) -> None:
    victim = sorted((folder / "trajectories").rglob("*.json.gz"))[7]
    harm(victim)
    before = content(folder)
    with pytest.raises(InputError, match=printed) as caught:
        rescore_run(folder, edition)
    assert str(victim) in str(caught.value)
    assert content(folder) == before


def test_a_run_in_progress_is_left_alone(folder: Path, edition, new_scorers) -> None:
    before = content(folder)
    with exclusive(folder), pytest.raises(InputError, match="another process is writing this run"):
        rescore_run(folder, edition)
    assert content(folder) == before


def test_another_edition_is_refused(folder: Path, edition, memory_edition, new_scorers) -> None:
    before = content(folder)
    with pytest.raises(InputError, match="was run on another edition"):
        rescore_run(folder, memory_edition(edition.episodes(), digest="a" * 64))
    assert content(folder) == before


def test_a_folder_without_a_run_is_refused_and_stays_empty(edition, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no run"):
        rescore_run(tmp_path, edition)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "run.json").write_text('{"edition_path": 1}')
    with pytest.raises(InputError, match=r"run\.json: not a (readable )?run record"):
        rescore_run(tmp_path, edition)


def test_a_scorer_that_fails_changes_nothing(folder: Path, edition, new_scorers, monkeypatch) -> None:
    def broken(answer, truth, task_input) -> Score:
        raise RuntimeError("boom")

    subtask = subtasks.subtask_named(CHANGED)
    monkeypatch.setitem(subtasks._subtasks_by_name(), CHANGED, replace(subtask, scorers={Profile.PAPER: broken}))
    before = content(folder)
    # The labels here are made by hand, which is the first thing to be blamed.
    with pytest.raises(EditionError, match="the label cannot be judged"):
        rescore_run(folder, edition)
    assert content(folder) == before


def test_a_run_of_an_earlier_version_is_left_as_it_is(folder: Path, edition, oracle) -> None:
    """Its journals were a folder of files: read as none, they would leave an empty table."""
    (folder / "journal").mkdir()
    (folder / JOURNAL).rename(folder / "journal" / "no_skill.jsonl")
    before = content(folder)
    for again in (lambda: rescore_run(folder, edition), lambda: run(edition, [oracle()], ARMS, out=folder)):
        with pytest.raises(InputError, match="written by an earlier version"):
            again()
    assert content(folder) == before
