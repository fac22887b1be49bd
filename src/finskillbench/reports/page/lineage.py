"""Lineage of the numbers (runs, editions, proofs of labels), and the pages of single episodes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote

from finskillbench.analysis.results import distinct_values
from finskillbench.edition import Edition, load_edition
from finskillbench.edition.checks.catalog import CheckReport, Level
from finskillbench.edition.store import MANIFEST
from finskillbench.errors import FinSkillBenchError
from finskillbench.findings import CheckState
from finskillbench.reports.page.render import episode_page
from finskillbench.reports.page.view import Located, View
from finskillbench.reports.read import RunRows
from finskillbench.reports.tables.base import Cell, Column, Kind, Table, columns_of
from finskillbench.runs.postprocess.show import Line, comparison, conversation, labelled_task_by_id
from finskillbench.runs.store.journal import read_trajectory
from finskillbench.runs.store.rows import Row, from_frame
from finskillbench.runs.store.version import make_folder, write_atomic

FOLDER = "episodes"
LINES = 16
"""Maximum lines of a prompt, arguments or a result in a page."""
_WIDTH = 96
_SPEAKERS = re.compile(r"--- (system|user|assistant|agent|result|ended|points|expected)")


@dataclass(frozen=True, slots=True)
class Block:
    """One message of an episode under its heading; `speaker` is its style class."""

    heading: str
    speaker: str
    lines: tuple[str, ...]


def write_episodes(
    out: Path,
    view: View,
    located: Sequence[Located | None],
    chosen: Iterable[int],
    editions: Mapping[str, Edition | str],
    *,
    truth: bool,
) -> dict[int, str]:
    """Write a page for each chosen row; return file names by row.

    Episodes with missing or damaged trajectories are skipped.
    """
    wanted = {place: found for place in chosen if (found := located[place]) is not None and found.file.is_file()}
    if not wanted:
        return {}
    make_folder(out / FOLDER)
    pages: dict[int, str] = {}
    for place, row in _rows(wanted):
        found = wanted[place]
        try:
            shown = row if truth else replace(row, scoring_details="{}")
            lines = list(_episode_lines(found, shown, editions, truth=truth))
        except FinSkillBenchError:
            continue
        name = f"{FOLDER}/{place:05}.html"
        title = f"{row.task_id}: {view.rows['entry'][place]}, {row.condition}"
        page = episode_page(title, _blocks(lines), f"finskillbench show {quote(str(found.file))}", truth=truth)
        write_atomic(out / name, page.encode())
        pages[place] = name
    return pages


def _rows(wanted: Mapping[int, Located]) -> Iterable[tuple[int, Row]]:
    """Yield the rows of some places, run by run."""
    for path in dict.fromkeys(found.run.path for found in wanted.values()):
        places = [place for place, found in wanted.items() if found.run.path == path]
        table = wanted[places[0]].run.rows
        yield from zip(places, from_frame(table[[wanted[place].index for place in places]]), strict=True)


def _episode_lines(found: Located, row: Row, editions: Mapping[str, Edition | str], *, truth: bool) -> Iterable[Line]:
    trajectory = read_trajectory(found.file)
    yield from conversation(trajectory, row, width=_WIDTH, most=LINES)
    if not truth:
        return
    edition = editions.get(trajectory.edition, "the run does not name its edition")
    if isinstance(edition, str):
        yield Line(f"expected:  {edition}")
    elif not edition.has_truth:
        yield Line("expected:  the edition has no truth")
    else:
        task = labelled_task_by_id(edition, row.task_id)
        yield from comparison(task, trajectory.trace.submission, width=_WIDTH, most=4 * LINES)


def _blocks(lines: Iterable[Line]) -> list[Block]:
    blocks: list[Block] = []
    for line in lines:
        if line.heading:
            speaker = _SPEAKERS.match(line.text)
            blocks.append(Block(line.text.removeprefix("--- "), speaker[1] if speaker else "episode", ()))
        elif blocks:
            blocks[-1] = replace(blocks[-1], lines=(*blocks[-1].lines, line.text))
    return [replace(each, lines=each.lines[:-1]) if each.lines[-1:] == ("",) else each for each in blocks]


@dataclass(frozen=True, slots=True)
class Lineage:
    """Facts by name, tables and notes."""

    facts: tuple[tuple[str, str], ...]
    tables: tuple[Table, ...]
    notes: tuple[str, ...]


def editions_of(runs: Sequence[RunRows]) -> dict[str, Edition | str]:
    """Return the editions of some runs by digest, or the reason why one is unavailable."""
    found: dict[str, Edition | str] = {}
    for run in runs:
        if run.record is not None and run.record.edition_digest not in found:
            found[run.record.edition_digest] = _opened(Path(run.record.edition_path), run.record.edition_digest)
    return found


def _opened(folder: Path, digest: str) -> Edition | str:
    if not (folder / MANIFEST).is_file():
        return "the edition of the run was moved or deleted"
    try:
        edition = load_edition(folder)
    except FinSkillBenchError as error:
        return f"the edition of the run cannot be read ({error})"
    return edition if edition.digest == digest else "the edition of the run was replaced by another"


def lineage_of(
    view: View,
    runs: Sequence[RunRows],
    editions: dict[str, Edition | str],
    validation: CheckReport | None = None,
    audit: CheckReport | None = None,
) -> Lineage:
    """Collect the known facts about the origin of results."""
    rows = view.rows
    facts = [("Profile", view.results.profile.value), ("Rows", f"{rows.height:,}")]
    for column, name in {
        "code_version": "Program version",
        "commit": "Code commit",
        "scorer_version": "Scorers",
        "edition": "Edition (SHA-256)",
        "harness": "Harness",
    }.items():
        if column in rows.columns:
            values = [str(each) for each in distinct_values(rows, column) if each]
            facts.append((name, ", ".join(values) or "unknown"))
    for run in runs:
        if run.record is not None:
            facts.append(("Prompts (SHA-256)", run.record.prompts_digest))
            for name, mount in run.record.mounts.items():
                facts.append((f"Mount of {name} (SHA-256)", ", ".join(dict.fromkeys(mount["digest"].values()))))
    tables, notes = list[Table](), list[str]()
    for digest, edition in editions.items():
        if isinstance(edition, str):
            notes.append(f"Edition {digest[:12]}: {edition}.")
            continue
        facts += _facts(edition)
        tables.append(_labels(edition))
        notes += edition.manifest["notes"]
    tables += [_checks(each) for each in (validation, audit) if each is not None]
    if validation is None:
        notes.append("Label checks are not included; run finskillbench data validate EDITION.")
    if audit is None:
        notes.append("Audit results are not included; run finskillbench audit EDITION.")
    return Lineage(tuple(dict.fromkeys(facts)), tuple(tables), tuple(notes))


def _facts(edition: Edition) -> list[tuple[str, str]]:
    manifest = edition.manifest
    days = sorted(manifest["as_of_dates"])
    seed = manifest["seed"]
    return [
        ("Source of the edition", manifest["source"]["kind"]),
        ("Seed", "none" if seed is None else str(seed)),
        ("Companies", str(len(manifest["universe"]))),
        ("Market dates", f"{len(days)}, {days[0]} to {days[-1]}" if days else "none"),
        ("Verified files", f"{len(manifest['files'])}, each with the digest in the manifest"),
        ("Built with", ", ".join(f"{name} {version}" for name, version in manifest["versions"].items())),
    ]


def _labels(edition: Edition) -> Table:
    """Count the labels of each subtask by kind of proof; "stated" labels have none."""
    columns = (
        Column("sub_task", "Subtask"),
        Column("episodes", "Episodes", Kind.COUNT),
        Column("proofs", "Proofs of labels"),
    )
    rows: list[tuple[Cell, ...]] = []
    for name, count in edition.manifest["counts"].items():
        kinds = Counter[str]()
        if edition.has_truth:
            proofs = (edition.truth(each.task_id).proof for each in edition.episodes([name]))
            kinds.update(str(proof.get("kind", "stated")) for proof in proofs)
        rows.append((name, count, ", ".join(f"{kind} {number:,}" for kind, number in kinds.most_common()) or None))
    notes = () if edition.has_truth else ("The edition has no truth, so proofs are unknown.",)
    return Table("labels", "Labels of the edition", columns, tuple(rows), notes)


def _checks(report: CheckReport) -> Table:
    columns = (
        *columns_of(Kind.TEXT, check="Check", domain="Domain", state="State"),
        *columns_of(Kind.COUNT, findings="Findings", warnings="Warnings"),
    )
    rows = tuple(
        (
            check.name,
            check.domain,
            check.state.value,
            sum(each.state is CheckState.FAIL for each in check.findings),
            sum(each.state is CheckState.WARN for each in check.findings),
        )
        for check in report.checks
    )
    name = "audit" if Level.AUDIT in report.levels else "validation"
    return Table(name, f"Findings of the {name} of edition {report.digest[:12]}", columns, rows)
