"""FinSkillBench: a proved, point-in-time benchmark of investment-management agents and of the skills they use.

The public API in one screen; each name is imported when it is first used.

    from finskillbench import load_edition, report, run, score, Submission

    edition = load_edition(Path("editions/mine"))
    result = run(edition, ["baseline/reference"], ["no_skill", "curated"], limit=5, out=Path("runs/mine"))
    print(report(result.rows))
    rows = list(score(edition, [Submission("pc_uncon_001", '{"weights": {"A": 1.0}}')]))

What is done with an edition:

- `build_edition(source=..., seed=..., out=...)`: a build of the benchmark from synthetic or from your own raw files.
- `load_edition(path)`: an `Edition` from disk, checked against its manifest.
- `validate_edition(edition)`: every check, and every label derived again.
- `audit_edition(edition)`: what an outside examiner would ask of it, ours or imported.
- `run(edition, models, conditions, subtasks, agents=[...], ...)`: every model and agent under every condition; resumes
  where it stopped.
- `arun(...)`: the same to be awaited, by those who have an event loop.
- `score(edition, submissions)`: verdicts on answers (`Submission`) that come from elsewhere.
- `report(rows)`: means, paired differences with 95 % intervals, what it took; `print` shows the short table, `tables()`
  has all.

Each of these is shown in a line, in a notebook as a table, and gives its numbers as a table by `to_polars()`.

What can be handed in:

- `Model`: whoever answers in our loop; a class with a `name` and an async `generate`.
- `Agent`: one with a loop of its own; an async function of `(task, tools)` will do.
- `Domain`, `Subtask`, `Extension`: a field of work, a kind of episode, or more of them for a domain that exists, by the
  entry point `finskillbench.domains`; `finskillbench.domains.base` says how to write one, `examples/` has one.

What these work with: `Episode` is what an agent sees of a task, `Truth` what it does not, `Verdict` the judgement of
one submission. Every error that is raised on purpose is a `FinSkillBenchError`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from finskillbench.domains.base import Domain, Extension, Subtask
    from finskillbench.edition.build import build_edition
    from finskillbench.edition.checks.engine import audit_edition, validate_edition
    from finskillbench.edition.load import Edition, load_edition
    from finskillbench.episode import Episode, Submission, Truth, Verdict
    from finskillbench.errors import FinSkillBenchError
    from finskillbench.harness.agents import Agent
    from finskillbench.harness.model import Model
    from finskillbench.reports.report import report
    from finskillbench.runs.execute.run import arun, run
    from finskillbench.runs.postprocess.scoring import score

__all__ = [
    "Agent",
    "Domain",
    "Edition",
    "Episode",
    "Extension",
    "FinSkillBenchError",
    "Model",
    "Submission",
    "Subtask",
    "Truth",
    "Verdict",
    "arun",
    "audit_edition",
    "build_edition",
    "load_edition",
    "report",
    "run",
    "score",
    "validate_edition",
]

_HOMES = {
    "domains.base": ("Domain", "Extension", "Subtask"),
    "edition.build": ("build_edition",),
    "edition.load": ("Edition", "load_edition"),
    "edition.checks.engine": ("audit_edition", "validate_edition"),
    "episode": ("Episode", "Submission", "Truth", "Verdict"),
    "errors": ("FinSkillBenchError",),
    "harness.agents": ("Agent",),
    "harness.model": ("Model",),
    "reports.report": ("report",),
    "runs.postprocess.scoring": ("score",),
    "runs.execute.run": ("arun", "run"),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
