"""`finskillbench demo`: one episode of each subtask of the paper's suite, with skills and without."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from finskillbench.cli.display.console import Progress, print_result
from finskillbench.cli.options.kinds import RunFolder
from finskillbench.cli.options.runs import RunOptions
from finskillbench.cli.run import perform

if TYPE_CHECKING:
    from finskillbench.edition import Edition

EXAMPLE = "Example: finskillbench demo"


@dataclass(kw_only=True)
class _DemoOptions(RunOptions):
    """Options of a run on the small default edition."""

    def open_edition(self, progress: Progress) -> Edition:
        """The small default edition."""
        from finskillbench.edition import load_edition
        from finskillbench.runs.plan.streams import default_edition

        return load_edition(default_edition(progress, small=True))


def demo(out: RunFolder = None) -> None:
    """Build a small edition, play each subtask once with the reference program, and write the page.

    The edition has 15 fictional companies and one episode of each subtask of the paper's suite, which is played with
    the curated skills and without; no key is needed. For every episode: `finskillbench run`.
    """
    options = _DemoOptions(model=["baseline/reference"], condition=["no_skill", "curated"], out=out)
    print_result(*perform(options), page=True)
