"""The pages of single episodes: what `finskillbench show` prints, as HTML that needs no script."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote

from finskillbench.edition import Edition
from finskillbench.errors import FinSkillBenchError
from finskillbench.reports.page.render import episode_page
from finskillbench.reports.page.trajectories import Located
from finskillbench.reports.page.view import View
from finskillbench.runs.afterwards.show import Line, comparison, conversation, known_by_id
from finskillbench.runs.store.files import make_folder, write_beside
from finskillbench.runs.store.rows import Row, from_frame
from finskillbench.runs.store.trajectories import read_trajectory

FOLDER = "episodes"
LINES = 16
"""Lines of a prompt, of arguments or of a result that a page shows."""
_WIDTH = 96
_SPEAKERS = re.compile(r"--- (system|user|assistant|agent|result|ended|points|expected)")


@dataclass(frozen=True, slots=True)
class Block:
    """What one speaker says, under its heading; `speaker` is a word for the style."""

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
    """Write a page for each chosen row; returns their names by the place of the row.

    An episode whose trajectory is gone or damaged has none.
    """
    wanted = {place: found for place in chosen if (found := located[place]) is not None and found.file.is_file()}
    if not wanted:
        return {}
    make_folder(out / FOLDER)
    pages: dict[int, str] = {}
    for place, row in _rows(wanted):
        found = wanted[place]
        try:
            lines = list(_told(found, row if truth else replace(row, scoring_details="{}"), editions, truth=truth))
        except FinSkillBenchError:
            continue
        name = f"{FOLDER}/{place:05}.html"
        title = f"{row.task_id}: {view.rows['entry'][place]}, {row.condition}"
        page = episode_page(title, _blocks(lines), f"finskillbench show {quote(str(found.file))}", truth=truth)
        write_beside(out / name, page.encode())
        pages[place] = name
    return pages


def _rows(wanted: Mapping[int, Located]) -> Iterable[tuple[int, Row]]:
    """The rows of some places, run by run."""
    for path in dict.fromkeys(found.run.path for found in wanted.values()):
        places = [place for place, found in wanted.items() if found.run.path == path]
        table = wanted[places[0]].run.rows
        yield from zip(places, from_frame(table[[wanted[place].index for place in places]]), strict=True)


def _told(found: Located, row: Row, editions: Mapping[str, Edition | str], *, truth: bool) -> Iterable[Line]:
    trajectory = read_trajectory(found.file)
    yield from conversation(trajectory, row, width=_WIDTH, most=LINES)
    if not truth:
        return
    edition = editions.get(trajectory.edition, "the run does not name its edition")
    if isinstance(edition, str):
        yield Line(f"expected:  {edition}")
    elif not edition.has_truth:
        yield Line("expected:  the edition was handed out without it")
    else:
        yield from comparison(
            known_by_id(edition, row.task_id), trajectory.trace.submission, width=_WIDTH, most=4 * LINES
        )


def _blocks(lines: Iterable[Line]) -> list[Block]:
    """Lines by the heading that they stand under."""
    blocks: list[Block] = []
    for line in lines:
        if line.heading:
            speaker = _SPEAKERS.match(line.text)
            blocks.append(Block(line.text.removeprefix("--- "), speaker[1] if speaker else "episode", ()))
        elif blocks:
            blocks[-1] = replace(blocks[-1], lines=(*blocks[-1].lines, line.text))
    return [replace(each, lines=each.lines[:-1]) if each.lines[-1:] == ("",) else each for each in blocks]
