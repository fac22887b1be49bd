"""FinSkillBench: a point-in-time benchmark, with proved labels, of investment-management agents and their skills.

The public API; each name is imported on first use.

    from finskillbench import load_edition, report, run, score, Submission

    edition = load_edition(Path("editions/mine"))
    result = run(edition, ["baseline/reference"], ["no_skill", "curated"], limit=5, out=Path("runs/mine"))
    print(report(result.rows)) rows = list(score(edition, [Submission("pc_uncon_001", '{"weights": {"A": 1.0}}')]))

Functions:

- `build_edition(source=..., seed=..., out=...)`: build an edition from synthetic data or from your own raw files.
- `load_edition(path)`: load an `Edition` and check it against its manifest.
- `validate_edition(edition)`: run every check and derive every label again.
- `audit_edition(edition)`: audit an edition, ours or imported, from the outside.
- `run(edition, models, conditions, subtasks, agents=[...], ...)`: run models and agents under conditions, or resume.
- `arun(...)`: the awaitable form of `run`.
- `score(edition, submissions)`: score answers (`Submission`) produced elsewhere.
- `report(rows)`: means, paired differences with 95 % intervals, and costs; `tables()` has all tables.

Results print as one line, show as tables in notebooks, and convert with `to_polars()`.

Extension points:

- `Model`: a model for the built-in loop; a class with a `name` and an async `generate`.
- `Agent`: an agent with its own loop; an async function of `(task, tools)` is enough.
- `Domain`, `Subtask`, `Extension`: new domains and subtasks, registered by the entry point `finskillbench.domains`. See
  `finskillbench.domains.base` and `examples/`.

Data types: `Episode` is the agent's view of a task, `Truth` the hidden label, `Verdict` the score of one submission.
All deliberate errors are a `FinSkillBenchError`.
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

_MODULES = {
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
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
