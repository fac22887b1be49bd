"""Commands `export-tasks` and `score`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from finskillbench.cli.display import console
from finskillbench.cli.display.console import LARGEST
from finskillbench.cli.options.kinds import Limit, Sample, Subtasks, Suite, part_of
from finskillbench.integrations.task_files import ANSWER, IMAGE, Layout

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator

    from finskillbench.edition import Edition
    from finskillbench.runs.store.rows import Row

EXPORT_TASKS, SCORE = typer.Typer(), typer.Typer()
EXPORT_TASKS_EXAMPLE = """\b
Examples:
  finskillbench export-tasks editions/seven out/plain --limit 5
  finskillbench export-tasks editions/seven out/skills --limit 5 --condition curated
  finskillbench score editions/seven out/plain --model mine --out rows.parquet
  finskillbench export-tasks editions/seven out/own --limit 5 --skills mine=my-skills
  finskillbench export-tasks editions/seven out/tasks --limit 5 --format harbor
  finskillbench export-tasks editions/seven out/people --sample 24 --format human --participant P01 --participant P02"""


# Longer than a screen: each option is a parameter with its help text.
@EXPORT_TASKS.command(epilog=EXPORT_TASKS_EXAMPLE)
def export_tasks_command(
    edition: Annotated[Path, Argument(help="Folder of the edition.")],
    out: Annotated[Path, Argument(metavar="OUT", help="Folder to make, with one folder for each episode.")],
    condition: Annotated[
        str | None,
        Option(metavar="NAME", help="no_skill, curated, docs_only or placebo. Default: that of --skills, or no_skill."),
    ] = None,
    skills: Annotated[
        str | None,
        Option(
            metavar="NAME=DIR",
            help="Your folder of skills as the condition skill:NAME; NAME+=DIR adds it to the curated ones.",
        ),
    ] = None,
    suite: Suite = None,
    subtask: Subtasks = None,
    limit: Limit = None,
    sample: Sample = None,
    layout: Annotated[
        Layout, Option("--format", help="Plain folders, tasks for `harbor run -p OUT`, or a page for each person.")
    ] = Layout.FOLDERS,
    image: Annotated[
        str | None,
        Option(metavar="NAME", help=f"Python image of Harbor tasks, for agent and verifier. Default: {IMAGE}."),
    ] = None,
    wheel: Annotated[
        list[Path] | None,
        Option(
            metavar="FILE",
            help="Wheel to install in Harbor tasks, repeatable. Default: the release of this version, by name.",
        ),
    ] = None,
    participant: Annotated[
        list[str] | None, Option(metavar="ID", help="Identifier of a person, such as P01; repeatable, for human.")
    ] = None,
    minutes: Annotated[
        int | None, Option(min=1, max=LARGEST, help="Time limit of an episode, for human. Default: none.")
    ] = None,
) -> None:
    """Write one folder per episode: prompt, schema, data as of its date, skills.

    An agent writes `answer.json` into each folder. `finskillbench score EDITION OUT` judges the answers. Harbor tasks
    hold their truth for a verifier of Harbor, which scores. Interactive subtasks are left out. With `--format human`,
    each participant gets one HTML file, which works without a network and saves answers and times.
    """
    from finskillbench.edition import load_edition
    from finskillbench.errors import InputError
    from finskillbench.harness.skills.user_skills import USER_SKILLS_PREFIX, parse_skills
    from finskillbench.integrations.task_files.harbor import HarborImages
    from finskillbench.integrations.task_files.human import export_pages
    from finskillbench.integrations.task_files.write import check_task_export, export_tasks, interactive_subtasks
    from finskillbench.runs.config import EpisodeSelection

    user_skills = parse_skills([] if skills is None else [skills])
    if user_skills and condition is not None:
        raise InputError("--skills already names the condition skill:NAME; leave out --condition")
    arm = next((f"{USER_SKILLS_PREFIX}{name}" for name in user_skills), condition or "no_skill")
    check_task_export(arm, user_skills)
    harbor = HarborImages(image or IMAGE, tuple(wheel or ())) if layout is Layout.HARBOR else None
    if harbor is None and (image or wheel):
        raise InputError("--image and --wheel are for Harbor tasks; add --format harbor")
    if layout is not Layout.HUMAN and (participant or minutes):
        raise InputError("--participant and --minutes are for pages; add --format human")
    if layout is Layout.HUMAN and arm != "no_skill":
        raise InputError("--condition and --skills: a page for people has no skills; leave them out")
    chosen = EpisodeSelection(subtasks=subtask or None, limit=limit, sample=sample)
    with console.Progress() as progress:
        progress("reading the edition")
        loaded = part_of(load_edition(edition), suite, named=bool(subtask))
        if layout is Layout.HUMAN:
            record = export_pages(loaded, out, participant or [], chosen, minutes)
        else:
            record = export_tasks(
                loaded,
                out,
                arm,
                chosen=chosen,
                skills=user_skills,
                harbor=harbor,
                progress=lambda done, total: progress("writing episodes", done, total),
            )
    left_out = {} if subtask else {name: loaded.counts[name] for name in interactive_subtasks(loaded)}
    for name, count in left_out.items():
        typer.echo(f"Left out: {count} episodes of {name}, which is interactive")
    files = {Layout.FOLDERS: "*/prompt.md", Layout.HARBOR: "*/task.toml", Layout.HUMAN: "*.html"}[layout]
    typer.echo(f"{len(record.tasks)} episodes under {arm}: {out}/{files}")
    if layout is Layout.HUMAN:
        typer.echo(f"Saved answers go to {out}/ID.json; then: finskillbench score {edition} {out} --out ROWS")
    elif harbor is None:
        score_command = f"finskillbench score {edition} {out} --model NAME --out ROWS"
        typer.echo(f"Answers go to {out}/*/{ANSWER}; then: {score_command}")
    else:
        typer.echo(f"They hold their truth. Run them: harbor run -p {out} --agent AGENT --model MODEL")


SCORE_EXAMPLE = """\b
Examples:
  finskillbench score editions/seven answers.jsonl --out rows.jsonl
  finskillbench score editions/seven out/plain --model mine --out rows.parquet"""


@SCORE.command(epilog=SCORE_EXAMPLE)
def score_submissions(
    edition: Annotated[Path, Argument(help="Folder of the edition.")],
    submissions: Annotated[
        Path,
        Argument(help='JSON lines {"task_id": ..., "answer": "<text>" or null}, or a folder made by export-tasks.'),
    ],
    out: Annotated[
        Path,
        Option(
            "--out",
            parser=console.out_path,
            metavar="PATH",
            help="File to write: JSON lines of verdicts; for exported tasks the rows of a run, in Parquet.",
        ),
    ],
    model: Annotated[
        str | None, Option(metavar="NAME", help="Model name of exported tasks in rows. Default: the folder's name.")
    ] = None,
) -> None:
    """Score submitted answers under every profile.

    Each line of the result holds task_id, sub_task, status, valid_json, scores by profile and details. An episode
    without a submission scores 0 if any episode of its subtask was answered. For exported tasks every episode counts;
    the result is the rows of a run, and their table is printed. For pages, the agreement of participants follows.
    """
    from finskillbench.edition import load_edition
    from finskillbench.errors import InputError
    from finskillbench.integrations.task_files.answers import import_answers, is_task_export
    from finskillbench.runs.store.version import validation_text

    exported = is_task_export(submissions)
    if not exported and model is not None:
        raise InputError(f"{submissions}: is no export of plain folders; leave out --model")
    if out.exists() and submissions.exists() and out.samefile(submissions):
        raise InputError(f"{out}: is the file of submissions; choose another --out")
    with console.Progress() as progress:
        progress("Reading the edition")
        loaded = load_edition(edition)
        if exported:
            imported = import_answers(
                loaded, submissions, model, progress=lambda done, total: progress("Scoring", done, total)
            )
            lines = _score_export(imported, out)
        else:
            lines = _score_file(loaded, submissions, out, progress)
    for line in lines:
        typer.echo(line)
    typer.echo(f"Validated: {validation_text(loaded)}")
    typer.echo(f"Rows: {out}")


def _score_file(edition: Edition, file: Path, out: Path, progress: console.Progress) -> list[str]:
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


def _score_export(imported: Iterator[Row], out: Path) -> list[str]:
    from collections import Counter

    from finskillbench.edition.store import refuse_inside_edition
    from finskillbench.errors import InputError
    from finskillbench.integrations.task_files.agreement import agreement
    from finskillbench.integrations.task_files.answers import HUMAN_HARNESS
    from finskillbench.reports.report import report
    from finskillbench.runs.store.rows import to_frame, write_rows

    if out.is_dir():
        raise InputError(f"{out}: is a folder; name a file")
    refuse_inside_edition(out)
    rows = list(imported)
    frame = to_frame(rows)
    agreed = agreement(frame.filter(frame["harness"] == HUMAN_HARNESS))
    write_rows(out, frame)
    missing = sum(row.answer_digest is None for row in rows)
    counted = _counted(Counter(row.status.value for row in rows))
    lines = [
        str(report(frame)),
        f"{len(rows)} episodes: {counted}" + (f" ({missing} unanswered: 0)" if missing else ""),
    ]
    if agreed is not None:
        lines.append(agreed)
    return lines


def _counted(statuses: Counter[str]) -> str:
    return ", ".join(f"{number} {status}" for status, number in sorted(statuses.items()))
