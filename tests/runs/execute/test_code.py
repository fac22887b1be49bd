"""Runs whose agents write code: they get it as a tool, and whoever does not use it fares as without."""

import polars as pl
import pytest
from tests.sampling import THOROUGH, thorough

from finskillbench.errors import InputError
from finskillbench.harness.tools import interpreters
from finskillbench.runs.execute.run import run
from finskillbench.runs.store.journal import read_trajectory

CODE = {"code_curated": "curated", "code": "no_skill"} if THOROUGH else {"code_curated": "curated"}
"""Arms whose agents write code, and the same without; of an arm an interpreter takes a second to start."""
BEST = """
import json, numpy as np
returns = task["expected_returns"]
json.dump({list(returns)[int(np.argmin(list(returns.values())))]: 1.0}, open("weights.json", "w"))
"""


async def programmer(task, tools):
    """Computes the truth of these tests: all of it in the name that the first call has written down."""
    if "run_python" not in [tool.name for tool in task.tools]:
        return "{}"
    assert (await tools.call("run_python", code=BEST))["files"] == ["weights.json"]
    found = await tools.call("run_python", code="import json; json.load(open('weights.json'))")
    return {"weights": found["value"], "feasible": False, "conflicting_limits": [], "least_attainable": 0.4}


@pytest.mark.slow
def test_an_agent_programs_where_its_arm_lets_it(edition, tmp_path) -> None:
    result = run(edition, conditions=["no_skill", *CODE], agents=[programmer], limit=3, out=tmp_path / "run")
    right = pl.col("scores").struct.field("paper").mean()
    means = dict(result.rows.group_by("condition").agg(right).rows())
    assert means == {"no_skill": 0.0, **dict.fromkeys(CODE, 1.0)}
    trace = read_trajectory(next((tmp_path / "run" / "trajectories").rglob("*__code*/*.json.gz"))).trace
    assert [(record.name, record.fate) for record in trace.tool_calls][:2] == [("run_python", "ok")] * 2


@thorough
@pytest.mark.slow
def test_programs_fare_under_code_as_without_it(edition, tmp_path) -> None:
    models = ["baseline/reference", "baseline/nop"]
    rows = run(edition, models, [*CODE, *CODE.values()], limit=3, out=tmp_path / "run").rows
    same = [
        "model",
        "task_id",
        "status",
        "score",
        "scores",
        "answer_digest",
        "skills_loaded",
        "scripts_run",
        "tool_calls",
    ]
    for arm, other in CODE.items():
        ours, theirs = (rows.filter(pl.col("condition") == name).select(same) for name in (arm, other))
        assert ours.height == 12
        assert ours.equals(theirs)


@pytest.mark.slow
def test_a_run_does_not_start_where_code_could_find_the_library(edition, tmp_path, monkeypatch) -> None:
    honest = interpreters.code_runner
    monkeypatch.setattr(interpreters, "code_runner", lambda **how: honest(**{**how, "with_library": True}))
    with pytest.raises(InputError, match=r"^condition code: .* it finds this library by import, "):
        run(edition, conditions=["code"], agents=[programmer], limit=1, out=tmp_path / "run")
    assert not list((tmp_path / "run").rglob("*.json.gz"))
