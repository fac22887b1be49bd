"""Commands `handout` and `score`: episodes as folders, and verdicts on answers that come from elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from finskillbench.cli.display import console
from finskillbench.cli.options.kinds import Limit, Sample, Subtasks, Suite, part_of
from finskillbench.integrations.task_files import Layout

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator

    from finskillbench.edition import Edition
    from finskillbench.runs.store.rows import Row

HANDOUT, SCORE = typer.Typer(), typer.Typer()
HANDOUT_EXAMPLE = """\b
Examples:
  finskillbench handout editions/seven out/plain --limit 5
  finskillbench handout editions/seven out/skills --limit 5 --condition curated
  finskillbench score editions/seven out/plain --model mine --out rows.parquet
  finskillbench handout editions/seven out/own --limit 5 --skills mine=my-skills
  finskillbench handout editions/seven out/tasks --limit 5 --format harbor"""


@HANDOUT.command(epilog=HANDOUT_EXAMPLE)
def handout(
    edition: Annotated[Path, typer.Argument(help="Folder of the edition.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder to make, with one folder for each episode.")],
    condition: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="no_skill, curated, docs_only or placebo: what goes along. Default: the --skills, or no_skill.",
        ),
    ] = None,
    skills: Annotated[
        str | None,
        typer.Option(
            metavar="NAME=DIR",
            help="A folder of skills of yours as the condition skill:NAME, or with NAME+=DIR beside the curated ones.",
        ),
    ] = None,
    suite: Suite = None,
    subtask: Subtasks = None,
    limit: Limit = None,
    sample: Sample = None,
    layout: Annotated[
        Layout, typer.Option("--format", help="Plain folders, or tasks for `harbor run -p OUT`.")
    ] = Layout.FOLDERS,
    image: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="What the images of Harbor's tasks start from; with scripts of ours one that has finskillbench.",
        ),
    ] = None,
) -> None:
    """Write each episode into a folder of its own: prompt, schema, data as of its day, skills.

    An agent leaves `answer.json` in it, and `finskillbench score EDITION OUT` takes the answers back, with --jobs those
    that Harbor kept.
    """
    from finskillbench.edition import load_edition
    from finskillbench.errors import InputError
    from finskillbench.harness.skills.user_skills import USER_SKILLS_PREFIX, parse_skills
    from finskillbench.integrations.task_files.write import ANSWER, check_hand_out, hand_out

    own = parse_skills([] if skills is None else [skills])
    if own and condition is not None:
        raise InputError("--skills is a condition of its own; leave out --condition")
    arm = next((f"{USER_SKILLS_PREFIX}{name}" for name in own), condition or "no_skill")
    check_hand_out(arm, own, layout, image)
    with console.Progress() as progress:
        progress("reading the edition")
        loaded = part_of(load_edition(edition), suite, named=bool(subtask))
        record = hand_out(
            loaded,
            out,
            arm,
            subtask or None,
            skills=own,
            limit=limit,
            sample=sample,
            layout=layout,
            image=image,
            progress=lambda done, total: progress("writing episodes", done, total),
        )
    count = f"{len(record.tasks)} episodes under {arm}"
    score = f"finskillbench score {edition} {out}"
    if layout is Layout.HARBOR:
        typer.echo(f"{count}: harbor run -p {out} --jobs-dir JOBS --agent AGENT --model MODEL")
        typer.echo(f"Harbor keeps the answers; then: {score} --jobs JOBS/... --out ROWS")
    else:
        typer.echo(f"{count}: {out}/*/prompt.md")
        typer.echo(f"Answers go to {out}/*/{ANSWER}; then: {score} --model NAME --out ROWS")


SCORE_EXAMPLE = """\b
Examples:
  finskillbench score editions/seven answers.jsonl --out rows.jsonl
  finskillbench score editions/seven out/plain --model mine --out rows.parquet
  finskillbench score editions/seven out/tasks --jobs jobs/2026-11-22__10-00-00 --out rows.parquet"""


@SCORE.command(epilog=SCORE_EXAMPLE)
def score(
    edition: Annotated[Path, typer.Argument(help="Folder of the edition.")],
    submissions: Annotated[
        Path,
        typer.Argument(help='JSON lines {"task_id": ..., "answer": "<text>" or null}, or the folder of a hand-out.'),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            parser=console.out_path,
            metavar="PATH",
            help="What to write: JSON lines of verdicts, or of a hand-out rows as those of a run, in Parquet.",
        ),
    ],
    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Who answered a hand-out, as its rows say it. Default: its folder's name, or what Harbor says.",
        ),
    ] = None,
    jobs: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of the job in which Harbor ran the tasks of a hand-out."),
    ] = None,
) -> None:
    """Score submitted answers under every profile.

    Each line of the result holds task_id, sub_task, status, valid_json, scores by profile and details. Episodes
    without a submission score 0 in every subtask that was answered at all. Of a hand-out every episode counts, the
    table of a run is printed, and the result has its columns.
    """
    from finskillbench.edition import load_edition
    from finskillbench.errors import InputError
    from finskillbench.integrations.task_files.answers import is_handout, take_back
    from finskillbench.runs.store.version import validation_text

    taken_back = is_handout(submissions)
    if not taken_back and (model is not None or jobs is not None):
        raise InputError(f"{submissions} is no hand-out, and --model and --jobs are of one")
    if out.exists() and submissions.exists() and out.samefile(submissions):
        raise InputError(f"{out}: is the file of submissions itself; choose another --out")
    with console.Progress() as progress:
        progress("Reading the edition")
        loaded = load_edition(edition)
        if taken_back:
            returned = take_back(
                loaded, submissions, model, jobs=jobs, progress=lambda done, total: progress("Scoring", done, total)
            )
            lines = _handout(returned, out)
        else:
            lines = _lines(loaded, submissions, out, progress)
    for line in lines:
        typer.echo(line)
    typer.echo(f"Validated: {validation_text(loaded)}")
    typer.echo(f"Rows: {out}")


def _lines(edition: Edition, file: Path, out: Path, progress: console.Progress) -> list[str]:
    """Judge a file of answers; what to print of it."""
    from collections import Counter

    from finskillbench.runs.postprocess import scoring

    known = {episode.task_id for episode in edition.episodes()}
    answers = scoring.read_submissions(file, known)
    statuses: Counter[str] = Counter()

    def rows():
        for done, entry in enumerate(scoring.score(edition, answers), start=1):
            statuses[entry["status"]] += 1
            progress("Scoring", min(done, len(answers)), len(answers))
            yield entry

    count = scoring.write_verdicts(rows(), out)
    missing = count - len(answers)
    return [
        f"{count} of {len(known)} episodes: {_counted(statuses)}" + (f" ({missing} unanswered: 0)" if missing else "")
    ]


def _handout(returned: Iterator[Row], out: Path) -> list[str]:
    """Judge what came back in a hand-out; what to print of it."""
    from collections import Counter

    from finskillbench.edition.store import refuse_inside_edition
    from finskillbench.errors import InputError
    from finskillbench.reports.report import report
    from finskillbench.runs.store.rows import to_frame, write_rows

    if out.is_dir():
        raise InputError(f"{out}: is a folder; name a file")
    refuse_inside_edition(out)
    rows = list(returned)
    frame = to_frame(rows)
    write_rows(out, frame)
    missing = sum(row.answer_digest is None for row in rows)
    counted = _counted(Counter(row.status.value for row in rows))
    return [
        str(report(frame)),
        f"{len(rows)} episodes: {counted}" + (f" ({missing} unanswered: 0)" if missing else ""),
    ]


def _counted(statuses: Counter[str]) -> str:
    return ", ".join(f"{number} {status}" for status, number in sorted(statuses.items()))
