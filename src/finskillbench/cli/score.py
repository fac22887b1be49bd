"""`finskillbench score`: verdicts on answers that come from elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from finskillbench.cli.display import console

EXAMPLE = "Example: finskillbench score editions/mine answers.jsonl --out rows.jsonl"


def score(
    edition: Annotated[Path, typer.Argument(help="Folder of the edition.")],
    submissions: Annotated[Path, typer.Argument(help='JSON lines {"task_id": ..., "answer": "<text>" or null}.')],
    out: Annotated[
        Path,
        typer.Option("--out", parser=console.out_path, metavar="PATH", help="JSON lines of verdicts to write."),
    ],
) -> None:
    """Score submitted answers under every profile.

    Each line of the result holds task_id, sub_task, status, valid_json, scores by profile and details. Episodes
    without a submission score 0 in every subtask that was answered at all.
    """
    from collections import Counter

    from finskillbench.edition import load_edition
    from finskillbench.errors import InputError
    from finskillbench.runs.afterwards import scoring

    if out.exists() and submissions.exists() and out.samefile(submissions):
        raise InputError(f"{out}: is the file of submissions itself; choose another --out")
    with console.Progress() as progress:
        progress("Reading the edition")
        loaded = load_edition(edition)
        known = {episode.task_id for episode in loaded.episodes()}
        answers = scoring.read_submissions(submissions, known)
        statuses: Counter[str] = Counter()

        def rows():
            for done, entry in enumerate(scoring.score(loaded, answers), start=1):
                statuses[entry["status"]] += 1
                progress("Scoring", min(done, len(answers)), len(answers))
                yield entry

        count = scoring.write_rows(rows(), out)
    summary = ", ".join(f"{number} {status}" for status, number in sorted(statuses.items()))
    missing = count - len(answers)
    typer.echo(f"{count} of {len(known)} episodes: {summary}" + (f" ({missing} unanswered: 0)" if missing else ""))
    typer.echo(f"Rows: {out}")
