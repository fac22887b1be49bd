"""The example of a real model: its page shows what its files hold, and no file names a path of a machine."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import polars as pl
import pytest

from finskillbench.cli import main

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "local-model"
PAGE = (FOLDER / "README.md").read_text(encoding="utf-8")
_COMMAND = r"^    finskillbench ((?:report|show) examples/local-model/.*)\n\n```text\n([^`]*(?:`\w+`[^`]*)*)```"
SHOWN = re.findall(_COMMAND, PAGE, re.MULTILINE)


@pytest.mark.parametrize(("command", "text"), SHOWN)
def test_the_page_shows_what_its_command_prints(
    command: str, text: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.chdir(ROOT)
    assert main(command.split()) == 0
    printed = capsys.readouterr().out
    for part in text.split("[...]"):
        assert part.strip() in printed


def test_the_totals_are_those_of_the_rows() -> None:
    rows = pl.read_parquet(FOLDER / "rows.parquet")
    assert len(SHOWN) == 5
    assert rows["condition"].value_counts()["count"].to_list() == [40, 40, 40]
    assert rows["retries"].sum() == 0
    totals = pl.col("latency_seconds", "total_input_tokens", "total_output_tokens", "turns").sum()
    assert str(rows.select(totals.round(1)).row(0)) in PAGE


def test_the_files_name_no_path_of_a_machine() -> None:
    rows = pl.read_parquet(FOLDER / "rows.parquet")
    texts = [rows.write_ndjson(), *(gzip.decompress(path.read_bytes()).decode() for path in FOLDER.glob("*.json.gz"))]
    assert len(texts) == 4
    assert not re.search(r"/(work|home|root|tmp|Users|usr)/|site-packages", "".join(texts))
