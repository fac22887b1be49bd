"""Export episodes as pages for people, and read their saved answers.

A page is one HTML file for one participant. It needs no network, holds no truth, and shows the episodes one by one with
their times. `finskillbench score` imports the saved answers as rows `human/PARTICIPANT`.
"""

from __future__ import annotations

import base64
import hashlib
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import msgspec
import orjson
import polars as pl

from finskillbench.csv_output import csv_text
from finskillbench.domains.tables import EpisodeTable
from finskillbench.edition import Edition
from finskillbench.edition.store import new_folder
from finskillbench.edition.withheld import CANARY_TEXT
from finskillbench.episode import Episode
from finskillbench.errors import InputError
from finskillbench.harness.conditions import Condition
from finskillbench.harness.prompts.compose import render_schema
from finskillbench.integrations.task_files.verify import read_plain
from finskillbench.integrations.task_files.write import (
    RECORD,
    ExportRecord,
    answer_type,
    check_task_export,
    exportable_episodes,
    readable_input,
)
from finskillbench.reports.page.render import human_page
from finskillbench.runs.config import EpisodeSelection
from finskillbench.runs.store.rows import Moment
from finskillbench.scoring.values import is_array, is_object

_PARTICIPANT = re.compile(r"[A-Z0-9][A-Z0-9-]{0,31}")
_MOST_ROWS = 500
"""Maximum rows of a table on a page; its CSV file holds all."""
_MOST_BYTES = 1 << 28
_DUMP = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS


def export_pages(
    edition: Edition, out: Path, participants: Sequence[str], chosen: EpisodeSelection, minutes: int | None = None
) -> ExportRecord:
    """Write a page `PARTICIPANT.html` for each participant, all with the same episodes, and the record of the export.

    The order of the episodes depends on the edition and the participant.

    Parameters
    ----------
    edition : its truth is not read.
    out : a new folder.
    participants : identifiers, not names of people.
    chosen : subtasks, and a limit or a sample. Other fields are not read.
    minutes : time after which an episode is submitted as it is; None for no limit.

    Raises
    ------
    InputError : a participant, subtask or number does not fit, no episode is left, or `out` is not empty or not
        writable.
    EditionError : the panels cannot be read.
    """
    if not participants or sorted(participants) != sorted({*filter(_PARTICIPANT.fullmatch, participants)}):
        raise InputError("--participant: name each person once, by up to 32 of A-Z, 0-9 and -, such as P01")
    if chosen.limit is None and chosen.sample is None:
        raise InputError("a page for people needs a small number of episodes; add --sample N or --limit N")
    episodes, mounts = exportable_episodes(edition, chosen, check_task_export(Condition.NO_SKILL, {}))
    tasks = {f"{number:03d}": episode for number, episode in enumerate(episodes, 1)}
    record = ExportRecord(
        edition=edition.digest,
        condition=Condition.NO_SKILL,
        mounts={domain: each.digest for domain, each in mounts.items()},
        tasks={name: episode.task_id for name, episode in tasks.items()},
        participants=tuple(participants),
        minutes=minutes,
    )
    contents = {name: _content(edition, episode) for name, episode in tasks.items()}
    shared = {"export": _identity(record), "minutes": minutes, "canary": CANARY_TEXT.strip()}
    with new_folder(out) as folder:
        for participant in participants:
            order = random.Random(f"{edition.digest} {participant}").sample(list(contents.items()), len(contents))
            page = human_page({"title": participant, "participant": participant, "tasks": order, **shared})
            (folder / f"{participant}.html").write_text(page, encoding="utf-8")
        (folder / RECORD).write_bytes(orjson.dumps(record, option=orjson.OPT_INDENT_2))
    return record


def _identity(record: ExportRecord) -> str:
    """Return the digits by which saved answers name their export; participants do not change them."""
    return hashlib.sha256(orjson.dumps(replace(record, participants=()))).hexdigest()[:16]


def _content(edition: Edition, episode: Episode) -> dict[str, Any]:
    """Return what a page shows of an episode: the texts, data and answer format of its task prompt."""
    answer = answer_type(episode)
    schema: dict[str, Any] = {"type": "object"} if answer is None else answer.model_json_schema()
    given = {
        name: value if isinstance(value, EpisodeTable) else orjson.loads(orjson.dumps(value, option=_DUMP))
        for name, value in readable_input(edition, episode).items()
    }
    return {
        "episode": episode,
        "tables": [_table_content(*each) for each in _tables("", given)],
        "schema": "" if answer is None else render_schema(answer),
        "required": " ".join(schema.get("required", ())),
        "skeleton": orjson.dumps(_skeleton(schema, schema.get("$defs", {})), option=orjson.OPT_INDENT_2).decode(),
    }


def _skeleton(node: Mapping[str, Any], defs: Mapping[str, Any]) -> Any:
    """Return an empty answer of a JSON schema: required keys, null for values, one entry in a list of objects."""
    if "$ref" in node:
        return _skeleton(defs[node["$ref"].rsplit("/", 1)[-1]], defs)
    if node.get("type") == "array":
        entry = _skeleton(node.get("items", {}), defs)
        return [entry] if entry else []
    if node.get("type") == "object":
        properties = node.get("properties", {})
        return {name: _skeleton(properties[name], defs) for name in node.get("required", ()) if name in properties}
    return None


def _tables(name: str, value: Any) -> Iterator[tuple[str, list[str], list[list[Any]]]]:
    """Yield name, columns and rows of the tables that hold an input value."""
    if isinstance(value, EpisodeTable):
        yield name, value.frame.columns, [list(row) for row in value.frame.iter_rows()]
    elif is_array(value):
        rows = value if value and all(map(is_object, value)) else [{"value": each} for each in value]
        yield name, *_from_records(rows)
    elif value.keys() == {"tickers", "matrix"}:
        names = value["tickers"]
        yield name, ["", *names], [[each, *row] for each, row in zip(names, value["matrix"], strict=True)]
    elif len(value) > 1 and all(map(is_object, value.values())) and len(set(map(frozenset, value.values()))) == 1:
        yield name, *_from_records([{"": key, **entry} for key, entry in value.items()])
    else:
        nested = {key: each for key, each in value.items() if each and (is_object(each) or is_array(each))}
        if flat := [[key, each] for key, each in value.items() if key not in nested]:
            yield name or "values", ["field", "value"], flat
        for key, each in nested.items():
            yield from _tables(f"{name}.{key}" if name else key, each)


def _from_records(records: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[list[Any]]]:
    columns = list(dict.fromkeys(key for record in records for key in record))
    return columns, [[record.get(column) for column in columns] for record in records]


def _table_content(name: str, columns: list[str], rows: list[list[Any]]) -> dict[str, Any]:
    texts = [[_exact(cell) for cell in row] for row in rows]
    frame = pl.DataFrame(texts, schema=dict.fromkeys(columns, pl.String), orient="row")
    return {
        "name": name,
        "columns": columns,
        "rows": [[_rounded(cell) for cell in row] for row in rows[:_MOST_ROWS]],
        "total": len(rows),
        "csv": base64.b64encode(csv_text(frame).encode()).decode(),
    }


def _exact(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else orjson.dumps(value).decode().strip('"')


def _rounded(value: Any) -> str:
    if not isinstance(value, float):
        return _exact(value)
    return f"{value:.6f}".rstrip("0").rstrip(".") if abs(value) >= 1e-3 else f"{value:.6g}"


@dataclass(frozen=True, slots=True)
class HumanAnswer:
    """One episode of a participant: first view, last activity, seconds of work, answer text or None."""

    started: Moment
    ended: Moment
    seconds: Annotated[float, msgspec.Meta(ge=0)]
    answer: str | None

    @property
    def paused(self) -> float:
        """Seconds from first view to last activity in which the task was not open."""
        return max(0.0, (self.ended - self.started).total_seconds() - self.seconds)


@dataclass(frozen=True, slots=True)
class _Saved:
    """File of answers that a page has saved, by the number of the task, and the time of consent."""

    export: str
    participant: str
    consented: Moment
    episodes: dict[str, HumanAnswer]


def read_pages(folder: Path, record: ExportRecord) -> dict[str, dict[str, HumanAnswer]]:
    """Read the files `PARTICIPANT.json` next to the pages of an export; participants without one are left out.

    Raises
    ------
    InputError : no file is there, or one is damaged, without consent, of another export or participant, or
        has tasks or times that its page cannot have.
    """
    found: dict[str, dict[str, HumanAnswer]] = {}
    known = {RECORD, *(f"{participant}.json" for participant in record.participants)}
    if strange := sorted(path for path in folder.glob("*.json") if path.name not in known):
        raise InputError(f"{strange[0]}: of no participant in {RECORD}; name it PARTICIPANT.json, or remove it")
    for participant in record.participants:
        path = folder / f"{participant}.json"
        if (data := read_plain(path, _MOST_BYTES)) is None:
            continue
        try:
            saved = msgspec.json.decode(data, type=_Saved)
        except ValueError as error:
            raise InputError(f"{path}: not answers saved by a page ({error}); save them again") from None
        if (saved.export, saved.participant) != (_identity(record), participant):
            theirs = f"answers of {saved.participant!r} to export {saved.export!r}"
            raise InputError(f"{path}: {theirs}; put the file that {participant}.html has saved there")
        for name, answer in saved.episodes.items():
            if problem := _problem(name, answer, record):
                raise InputError(f"{path}: task {name!r}: {problem}; put the file as {participant}.html has saved it")
        found[participant] = saved.episodes
    if not found:
        raise InputError(
            f"{folder}: has no saved answers; put {record.participants[0]}.json and others next to the pages"
        )
    return found


def _problem(name: str, answer: HumanAnswer, record: ExportRecord) -> str | None:
    """Return why a page cannot have saved an answer, or None."""
    if name not in record.tasks:
        return "not on the page"
    if answer.ended < answer.started:
        return "ended before it started"
    if record.minutes is not None and answer.seconds > 60 * record.minutes:
        return f"{answer.seconds:.0f} seconds, more than {record.minutes} minutes"
    return None
