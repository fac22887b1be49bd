"""Files are whole or not there, and the journal says so even where a crash has cut its last line."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from finskillbench.errors import InputError, SourceError
from finskillbench.fetch.fetcher import open_folder
from finskillbench.sources.fetched import Entry, FetchRequest, Origin, read_journal, verify_collection

ASKED = FetchRequest(start="2025-10", end="2025-12", universe="sp500", prices="yahoo")
ENTRY = Entry("fred/DFF.csv", retrieved="2026-01-02T00:00:00Z", origins=(Origin("https://a.example", "x"),))


def test_a_file_that_was_written_down_and_not_renamed_is_there(tmp_path: Path) -> None:
    """What a kill between the two leaves: the entry in the journal, and the bytes beside."""
    raw = tmp_path / "raw"
    with open_folder(raw, ASKED) as folder:
        folder.write(ENTRY, b"DATE,DFF\n")
    beside = raw / ".fetch" / f"{hashlib.sha256(b'fred/DFF.csv').hexdigest()[:32]}.new"
    (raw / "fred" / "DFF.csv").rename(beside)
    with open_folder(raw, ASKED) as folder:
        entry = folder.have("fred/DFF.csv")
        assert entry is not None
        assert entry.bytes == 9
        assert (raw / "fred" / "DFF.csv").read_bytes() == b"DATE,DFF\n"
        assert not beside.exists()


def test_a_line_that_was_cut_off_is_none(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    with open_folder(raw, ASKED) as folder:
        folder.write(ENTRY, b"DATE,DFF\n")
    with (raw / "provenance.jsonl").open("ab") as file:
        file.write(b'{"path":"fred/DGS2.c')
    journal = read_journal(raw)
    assert journal is not None
    assert set(journal.entries) == {"fred/DFF.csv"}
    with open_folder(raw, ASKED) as folder:
        folder.record(Entry("fred/DGS2.csv", absent="none"))
    journal = read_journal(raw)
    assert journal is not None
    assert set(journal.entries) == {"fred/DFF.csv", "fred/DGS2.csv"}


def test_a_line_that_is_none_of_ours_is_named(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    with open_folder(raw, ASKED):
        pass
    path = raw / "provenance.jsonl"
    path.write_text(path.read_text() + '{"file": 3}\n')
    with pytest.raises(SourceError, match="line 2: not a line of a journal"):
        read_journal(raw)
    with pytest.raises(SourceError, match="choose another --out"), open_folder(raw, ASKED):
        pass


def test_a_complete_collection_has_one_digest_whatever_the_days(tmp_path: Path) -> None:
    digests: list[str] = []
    for place, day in (("one", "2026-01-02"), ("two", "2026-03-04")):
        raw = tmp_path / place
        with open_folder(raw, ASKED) as folder:
            folder.write(Entry("fred/DFF.csv", retrieved=day), b"DATE,DFF\n")
            folder.record(Entry("fred/DGS2.csv", absent="none"))
            folder.finish()
        told = verify_collection(raw, ["fred/DFF.csv"])
        assert told is not None
        digests.append(told.digest)
        assert told.manifest_entry["from"] == "2025-10"
    assert digests[0] == digests[1]
    (tmp_path / "one" / "fred" / "DFF.csv").write_bytes(b"DATE,DFX\n")
    with pytest.raises(SourceError, match="was altered since it was fetched 2026-01-02"):
        verify_collection(tmp_path / "one", [])


def test_what_an_earlier_fetch_brought_and_this_one_does_not_need_is_removed(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    for names in (("A", "B"), ("B",)):
        with open_folder(raw, ASKED) as folder:
            for name in names:
                if folder.have(f"prices/{name}.csv") is None:
                    folder.write(Entry(f"prices/{name}.csv"), b"Date\n")
                folder.keep(f"prices/{name}.csv")
            folder.finish()
    assert [path.name for path in (raw / "prices").iterdir()] == ["B.csv"]


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "raw").write_text("")
    with pytest.raises(InputError, match="were not fetched"), open_folder(tmp_path / "raw", ASKED):
        pass
