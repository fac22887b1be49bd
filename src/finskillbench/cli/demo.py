"""`finskillbench demo`: run one episode of each subtask of the paper's suite, with and without skills."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from finskillbench.cli.display.console import Progress, print_result
from finskillbench.cli.options.kinds import RunFolder
from finskillbench.cli.options.runs import RunOptions
from finskillbench.cli.run import execute_run

if TYPE_CHECKING:
    from finskillbench.edition import Edition

EXAMPLE = "Example: finskillbench demo"


@dataclass(kw_only=True)
class _DemoOptions(RunOptions):
    """Options of a run on the small default edition."""

    def open_edition(self, progress: Progress) -> Edition:
        """Load the small default edition, built on first use."""
        from finskillbench.edition import load_edition
        from finskillbench.runs.plan.streams import default_edition

        return load_edition(default_edition(progress, small=True))


def demo(out: RunFolder = None) -> None:
    """Build a small edition, run the reference program once on each subtask, and write the report page.

    The edition has 15 fictional companies and one episode of each subtask of the paper's suite. Each episode runs with
    and without the curated skills. No API key is needed. `finskillbench run` runs every episode.
    """
    options = _DemoOptions(model=["baseline/reference"], condition=["no_skill", "curated"], out=out)
    print_result(*execute_run(options), page=True)
