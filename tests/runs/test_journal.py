"""The journal survives any cut of its file, and only one process writes it."""

import subprocess
import sys

import orjson
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from finskillbench.errors import InputError
from finskillbench.runs.store.journal import SYNC_LINES, Journal, exclusive, key_of, read_journal
from finskillbench.runs.store.rows import SCHEMA, to_frame


def line(number: int, status: str = "scored", **more):
    row = dict.fromkeys(SCHEMA, "x")
    row |= {name: 0 for name, kind in SCHEMA.items() if kind == pl.Int64}
    row |= {name: [] for name, kind in SCHEMA.items() if kind == pl.List(pl.String)}
    row |= {"scores": {"paper": 1.0}, "score": None, "cost_usd": None, "latency_seconds": 0.5, "valid_json": True}
    row |= {"scripts_run": ["a"], "as_of_date": "2025-01-31"}
    return {**row, "model": "m", "condition": "curated", "task_id": f"t{number}", "status": status, **more}


def write(path, lines) -> bytes:
    journal = Journal(path)
    for one in lines:
        journal.append(one)
    journal.close()
    return path.read_bytes()


def test_what_is_appended_is_read_back(tmp_path) -> None:
    path = tmp_path / "j.jsonl"
    lines = [line(i, score=0.1 * i, text="é\n") for i in range(5)]
    assert write(path, lines).count(b"\n") == 5
    assert list(read_journal(path).values()) == lines


def test_every_line_is_with_the_system_at_once(tmp_path) -> None:
    journal = Journal(tmp_path / "j.jsonl")
    journal.append(line(0))
    assert len(read_journal(tmp_path / "j.jsonl")) == 1
    journal.close()


def test_syncs_come_in_batches_by_number_and_by_time(tmp_path, monkeypatch) -> None:
    synced = []
    monkeypatch.setattr("finskillbench.runs.store.journal.os.fsync", synced.append)
    now = [0.0]
    journal = Journal(tmp_path / "j.jsonl", clock=lambda: now[0])
    for i in range(SYNC_LINES - 1):
        journal.append(line(i))
    assert not synced
    journal.append(line(-1))
    assert len(synced) == 1
    now[0] = 1.5
    journal.append(line(-2))
    assert len(synced) == 2
    journal.append(line(-3))
    journal.close()
    assert len(synced) == 3


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cut=st.floats(0, 1), garbage=st.binary(max_size=20))
def test_a_torn_tail_is_dropped_and_appending_goes_on(tmp_path, cut: float, garbage: bytes) -> None:
    path = tmp_path / "j.jsonl"
    path.unlink(missing_ok=True)
    data = write(path, [line(i, text="x" * (7 * i)) for i in range(6)])
    at = round(cut * len(data))
    whole = data[:at].count(b"\n")
    tail = garbage.replace(b"\n", b"")
    path.write_bytes(data[:at] + tail)
    # Garbage may complete the torn line only by being its very rest, without the newline that would end it.
    assert len(read_journal(path)) == whole
    assert len(read_journal(path, mend=True)) == whole
    write(path, [line(99)])
    again = read_journal(path)
    assert [key.task_id for key in again] == [f"t{i}" for i in range(whole)] + ["t99"]


def test_a_last_line_of_zeros_is_dropped_too(tmp_path) -> None:
    path = tmp_path / "j.jsonl"
    data = write(path, [line(0)])
    path.write_bytes(data + b"\0" * 50 + b"\n")
    assert len(read_journal(path, mend=True)) == 1
    assert path.read_bytes() == data


def test_damage_in_the_middle_names_the_line(tmp_path) -> None:
    path = tmp_path / "j.jsonl"
    data = write(path, [line(0), line(1), line(2)]).split(b"\n")
    path.write_bytes(b"\n".join([data[0], data[1][:-5], data[2], b""]))
    with pytest.raises(InputError, match=r"j\.jsonl, line 2: not a journal line"):
        read_journal(path)


def test_of_two_lines_of_an_item_the_last_counts(tmp_path) -> None:
    path = tmp_path / "j.jsonl"
    write(path, [line(0, "error"), line(1), line(0, "scored")])
    assert read_journal(path)[key_of(line(0))]["status"] == "scored"


def test_an_absent_journal_is_empty(tmp_path) -> None:
    assert read_journal(tmp_path / "none.jsonl") == {}


@pytest.mark.parametrize("name", SCHEMA)
@pytest.mark.parametrize("last", [True, False])
def test_a_line_that_lacks_a_field_of_its_row_is_named(tmp_path, name: str, last: bool) -> None:
    path = tmp_path / "j.jsonl"
    bad = {key: value for key, value in line(1).items() if key != name}
    path.write_bytes(b"".join(orjson.dumps(each) + b"\n" for each in [line(0), bad] + [line(2)] * (not last)))
    with pytest.raises(InputError, match=rf"j\.jsonl, line 2: not a journal line \(no '{name}'\)"):
        read_journal(path)


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
    ],
)
def test_a_line_with_a_wrong_value_is_named(tmp_path, wrong: dict) -> None:
    assert to_frame([line(0)]).height == 1
    path = tmp_path / "j.jsonl"
    path.write_bytes(orjson.dumps({**line(0), **wrong}) + b"\n")
    with pytest.raises(InputError, match=rf"line 1: not a journal line \({next(iter(wrong))} is "):
        read_journal(path)


@pytest.mark.parametrize("bad", [[], {}, {"model": 1}, {**line(0), "run_idx": True}, {**line(0), "condition": "x"}])
def test_what_is_no_journal_line_is_not_taken_for_one(tmp_path, bad) -> None:
    path = tmp_path / "j.jsonl"
    path.write_bytes(orjson.dumps(bad) + b"\n" + orjson.dumps(line(1)) + b"\n")
    with pytest.raises(InputError, match="line 1"):
        read_journal(path)


def test_a_second_process_is_kept_out(tmp_path) -> None:
    code = (
        "import sys, pathlib\n"
        "from finskillbench.runs.store.journal import exclusive\n"
        "from finskillbench.errors import InputError\n"
        "try:\n"
        "    with exclusive(pathlib.Path(sys.argv[1])): print('in')\n"
        "except InputError as error: print(error)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    with exclusive(tmp_path):
        held = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "another process is writing this run" in held
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "in\n"
