"""Rows that were read hold once what they have in common, and are the rows that were written."""

from __future__ import annotations

from pathlib import Path

from tests.runs.examples import row

from finskillbench.runs.store import journal
from finskillbench.runs.store.journal import read_history, write_events
from finskillbench.runs.store.record import Finished
from finskillbench.runs.store.rows import to_frame


def test_texts_in_common_are_held_once(tmp_path: Path) -> None:
    written = [row(number) for number in range(3)]
    write_events(tmp_path, map(Finished, written))
    read = list(read_history(tmp_path).rows.values())
    assert read == written
    assert len({id(each.edition) for each in read}) == len({id(each.mount) for each in read}) == 1


def test_a_table_made_in_parts_is_the_table(monkeypatch) -> None:
    rows = [row(number) for number in range(7)]
    whole = to_frame(rows)
    monkeypatch.setattr("finskillbench.runs.store.rows._CHUNK_ROWS", 2)
    assert to_frame(rows).equals(whole)
    assert to_frame([]).schema == whole.schema


def test_the_end_of_a_journal_is_found_wherever_its_last_lines_begin(tmp_path: Path, monkeypatch) -> None:
    write_events(tmp_path, [Finished(row(number)) for number in range(5)])
    file = tmp_path / journal.JOURNAL
    whole = file.read_bytes()
    for tail in (1, 7, 1000, len(whole) // 2, 2 * len(whole)):
        monkeypatch.setattr(journal, "_TAIL_BYTES", tail)
        for torn, rows in ((b"", 5), (b'{"event"', 5), (b'{"event"\n', 5)):
            file.write_bytes(whole + torn)
            assert len(read_history(tmp_path).rows) == rows
            with journal.Journal(tmp_path):
                pass
            assert file.read_bytes() == whole
