"""Import the published release as an edition, and report inputs that do not resolve.

Labels, inputs and verification keep the published field names and values. An import changes and reports three things:

- a covariance file in the release is copied, and its reference points to the copy;
- a mandate or scenario given by id only gets the published definition;
- a task without a prompt gets one that states its subtask.

Truths carry no proof, so the profile `certified` is not judged.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from finskillbench.domains import subtasks
from finskillbench.edition import store
from finskillbench.edition.build import versions
from finskillbench.edition.load import load_edition
from finskillbench.edition.references import read_covariance_json
from finskillbench.edition.release.read import (
    EpisodeImport,
    ImportReport,
    Problem,
    Published,
    Reason,
    read_published_episodes,
)
from finskillbench.episode import Episode
from finskillbench.errors import EditionError, InputError
from finskillbench.scoring.values import as_array, as_object, is_object, objects

__all__ = ["REPORT", "EpisodeImport", "ImportReport", "Problem", "Reason", "import_published_release"]

INPUTS = "inputs"
"""Folder of the edition for files copied from the release, under their path below `data`."""


@dataclass(frozen=True, slots=True)
class Resolved:
    episode: Episode
    report: EpisodeImport


class Resolver:
    """Resolves the inputs of one release into one edition, copying each file once.

    `digests` are the files read in addition to the episodes, `symbols` every ticker met.
    """

    def __init__(self, release: Path, edition: Path) -> None:
        self._release = release
        self._edition = edition
        self._copies: dict[str, str | Problem] = {}
        self.digests: dict[str, str] = {}
        self.symbols: set[str] = set()

    def resolve(self, item: Published) -> Resolved:
        task_input = dict(item.episode.input)
        needed = item.released.required(task_input)
        problems: list[Problem] = []
        inlined = [field for field in item.released.defined if self._define(item, field, task_input, problems)]
        copied: list[str] = []
        for field, value in task_input.items():
            table = as_object(value)
            if isinstance(table.get("ref"), str):
                copy = self._copy(table["ref"])
                if isinstance(copy, str):
                    task_input[field] = {**table, "ref": copy}
                    copied.append(copy)
                elif field in needed:
                    problems.append(replace(copy, field=field))
            elif field in needed:
                problems += self._paths(field, value)
        problems += _lacking(task_input, needed)
        self.symbols |= set(_symbols(task_input))
        report = EpisodeImport(
            task_id=item.episode.task_id,
            sub_task=item.subtask.name,
            file=item.file,
            problems=tuple(problems),
            copied=tuple(copied),
            inlined=tuple(inlined),
            prompt_written=item.prompt_written,
            nulls=item.nulls,
        )
        return Resolved(replace(item.episode, input=task_input), report)

    def _define(self, item: Published, field: str, task_input: dict[str, Any], problems: list[Problem]) -> bool:
        """Fill a field given by id only from the release's definition; values stated in the episode take precedence."""
        key, folder = item.released.defined[field]
        value = as_object(task_input.get(field))
        if set(value) != {key}:
            return False
        name = str(value[key])
        file = f"data/{item.domain}/constructed/{folder}/{name}.json"
        path = self._inside(file)
        if path is None or not path.is_file():
            problems.append(Problem(Reason.NO_DEFINITION, field, f"{name}: the release has no {file}"))
            return False
        try:
            if path.stat().st_size > store.LARGEST_TEXT:
                raise ValueError(f"larger than {store.LARGEST_TEXT:,} bytes")
            defined = json.loads(path.read_bytes())
        except (OSError, ValueError, RecursionError) as error:
            raise InputError(f"{path}: not JSON ({error}); restore the file from the release") from None
        if not is_object(defined) or defined.get(key) != name:
            raise InputError(f"{path}: does not define {key} {name!r}; restore the file from the release")
        task_input[field] = {**defined, **value}
        self.digests[file] = store.digest_file(path)
        return True

    def _copy(self, ref: str) -> str | Problem:
        """Return the reference to a copy inside the edition, or the problem, whose field the caller sets."""
        if ref not in self._copies:
            path = self._inside(ref)
            if path is None or not path.is_file():
                self._copies[ref] = Problem(Reason.MISSING_FILE, "", f"the release has no {ref}")
            else:
                self._copies[ref] = self._copy_file(ref, path)
        return self._copies[ref]

    def _copy_file(self, ref: str, path: Path) -> str | Problem:
        try:
            read_covariance_json(path)
        except EditionError as error:
            return Problem(Reason.UNREADABLE_FILE, "", f"{ref}: {str(error).removeprefix(f'{path}: ')}")
        copy = f"{INPUTS}/{ref.removeprefix('data/')}"
        (self._edition / copy).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, self._edition / copy)
        self.digests[ref] = store.digest_file(path)
        return copy

    def _paths(self, field: str, value: Any) -> Iterator[Problem]:
        """Report release paths in a field that no tool reads: missing files, or files that an edition cannot serve."""
        for name, text in _texts(field, value):
            if text.startswith("data/"):
                path = self._inside(text)
                if path is None or not path.exists():
                    yield Problem(Reason.MISSING_FILE, name, f"the release has no {text}")
                else:
                    yield Problem(Reason.UNREADABLE_FILE, name, f"{text} exists, but an edition cannot serve it")

    def _inside(self, ref: str) -> Path | None:
        """Return the path of a reference; None if it leads out of the release."""
        path = (self._release / ref).resolve()
        return path if path.is_relative_to(self._release.resolve()) else None


def _lacking(task_input: Mapping[str, Any], needed: tuple[str, ...]) -> Iterator[Problem]:
    for field in needed:
        if task_input.get(field) is None:
            yield Problem(Reason.ABSENT_INPUT, field, "is not given")
        elif task_input[field] in ({}, [], ""):
            yield Problem(Reason.EMPTY_INPUT, field, "is empty")


def _texts(name: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield name, value
    for key, item in as_object(value).items():
        yield from _texts(f"{name}.{key}", item)


def _symbols(task_input: Mapping[str, Any]) -> Iterator[str]:
    if isinstance(task_input.get("symbol"), str):
        yield task_input["symbol"]
    for field in ("expected_returns", "current_portfolio", "market_cap_weights", "benchmark_weights"):
        yield from as_object(task_input.get(field))
    holdings = objects(as_object(task_input.get("portfolio")).get("holdings"))
    tickers = as_array(as_object(task_input.get("covariance_matrix")).get("tickers"))
    for symbol in (*(holding.get("symbol") for holding in holdings), *tickers):
        if isinstance(symbol, str):
            yield symbol


REPORT = "import_report.json"


def import_published_release(folder: Path, out: Path) -> ImportReport:
    """Read a published release into an edition at `out`.

    Parameters
    ----------
    folder : the release, with `data/<domain>/episodes/layer_a/<subtask>/*.json`.
    out : folder to make; must not exist or be empty.

    Raises
    ------
    InputError : naming the file that is not JSON, lacks a field or repeats a task id; a folder that is no release; an
        `out` that is not empty or cannot be written. No partial output remains.
    """
    published = read_published_episodes(folder)
    with store.new_folder(out) as staging:
        resolver = Resolver(folder, staging)
        imported = [resolver.resolve(item) for item in published]
        for subtask in subtasks():
            members = [(item, done) for item, done in zip(published, imported, strict=True) if item.subtask is subtask]
            if members:
                file = f"{subtask.name}.jsonl"
                store.write_lines(staging / "episodes" / file, (store.episode_row(done.episode) for _, done in members))
                store.write_lines(staging / "truth" / file, (item.truth for item, _ in members))
        report = ImportReport(out, tuple(done.report for done in imported))
        (staging / REPORT).write_bytes(orjson.dumps(report.to_json(), option=orjson.OPT_INDENT_2) + b"\n")
        store.write_manifest(staging, _fields(published, resolver, report))
    load_edition(out)
    return report


def _fields(published: list[Published], resolver: Resolver, report: ImportReport) -> dict[str, object]:
    counts = Counter(item.subtask.name for item in published)
    files = {item.file: item.digest for item in published} | resolver.digests
    return {
        "source": {"kind": "release", "raw_digest": store.digest_of(files)},
        "seed": None,
        "universe": sorted(resolver.symbols),
        "as_of_dates": sorted({item.episode.as_of_date.isoformat() for item in published}),
        "counts": {subtask.name: counts[subtask.name] for subtask in subtasks() if counts[subtask.name]},
        "parameters": {},
        "notes": report.sentences(),
        "import": report.summary(),
        "versions": versions(),
    }
