"""Import of the published release: its episodes under our layout, its labels as published, and what does not resolve.

Labels, inputs and verification keep the published field names and values. An import changes three things and reports
each: a covariance file that the release holds is copied and its reference pointed to the copy; a mandate or scenario
given by its id alone gets the published definition; a task without a prompt gets one that states its subtask. Truths
carry no proof, so the profile `certified` is not judged.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import orjson

from finskillbench.domains import subtasks
from finskillbench.edition.build import versions
from finskillbench.edition.load import load_edition
from finskillbench.edition.release.read import Published, read_release
from finskillbench.edition.release.report import EpisodeImport, ImportReport, Problem, Reason
from finskillbench.edition.release.resolve import Resolver
from finskillbench.edition.store import (
    digest_of,
    episode_row,
    new_folder,
    write_lines,
    write_manifest,
)

__all__ = ["REPORT", "EpisodeImport", "ImportReport", "Problem", "Reason", "import_release"]

REPORT = "import_report.json"
"""The report inside the edition, one entry for each episode."""


def import_release(folder: Path, out: Path) -> ImportReport:
    """Read a published release into an edition at `out`.

    Parameters
    ----------
    folder : the release, which holds `data/<domain>/episodes/layer_a/<subtask>/*.json`.
    out : folder to make; must not exist or be empty.

    Raises
    ------
    InputError : naming the file that is no JSON, lacks a field or repeats a task id; a folder that is no release; an
        `out` that is not empty or cannot be written. Nothing is left half-written.
    """
    published = read_release(folder)
    with new_folder(out) as staging:
        resolver = Resolver(folder, staging)
        imported = [resolver.resolve(item) for item in published]
        for subtask in subtasks():
            own = [(item, done) for item, done in zip(published, imported, strict=True) if item.subtask is subtask]
            if own:
                file = f"{subtask.name}.jsonl"
                write_lines(staging / "episodes" / file, (episode_row(done.episode) for _, done in own))
                write_lines(staging / "truth" / file, (item.truth for item, _ in own))
        report = ImportReport(out, tuple(done.report for done in imported))
        (staging / REPORT).write_bytes(orjson.dumps(report.to_json(), option=orjson.OPT_INDENT_2) + b"\n")
        write_manifest(staging, _fields(published, resolver, report))
    load_edition(out)
    return report


def _fields(published: list[Published], resolver: Resolver, report: ImportReport) -> dict[str, object]:
    counts = Counter(item.subtask.name for item in published)
    files = {item.file: item.digest for item in published} | resolver.digests
    return {
        "source": {"kind": "release", "raw_digest": digest_of(files)},
        "seed": None,
        "universe": sorted(resolver.symbols),
        "as_of_dates": sorted({item.episode.as_of_date.isoformat() for item in published}),
        "counts": {subtask.name: counts[subtask.name] for subtask in subtasks() if counts[subtask.name]},
        "parameters": {},
        "notes": report.sentences(),
        "import": report.summary(),
        "versions": versions(),
    }
