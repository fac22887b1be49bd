"""Score answers from outside this program; submissions are all checked before the first one is scored."""

from __future__ import annotations

import codecs
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import msgspec

from finskillbench.edition import Edition
from finskillbench.edition.store import refuse_inside_edition
from finskillbench.episode import Submission
from finskillbench.errors import InputError
from finskillbench.runs.store.version import write_atomic
from finskillbench.runs.verdicts import judge


def score(edition: Edition, submissions: Iterable[Submission]) -> Iterator[dict[str, Any]]:
    """Judge submissions against an edition.

    Parameters
    ----------
    edition : edition with its truth, possibly an imported release.
    submissions : at most one per task. An episode without one scores 0 if its subtask has any submission, so that
        omissions cannot raise a mean.

    Yields
    ------
    One row per submission, in their order, then one per unanswered episode: task_id, sub_task, status, valid_json,
    scores {profile: value} and details.

    Raises
    ------
    InputError : a task that the edition does not have, or a second submission for a task.
    EditionError : the edition has no truth.
    """
    episodes = {episode.task_id: episode for episode in edition.episodes()}
    seen: set[str] = set()
    answered: set[str] = set()
    for submission in submissions:
        episode = episodes.get(submission.task_id)
        if episode is None:
            raise InputError(
                f"task {submission.task_id!r} is not in {edition.path}; score with the edition it came from"
            )
        if submission.task_id in seen:
            raise InputError(f"task {submission.task_id!r} was submitted twice; keep one answer per task")
        seen.add(submission.task_id)
        answered.add(episode.sub_task)
        verdict = judge(submission, edition.truth(submission.task_id), edition.full_input(episode))
        yield msgspec.to_builtins(verdict)
    for task_id, episode in episodes.items():
        if task_id not in seen and episode.sub_task in answered:
            nothing = Submission(task_id, None, ended="stopped")
            yield msgspec.to_builtins(judge(nothing, edition.truth(task_id), {}))


def read_submissions(file: Path, known: Collection[str]) -> list[Submission]:
    """Read rows `{"task_id": ..., "answer": ...}`, one JSON object per line; other keys and blank lines are ignored.

    `answer` is the agent's text verbatim, or null without submission. Serialise an answer that is an object first,
    since parsing its text is part of the judgement. The file is UTF-8, with or without byte order mark.

    Raises
    ------
    InputError : names file and line: not UTF-8, not JSON, a missing key, a wrong type, a task that is repeated or not
        in `known`; or there are no rows.
    OSError : the file cannot be read.
    """
    found: dict[str, tuple[int, Submission]] = {}
    with file.open("rb") as stream:
        for number, line in enumerate(stream, start=1):
            if number == 1:
                line = line.removeprefix(codecs.BOM_UTF8)
            if not line.strip():
                continue
            submission = _submission(line, f"{file}, line {number}")
            task_id = submission.task_id
            if task_id not in known:
                raise InputError(
                    f"{file}, line {number}: task {task_id!r} is not in the edition; "
                    "score with the edition the tasks came from"
                )
            if task_id in found:
                first = found[task_id][0]
                raise InputError(f"{file}, line {number}: task {task_id!r} was answered in line {first}; keep one")
            found[task_id] = (number, submission)
    if not found:
        raise InputError(f'{file}: no submissions; write one {{"task_id": ..., "answer": ...}} per line')
    return [submission for _, submission in found.values()]


def write_verdicts(rows: Iterable[Mapping[str, Any]], file: Path) -> int:
    """Write rows as JSON lines, atomically, and return their number; ASCII escapes preserve lone surrogates of answers.

    Raises `InputError` if the file cannot be written or is inside an edition.
    """
    if file.is_dir():
        raise InputError(f"{file}: is a folder; name a file")
    refuse_inside_edition(file)
    lines = [json.dumps(entry, allow_nan=False) + "\n" for entry in rows]
    write_atomic(file, "".join(lines).encode("ascii"))
    return len(lines)


def _submission(line: bytes, where: str) -> Submission:
    remedy = 'write {"task_id": ..., "answer": ...} on one line'
    try:
        # No number is needed here; parsed as float, one of any length has a wrong type and nothing worse.
        value = json.loads(line.decode("utf-8"), object_pairs_hook=_unique, parse_int=float)
    except UnicodeDecodeError as error:
        raise InputError(f"{where}: not UTF-8 at byte {error.start}; save the file as UTF-8") from None
    except RecursionError:
        raise InputError(f"{where}: nested too deeply; {remedy}") from None
    except ValueError as error:
        raise InputError(f"{where}: not JSON ({error}); {remedy}") from None
    if not isinstance(value, dict):
        raise InputError(f"{where}: not a JSON object; {remedy}")
    fields = cast("dict[str, object]", value)
    for key in ("task_id", "answer"):
        if key not in fields:
            raise InputError(f"{where}: no {key!r}; {remedy}")
    task_id, answer = fields["task_id"], fields["answer"]
    if not isinstance(task_id, str):
        raise InputError(f"{where}: task_id is not a string; {remedy}")
    if answer is not None and not isinstance(answer, str):
        raise InputError(
            f"{where}: answer is not text; give the submitted text as one JSON string (json.dumps the object), "
            "or null for no submission"
        )
    ended = "submitted" if answer is not None else "stopped"
    return Submission(task_id=task_id, answer=answer, ended=ended)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a key is given twice")
    return result
