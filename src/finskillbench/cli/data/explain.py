"""`finskillbench data explain`: where a figure of a fundamental label comes from."""

from __future__ import annotations

from typing import Annotated

import typer

from finskillbench.cli.data.arguments import EditionArgument

EXAMPLE = "Example: finskillbench data explain editions/seven fa_norm_AAPL_2024-03-30 total_liabilities"


def explain(
    edition: EditionArgument,
    task_id: Annotated[str, typer.Argument(metavar="TASK_ID", help="Episode of fundamental analysis.")],
    metric: Annotated[str, typer.Argument(metavar="METRIC", help="Metric of its label, such as revenue.")],
) -> None:
    """Print the facts considered for a metric, the rule that chose, and its witnesses, with accession numbers."""
    from finskillbench.domains.fundamental.explain import explain as lines
    from finskillbench.edition import load_edition
    from finskillbench.errors import InputError
    from finskillbench.panels.store import read_panel

    opened = load_edition(edition)
    episode = next((one for one in opened.episodes() if one.task_id == task_id), None)
    if episode is None:
        raise InputError(f"{edition} has no episode {task_id}; `finskillbench data info {edition}` names its subtasks")
    filed = read_panel(edition / "panels", "filed")
    for line in lines(episode, opened.full_input(episode), filed, metric):
        typer.echo(line)
