"""Find a trajectory in a run folder and print it as a conversation."""

from __future__ import annotations

import difflib
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from glob import escape
from inspect import getdoc
from pathlib import Path

import orjson

from finskillbench.domains.checks.agreement import leaf_by_leaf, leaves_of
from finskillbench.domains.faults import DETAIL
from finskillbench.edition import Edition, load_edition
from finskillbench.edition.store import MANIFEST
from finskillbench.episode import Submission
from finskillbench.errors import InputError
from finskillbench.harness.trace import BUILTIN_HARNESS, CallRecord, ToolRecord, Trace
from finskillbench.runs.postprocess.failures.attempt import LabelledTask
from finskillbench.runs.postprocess.failures.runs import labelled_task
from finskillbench.runs.postprocess.losses import Loss, points_lost
from finskillbench.runs.store.journal import Trajectory, read_history, read_trajectory
from finskillbench.runs.store.record import FILE as RECORD
from finskillbench.runs.store.record import read_record
from finskillbench.runs.store.rows import Row
from finskillbench.runs.store.version import file_name
from finskillbench.runs.verdicts import judged_answer
from finskillbench.scoring.strict_json import InvalidSubmission

SHOWN_LINES = 12
"""Default number of lines shown of a prompt, of a call's arguments or of a result."""
_SUFFIX = ".json.gz"
_CHOICES = {"model": "--model", "condition": "--condition", "run_idx": "--run-idx"}


@dataclass(frozen=True, slots=True)
class Line:
    """Line of output; headings name the role."""

    text: str
    heading: bool = False
    cut: bool = False
    """True if it replaces omitted lines."""


def find_trajectory(
    run: Path, task_id: str, *, model: str | None = None, condition: str | None = None, run_idx: int | None = None
) -> Path:
    """Find the trajectory of a task in a run folder; raise `InputError` unless exactly one matches."""
    folder = run / "trajectories"
    if not folder.is_dir():
        raise InputError(f"{run}: holds no trajectories; name a run folder, or a trajectory's own file")
    paths = sorted(folder.glob(f"*/{escape(file_name(task_id))}__*{_SUFFIX}"))
    contents = [(path, read_trajectory(path)) for path in paths]
    found = {path: content for path, content in contents if content.trace.task_id == task_id}
    wanted = {"model": model, "condition": condition, "run_idx": run_idx}
    fitting = [
        path
        for path, content in found.items()
        if all(value is None or _choice(content, name) == value for name, value in wanted.items())
    ]
    if len(fitting) == 1:
        return fitting[0]
    if len({replace(found[path].item, arguments="") for path in fitting}) == 1:
        files = " or ".join(str(path.relative_to(run)) for path in fitting)
        raise InputError(f"{run}: has {task_id} with {len(fitting)} sets of arguments; name a file instead: {files}")
    if fitting:
        choices = _choices([found[path] for path in fitting])
        raise InputError(f"{run}: has {len(fitting)} trajectories of {task_id}; choose with {choices}")
    if found:
        raise InputError(f"{run}: has no such trajectory of {task_id}; choose from {_choices(list(found.values()))}")
    raise InputError(f"{run}: has no trajectory of task {task_id!r}{_examples(run, task_id)}")


def task_required_error(run: Path) -> InputError:
    """Return the error for a run folder without a task, with examples of its tasks."""
    return InputError(f"{run}: is a folder; add a task id{_examples(run)}")


def _examples(run: Path, task_id: str = "") -> str:
    """Return up to three tasks of a run, those most similar to `task_id`, after a semicolon."""
    known = sorted({path.name.rpartition("__")[0] for path in (run / "trajectories").glob(f"*/*{_SUFFIX}")})
    like = difflib.get_close_matches(task_id, known, n=3) or known[:3]
    which = "there are" if len(like) == len(known) else f"its {len(known):,} tasks include"
    return f"; {which} {', '.join(like)}" if like else ""


def row_of(path: Path, trajectory: Trajectory) -> Row | None:
    """Return the row of a trajectory, None if the journal lacks it; raise `InputError` if the journal is damaged."""
    return read_history(path.absolute().parents[2]).rows.get(trajectory.item)


def labelled_task_of(path: Path, trajectory: Trajectory, edition: Path | None = None) -> LabelledTask | str:
    """Return truth and input of a trajectory's task, or the reason why they are not available.

    Without `edition`, the folder that the run used is read, if it still exists. Raises `InputError` if the named
    edition is damaged or not that of the run.
    """
    record = path.absolute().parents[2] / RECORD
    named = edition
    if named is None:
        if not record.is_file():
            return "no run.json names the edition; name it with --edition"
        named = Path(read_record(record.parent).edition_path)
        if not (named / MANIFEST).is_file():
            return "the edition of the run is no longer where it was; name it with --edition"
    found = load_edition(named)
    if found.digest != trajectory.edition:
        if edition is not None:
            raise InputError(f"{named}: is another edition ({found.digest[:12]}) than {trajectory.edition[:12]}")
        return "the edition of the run was replaced by another; name it with --edition"
    return labelled_task_by_id(found, trajectory.item.task_id) if found.has_truth else "the edition has no truth"


def labelled_task_by_id(edition: Edition, task_id: str) -> LabelledTask:
    """Return truth, scorer and input of a task."""
    return labelled_task(edition, next(each for each in edition.episodes() if each.task_id == task_id))


def comparison(
    task: LabelledTask, submission: Submission, *, width: int = 100, most: int | None = SHOWN_LINES
) -> Iterator[Line]:
    """Yield the score formula, the points lost by part, and both answers value by value.

    Differences in parts that cost points are marked and come first.
    """
    try:
        answer = judged_answer(submission, task.subtask)
    except InvalidSubmission as failure:
        yield from _block("expected and submitted")
        yield Line(f"no answer to compare: {failure.reason}")
        return
    lost: list[Loss] = []
    if task.subtask is not None:
        lost = points_lost(task, answer)
        points = task.points(task.truth.expected_output) - task.points(answer)
        yield from _block(f"points lost under {task.profile}: {points:.4f}")
        yield from _text((getdoc(task.scorer) or "").partition("\n\n")[0], width, most)
        for loss in lost:
            yield Line(printable(f"{-loss.points:>9.4f}  {loss.part or 'these parts together'}"))
        if lost:
            yield Line("Each loss is that of inserting the part alone into the expected answer.")
    yield from _block("expected and submitted")
    leaves = leaf_by_leaf(task.truth.expected_output, answer)
    costly = {leaf.path for leaf in leaves if not leaf.agrees and any(loss.covers(leaf) for loss in lost)}
    leaves.sort(key=lambda leaf: (leaf.path not in costly, leaf.agrees))
    shown = leaves[:most]
    wide = max((len(leaf.path) for leaf in shown), default=0)
    for leaf in shown:
        expected = "(nothing)" if leaf.absent == "left" else _value(leaf.left)
        got = "(nothing)" if leaf.absent == "right" else _value(leaf.right)
        mark = "! " if leaf.path in costly else "  "
        yield Line(printable(f"{mark}{leaf.path:<{wide}}  {expected:>14}  {got:>14}"))
    if len(shown) < len(leaves):
        yield Line(
            f"   ... ({len(leaves)} values in all, {len(costly)} of them wrong in parts that cost points)", cut=True
        )


def _value(value: object) -> str:
    return f"{value:.8g}" if isinstance(value, float) else orjson.dumps(value).decode()


def conversation(
    trajectory: Trajectory, row: Row | None, *, width: int = 100, most: int | None = SHOWN_LINES
) -> Iterator[Line]:
    """Yield the lines of a trajectory, wrapped to `width`; without `row` the verdict is unknown.

    `most` limits the lines of a prompt, of arguments or of a result.
    """
    trace = trajectory.trace
    yield Line(f"{trace.task_id}: {trajectory.sub_task}, {trajectory.difficulty}, as of {trajectory.as_of_date}", True)
    yield Line(f"{trajectory.item.model_key}, {trace.condition}, repeat {trajectory.run_idx}")
    yield Line(f"edition {trajectory.edition[:12]}, mount {trace.mount_digest[:12]}, version {trajectory.code_version}")
    yield from _messages(trace, width, most)
    yield from _end(trace, row, width, most)


def _messages(trace: Trace, width: int, most: int | None) -> Iterator[Line]:
    served = {record.message: record for record in trace.tool_calls if record.message is not None}
    dropped = [record for record in trace.tool_calls if record.message is None]
    is_builtin = trace.harness == BUILTIN_HARNESS  # other harnesses do not map calls to messages
    calls = iter(trace.model_calls)
    for place, message in enumerate(trace.messages):
        if message.role == "tool":
            record = served[place]
            yield from _block(f"result of {record.name} ({record.fate}, {record.seconds:.3f} s)")
            yield from _text(message.content, width, most)
        elif message.role == "assistant":
            call = next(calls) if is_builtin else None
            yield from _block("agent" if call is None else _turn(call))
            yield from _text(message.content, width, None if is_builtin else most)
            for call_request in message.tool_calls:
                yield from _text(f"-> {call_request.name} {call_request.arguments}", width, most)
            if call is not None:
                yield from _not_run([record for record in dropped if record.turn == call.turn])
        else:
            yield from _block(message.role)
            yield from _text(message.content, width, most)
    if not is_builtin:
        yield from _not_run(dropped)


def _turn(call: CallRecord) -> str:
    tokens = f"{_count(call.usage.input_tokens)} tokens in, {_count(call.usage.output_tokens)} out"
    by = f", {call.served_model}" if call.served_model else ""
    stop = "" if call.stop == "done" else f", {call.stop}"
    return f"assistant, turn {call.turn} ({tokens}, {call.seconds:.1f} s{by}{stop})"


def _count(tokens: int | None) -> str:
    return "unknown" if tokens is None else f"{tokens:,}"


def _not_run(records: Sequence[ToolRecord]) -> Iterator[Line]:
    if records:
        yield Line(f"   not run: {', '.join(printable(record.name) for record in records)}")


def _end(trace: Trace, row: Row | None, width: int, most: int | None) -> Iterator[Line]:
    yield from _block(f"ended: {trace.ended}")
    if trace.error is not None:
        yield from _text(f"error: {trace.error}", width, None)
    usage = trace.usage
    cost = "cost unknown" if usage.cost_usd is None else f"{usage.cost_usd:.4f} USD"
    yield Line(
        f"tokens:    {_count(usage.input_tokens)} in ({_count(usage.cached_tokens)} cached), "
        f"{_count(usage.output_tokens)} out ({_count(usage.reasoning_tokens)} reasoning), {cost}"
    )
    # An agent that does not report model calls has tool calls as turns.
    model_calls = trace.turns if trace.harness == BUILTIN_HARNESS or trace.model_calls else "unknown"
    yield Line(f"calls:     {model_calls} of the model, {len(trace.tool_calls)} of tools, {trace.retries} retries")
    waited = f"{trace.queue_seconds:.1f} in queues, {trace.retry_seconds:.1f} on retries"
    yield Line(f"seconds:   {trace.latency_seconds:.1f}, plus {waited}")
    yield Line(f"incidents: {', '.join(trace.incidents) or 'none'}")
    yield Line(f"skills:    {', '.join(map(printable, trace.skills_loaded)) or 'none loaded'}")
    yield Line(f"scripts:   {', '.join(map(printable, trace.scripts_run)) or 'none run'}")
    if row is None:
        yield Line("verdict:   not known (the journal of its run has no line for it)")
        return
    yield Line(f"verdict:   {row.status}" + ("" if row.valid_json else ", not valid JSON"))
    scores = [f"{name} {value:.4f}" for name, value in row.scores.items() if value is not None]
    yield Line(f"scores:    {', '.join(scores) or 'none'} (scorers {row.scorer_version})")
    details = orjson.loads(row.scoring_details)
    if (fault := details.get(DETAIL)) is not None:
        same = "leads to this answer" if fault["equal"] else "leads to another answer"
        yield Line(f"fault:     the one in {fault['package']} {same}")
    if row.score_profile in details:
        yield Line(f"details of {row.score_profile}:")
        components = leaves_of(details[row.score_profile]).items()
        yield from _text("\n".join(f"  {name}: {_value(value)}" for name, value in components), width, most)


def _block(heading: str) -> Iterator[Line]:
    yield Line("")
    yield Line(f"--- {heading}", heading=True)


def _text(text: str, width: int, most: int | None) -> Iterator[Line]:
    """Wrap a text to `width`; a last line notes omissions."""
    shown = 0
    for line in text.splitlines():
        # Cut very long lines before wrapping.
        max_characters = len(line) if most is None else width * (most - shown + 1)
        for piece in textwrap.wrap(printable(line[:max_characters]), width, replace_whitespace=False) or [""]:
            if shown == most:
                yield Line(f"   ... ({len(text):,} characters in all)", cut=True)
                return
            yield Line(piece)
            shown += 1


def printable(text: str) -> str:
    """Escape characters that control a terminal."""
    if text.isprintable():  # nearly always; checking each character takes fifty times as long
        return text
    return "".join(each if each.isprintable() or each == "\t" else f"\\x{ord(each):02x}" for each in text)


def _choice(trajectory: Trajectory, name: str) -> str | int:
    item = trajectory.item
    return {"model": item.model, "condition": item.condition, "run_idx": item.run_idx}[name]


def _choices(trajectories: Sequence[Trajectory]) -> str:
    """Return the options that distinguish some trajectories, with their values; all options if none does."""
    values = {name: sorted({_choice(each, name) for each in trajectories}) for name in _CHOICES}
    distinguishing = {name: each for name, each in values.items() if len(each) > 1} or values
    return ", ".join(f"{_CHOICES[name]} {' | '.join(map(str, each))}" for name, each in distinguishing.items())
