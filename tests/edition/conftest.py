"""Copies of the synthetic edition that a test may alter."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest
from tests.edition.examined import validated

from finskillbench.edition import Edition, load_edition
from finskillbench.edition.checks.catalog import CheckReport
from finskillbench.edition.store import read_lines, write_lines, write_manifest

Row = dict[str, Any]


class Workshop:
    """A copy of an edition: `edit` changes rows or files, `reload` writes a matching manifest and loads it again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def rows(self, part: str, sub_task: str) -> list[Row]:
        return list(read_lines(self.folder / part / f"{sub_task}.jsonl"))

    def edit(self, part: str, sub_task: str, change: Callable[[Row], None], index: int = 0) -> None:
        rows = self.rows(part, sub_task)
        change(rows[index])
        write_lines(self.folder / part / f"{sub_task}.jsonl", rows)

    def edit_json(self, name: str, change: Callable[[Row], None]) -> None:
        value = orjson.loads((self.folder / name).read_bytes())
        change(value)
        (self.folder / name).write_bytes(orjson.dumps(value))

    def reload(self) -> Edition:
        manifest = orjson.loads((self.folder / "manifest.json").read_bytes())
        derived = ("format", "digest", "files", "seal")
        write_manifest(self.folder, {name: value for name, value in manifest.items() if name not in derived})
        return load_edition(self.folder)

    def validated(self, *domains: str) -> CheckReport:
        """The report on the edition as it now is; on the checks of some domains only, where any are named."""
        return validated(self.reload(), domains or None)


def _of(row: Row, companies: list[str]) -> bool:
    """Whether an episode is of one of some companies, or needs no facts of any."""
    return "filing_facts" not in row["input"] or row["input"]["symbol"] in companies


@pytest.fixture(scope="session")
def slim(edition: Edition, tmp_path_factory: pytest.TempPathFactory) -> Edition:
    """Five episodes of each subtask and the facts of four companies: the same checks on less."""
    folder = tmp_path_factory.mktemp("slim") / "edition"
    shutil.copytree(edition.path, folder)
    few = pl.read_parquet(folder / "panels" / "facts.parquet")["symbol"].unique().sort()[:4].to_list()
    kept: set[str] = set()
    cures = edition.certificates("risk_remediation")
    beyond = {task_id for task_id, certificate in cures.items() if "least_turnover" in certificate}
    counts = dict.fromkeys(edition.sub_tasks, 5)
    for name, count in counts.items():
        rows = [row for row in read_lines(folder / "episodes" / f"{name}.jsonl") if _of(row, few)]
        rows.sort(key=lambda row: row["task_id"] not in beyond)
        chosen = {row["task_id"] for row in rows[:: len(rows) // count][:count]}
        kept |= chosen
        for file in folder.glob(f"*/{name}.jsonl"):
            write_lines(file, [row for row in read_lines(file) if row["task_id"] in chosen])
    for tables in folder.glob("tables/*"):
        if tables.name not in kept:
            shutil.rmtree(tables)
    for name in ("facts", "filings", "segments"):
        path = folder / "panels" / f"{name}.parquet"
        table = pl.read_parquet(path)
        table.filter(pl.col("symbol").is_in(few)).write_parquet(path)
    workshop = Workshop(folder)

    def fewer(manifest: Row) -> None:
        manifest["counts"] = counts
        manifest["parameters"]["portfolio"]["episodes_per_subtask"] = 5

    workshop.edit_json("manifest.json", fewer)
    return workshop.reload()


@pytest.fixture
def workshop(slim: Edition, tmp_path: Path) -> Workshop:
    """A copy of the slim edition."""
    shutil.copytree(slim.path, tmp_path / "edition")
    return Workshop(tmp_path / "edition")


@pytest.fixture
def whole(edition: Edition, tmp_path: Path) -> Workshop:
    """A copy of the edition with all its episodes: a few of them need not hold a replay."""
    shutil.copytree(edition.path, tmp_path / "whole")
    return Workshop(tmp_path / "whole")
