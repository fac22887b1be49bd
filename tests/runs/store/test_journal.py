"""The journal survives any cut of its file, only one process writes it, and what it says was spent is never too low."""

import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import orjson
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.runs.examples import ROW, row
from tests.sampling import examples

from finskillbench.episode import Status
from finskillbench.errors import InputError
from finskillbench.harness.model import FREE, Usage
from finskillbench.harness.providers.prices import Price
from finskillbench.runs.store.journal import JOURNAL, SYNC_LINES, Journal, exclusive, read_events, read_history
from finskillbench.runs.store.record import AnyEvent, Call, Dropped, Expense, Finished, Rescored, replay_events
from finskillbench.runs.store.rows import SCHEMA, from_frame, to_frame

PAID = Expense(1, Usage(input_tokens=1_000, output_tokens=50, cost_usd=0.25))
BEGUN = Expense(0, FREE, lost_usd=0.5)


def line(number: int = 0, **changes) -> dict:
    """An event as it is written, with fields of its row changed."""
    return {"event": "finished", "row": {**msgspec.to_builtins(row(number)), **changes}}


def write(folder: Path, *events: AnyEvent) -> bytes:
    with Journal(folder) as journal:
        for event in events:
            journal.append(event)
    return (folder / JOURNAL).read_bytes()


def write_lines(folder: Path, *lines: object) -> None:
    (folder / JOURNAL).write_bytes(b"".join(orjson.dumps(each) + b"\n" for each in lines))


def test_what_is_appended_is_read_back(tmp_path) -> None:
    events = [
        *(Finished(row(i, score=0.1 * i), lost_usd=i / 3) for i in range(3)),
        Call(ROW.item, PAID),
        Dropped(ROW.item, "budget", BEGUN),
        Rescored(row(status=Status.MAX_TURNS_EXHAUSTED)),
    ]
    assert write(tmp_path, *events).count(b"\n") == len(events)
    assert read_events(tmp_path) == events


def test_every_line_is_with_the_system_at_once(tmp_path) -> None:
    with Journal(tmp_path) as journal:
        journal.append(Finished(ROW))
        assert len(read_events(tmp_path)) == 1


def test_syncs_come_in_batches_by_number_and_by_time(tmp_path, monkeypatch) -> None:
    synced = []
    monkeypatch.setattr("finskillbench.runs.store.journal.os.fsync", synced.append)
    now = [0.0]
    journal = Journal(tmp_path, clock=lambda: now[0])
    for i in range(SYNC_LINES - 1):
        journal.append(Finished(row(i)))
    assert not synced
    journal.append(Finished(ROW))
    assert len(synced) == 1
    now[0] = 1.5
    journal.append(Finished(ROW))
    assert len(synced) == 2
    journal.append(Finished(ROW))
    journal.close()
    assert len(synced) == 3


@settings(max_examples=examples(80), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cut=st.floats(0, 1), garbage=st.binary(max_size=20))
def test_a_torn_tail_is_dropped_and_appending_goes_on(tmp_path, cut: float, garbage: bytes) -> None:
    (tmp_path / JOURNAL).unlink(missing_ok=True)
    data = write(tmp_path, *(Finished(row(i, error="x" * (7 * i))) for i in range(6)))
    at = round(cut * len(data))
    whole = data[:at].count(b"\n")
    # Garbage may complete the torn line only by being its very rest, without the newline that would end it.
    (tmp_path / JOURNAL).write_bytes(data[:at] + garbage.replace(b"\n", b""))
    assert len(read_events(tmp_path)) == whole
    write(tmp_path, Finished(row(99)))
    assert [item.task_id for item in read_history(tmp_path).rows] == [f"t{i}" for i in range(whole)] + ["t99"]


def test_a_last_line_of_zeros_is_dropped_too(tmp_path) -> None:
    data = write(tmp_path, Finished(ROW))
    (tmp_path / JOURNAL).write_bytes(data + b"\0" * 50 + b"\n")
    assert len(read_events(tmp_path)) == 1
    assert write(tmp_path) == data


def test_damage_in_the_middle_names_the_line(tmp_path) -> None:
    data = write(tmp_path, *(Finished(row(i)) for i in range(3))).split(b"\n")
    (tmp_path / JOURNAL).write_bytes(b"\n".join([data[0], data[1][:-5], data[2], b""]))
    with pytest.raises(InputError, match=r"journal\.jsonl, line 2: not a journal line"):
        read_events(tmp_path)


def test_an_absent_journal_is_empty(tmp_path) -> None:
    assert read_events(tmp_path) == []


@pytest.mark.parametrize("name", SCHEMA)
@pytest.mark.parametrize("last", [True, False])
def test_a_line_that_lacks_a_field_of_its_row_is_named(tmp_path, name: str, last: bool) -> None:
    bad = line(1)
    del bad["row"][name]
    write_lines(tmp_path, line(0), bad, *[line(2)] * (not last))
    with pytest.raises(InputError, match=rf"journal\.jsonl, line 2: not a journal line \(.* field `{name}`"):
        read_events(tmp_path)


@pytest.mark.parametrize(
    "wrong",
    [
        {"score": "high"},
        {"scores": {"paper": "1"}},
        {"as_of_date": "May"},
        {"tool_calls": 2**63},
        {"skills_loaded": [1]},
        {"valid_json": 1},
        {"as_of_date": None},
        {"latency_seconds": None},
        {"scores": 1},
        {"model": 1},
        {"run_idx": True},
        {"condition": "x"},
        {"status": "fine"},
    ],
)
def test_a_line_with_a_wrong_value_is_named(tmp_path, wrong: dict) -> None:
    write_lines(tmp_path, line())
    assert to_frame(read_history(tmp_path).rows.values()).height == 1
    write_lines(tmp_path, line(**wrong))
    with pytest.raises(InputError, match=rf"line 1: not a journal line \(.*\$\.row\.{next(iter(wrong))}"):
        read_events(tmp_path)


@pytest.mark.parametrize("bad", [[], {}, {"event": "begun"}, {"event": "call", "item": 1}, {"row": line()["row"]}])
def test_what_is_no_journal_line_is_not_taken_for_one(tmp_path, bad) -> None:
    write_lines(tmp_path, bad, line(1))
    with pytest.raises(InputError, match="line 1"):
        read_events(tmp_path)


@pytest.mark.slow
def test_a_second_process_is_kept_out(tmp_path) -> None:
    code = (
        "import sys, pathlib\n"
        "from finskillbench.runs.store.journal import exclusive\n"
        "from finskillbench.errors import InputError\n"
        "for _ in sys.stdin:\n"
        "    try:\n"
        "        with exclusive(pathlib.Path(sys.argv[1])): print('in', flush=True)\n"
        "    except InputError as error: print(error, flush=True)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        with exclusive(tmp_path):
            process.stdin.write("try\n")
            assert "another process is writing this run" in process.stdout.readline()
        process.stdin.write("try again\n")
        assert process.stdout.readline() == "in\n"


def test_of_two_rows_of_an_item_the_last_counts_and_both_were_paid() -> None:
    found = replay_events([Finished(row(status=Status.ERROR)), Finished(row(1)), Finished(ROW, 0.5), Rescored(row(1))])
    assert found.rows[ROW.item].status is Status.SCORED
    assert found.spent({}) == 3 * 0.25 + 0.5


def test_a_price_that_was_not_known_is_taken_from_the_table_at_the_dearer_of_input_and_cache_writes() -> None:
    found = replay_events([Finished(row(cost_usd=None, total_cached_tokens=400))])
    assert found.spent({}) == 0.0
    assert found.spent({"m": Price(2.0, 0.5, 2.5, 8.0)}) == pytest.approx((600 * 2.5 + 400 * 0.5 + 50 * 8.0) / 1e6)
    assert found.spent({"m": Price(2.0, 0.5, 0.0, 8.0)}) == pytest.approx((600 * 2.0 + 400 * 0.5 + 50 * 8.0) / 1e6)


def test_what_a_killed_process_left_open_is_paid_once() -> None:
    items = [row(number).item for number in range(4)]
    events: list[AnyEvent] = [Call(item, BEGUN) for item in items]
    events += [Call(items[0], PAID), Finished(row(1)), Dropped(items[2], "budget", PAID), Call(items[3], Expense())]
    found = replay_events(events)
    assert found.killed() == [Dropped(items[0], "killed", PAID)]
    assert found.spent({}) == 3 * 0.25
    again = replay_events([*events, *found.killed()])
    assert (again.killed(), again.spent({})) == ([], found.spent({}))


PROGRAM = """
import asyncio, importlib.util, os, sys, time
from pathlib import Path
spec = importlib.util.spec_from_file_location("parts", sys.argv[1])
parts = importlib.util.module_from_spec(spec)
spec.loader.exec_module(parts)
from finskillbench.harness.model import ToolCall, Turn, Usage
from finskillbench.harness.providers.prices import Price
from finskillbench.runs.execute.run import run

class Endless(parts.Paid):
    calls = 0
    async def generate(self, messages, tools, tool_choice):
        await asyncio.sleep(0.001)
        Endless.calls += 1
        if Endless.calls > 40:
            print(Endless.calls - 1, flush=True)
            time.sleep(60)
        read = ToolCall("r", "get_task_data", '{"field": "number"}')
        return Turn(tool_calls=(read,), usage=Usage(input_tokens=1_000, output_tokens=50))

run(parts.standard_edition(), [Endless(price=Price(2.0, 0.2, 2.5, 10.0))], ["no_skill"], out=Path(sys.argv[2]),
    max_concurrency=5, max_cost=100.0)
"""


@pytest.mark.slow
def test_kill_9_does_not_make_a_budget_forget(tmp_path: Path) -> None:
    parts, out = Path(__file__).parents[1] / "conftest.py", tmp_path / "run"
    command = [sys.executable, "-c", PROGRAM, str(parts), str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        calls = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
    paid = calls * (1_000 * 2.0 + 50 * 10.0) / 1e6
    found = read_history(out)
    assert len(found.open) == 5
    # Five calls had been set aside for and not answered: they count at their upper bounds.
    assert paid <= found.spent({}) < paid + 5 * 0.2
    write(out, *found.killed())
    assert (read_history(out).open, read_history(out).spent({})) == ({}, pytest.approx(found.spent({})))


def test_rows_make_a_table_and_a_table_rows() -> None:
    rows = [row(0), row(1, score=None, score_profile=None, cost_usd=None, incidents=("timeout",))]
    frame = to_frame(rows)
    assert frame.schema == pl.Schema(SCHEMA)
    assert from_frame(frame) == rows
    assert from_frame(to_frame([])) == []


def test_journals_of_an_earlier_version_are_refused(tmp_path) -> None:
    (tmp_path / "journal").mkdir()
    with pytest.raises(InputError, match=r"written by an earlier version, .* choose another --out"):
        read_history(tmp_path)
