"""`finskillbench handout`: episodes as folders, for agents that read and write files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from finskillbench.cli.display import console
from finskillbench.cli.options.arms import part_of
from finskillbench.cli.options.kinds import Limit, Sample, Subtasks, Suite
from finskillbench.integrations.handout import Layout

EXAMPLE = """\b
Examples:
  finskillbench handout editions/seven out/plain --limit 5
  finskillbench handout editions/seven out/skills --limit 5 --condition curated
  finskillbench score editions/seven out/plain --model mine --out rows.parquet
  finskillbench handout editions/seven out/own --limit 5 --skills mine=my-skills
  finskillbench handout editions/seven out/tasks --limit 5 --format harbor"""


# As long as its options are many, each of which is named and explained once, here.
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
    from finskillbench.harness.skills.given import GIVEN_ARM, parse_skills
    from finskillbench.integrations.handout.write import ANSWER, check_hand_out, hand_out

    own = parse_skills([] if skills is None else [skills])
    if own and condition is not None:
        raise InputError("--skills is a condition of its own; leave out --condition")
    arm = next((f"{GIVEN_ARM}{name}" for name in own), condition or "no_skill")
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
