"""FinSkillBench: a proved, point-in-time benchmark of investment-management agents and of the skills they use.

The public API in one screen; each name is imported when it is first used.

    from finskillbench import load_edition, report, run, score

    edition = load_edition(Path("editions/mine"))
    result = run(edition, ["baseline/reference"], ["no_skill", "curated"], limit=5, out=Path("runs/mine"))
    for line in report(result.rows).lines:
        print(line.sub_task, [cell.mean for cell in line.cells])
    rows = list(score(edition, [Submission("pc_uncon_001", '{"weights": {"A": 1.0}}')]))

- `load_edition(path)`: one build of the benchmark, checked against its manifest.
- `run(edition, models, conditions, subtasks, ...)`: every model under every condition; resumes where it stopped.
- `score(edition, submissions)`: verdicts on answers that come from elsewhere (`finskillbench.episode.Submission`).
- `report(rows)`: mean per subtask and condition, difference and 95 % paired interval.
"""

from __future__ import annotations

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from finskillbench.analysis.summary import summary_table as report
    from finskillbench.edition import load_edition
    from finskillbench.runs.afterwards.scoring import score
    from finskillbench.runs.execute.run import run

# A library writes no log of its own accord; `finskillbench -v` and whoever imports it may listen.
logging.getLogger(__name__).addHandler(logging.NullHandler())

__all__ = ["load_edition", "report", "run", "score"]

_HOME = {
    "load_edition": ("finskillbench.edition", "load_edition"),
    "report": ("finskillbench.analysis.summary", "summary_table"),
    "run": ("finskillbench.runs.execute.run", "run"),
    "score": ("finskillbench.runs.afterwards.scoring", "score"),
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _HOME[name]
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return __all__
