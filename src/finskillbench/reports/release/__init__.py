"""The rows that were published with the paper, as rows of ours under the profile `paper`.

Two formats are read: `results_all.jsonl` of the full run, and the files of the Hermes runs. What they do not tell is
null: retries, times of day and digests; of the full run also cached and reasoning tokens, cost and scripts.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import polars as pl

from finskillbench.errors import InputError
from finskillbench.reports.release.columns import to_record
from finskillbench.reports.release.full import FullRow
from finskillbench.reports.release.hermes import HermesRow
from finskillbench.runs.store.rows import SCHEMA


class _Kind(msgspec.Struct):
    """What tells the formats apart."""

    harness: str | None = None


def read_release(path: Path) -> pl.DataFrame:
    """Read a file of published rows, a JSON object in each line.

    Returns
    -------
    Rows with the columns of `rows.parquet`.

    Raises
    ------
    InputError : it cannot be read, has no line, or one that is no such row; the message names file, line and field.
    """
    records = list(_records(path))
    if not records:
        raise InputError(f"{path}: is empty; take the file from the release again")
    return pl.DataFrame(records, schema=dict(SCHEMA), orient="row")


def _records(path: Path) -> Iterator[dict[str, object]]:
    kind, full, hermes = msgspec.json.Decoder(_Kind), msgspec.json.Decoder(FullRow), msgspec.json.Decoder(HermesRow)
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                try:
                    row = (full if kind.decode(line).harness is None else hermes).decode(line)
                    yield to_record(row.told())
                except (msgspec.DecodeError, ValueError) as error:
                    raise InputError(
                        f"{path}, line {number}: no row of a run, nor of the published release ({error}); "
                        "take the file from the release again or delete the line"
                    ) from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
