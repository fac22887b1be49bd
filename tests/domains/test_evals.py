"""Cases that our packages carry for tools which evaluate skills: their shape, and that what they expect is right."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.domains.package import Package

from finskillbench.harness.conditions import mount
from finskillbench.harness.skills.loader import curated, placebo, read_files

OURS = ("fundamental-analysis", "portfolio-construction", "risk-management")
BLOCK = re.compile(r"```json\n(.*?)\n```", re.DOTALL)
REQUIRED = {"id", "prompt", "expected_output", "assertions", "expected_skill", "expected_script", "acceptable_skills"}


def _cases(name: str) -> list[dict[str, Any]]:
    data = json.loads((curated()[name].root / "evals" / "evals.json").read_bytes())
    assert data.keys() == {"skill_name", "evals"}
    assert data["skill_name"] == name
    return data["evals"]


@pytest.mark.parametrize("name", OURS)
def test_the_shape_is_that_of_agentskills(name: str) -> None:
    cases = _cases(name)
    assert len({case["id"] for case in cases}) == len(cases)
    for case in cases:
        assert case.keys() == REQUIRED
        assert re.fullmatch(r"[A-Za-z0-9][\w.-]{0,127}", case["id"], re.ASCII)
        assert case["expected_skill"] in (name, None)
        script = case["expected_script"]
        assert (script is None) == (case["expected_skill"] is None)
        assert script is None or f"scripts/{script}" in curated()[name].scripts
    # Cases that are none of its work: one of each other domain of ours at least.
    negative = [case["id"] for case in cases if case["expected_skill"] is None]
    others = [other.partition("-")[0] for other in OURS if other != name]
    assert all(any(other in case for case in negative) for other in others)


def _positive() -> list[Any]:
    return [pytest.param(name, case, id=case["id"]) for name in OURS for case in _cases(name) if case["expected_skill"]]


@pytest.mark.parametrize(("name", "case"), _positive())
def test_the_script_says_what_is_expected(name: str, case: dict[str, Any]) -> None:
    (payload,), (expected,) = BLOCK.findall(case["prompt"]), BLOCK.findall(case["expected_output"])
    result = Package(name).script(Path(case["expected_script"]).stem).main(json.loads(payload))
    told = json.loads(expected)
    assert told
    assert json.loads(json.dumps({key: result[key] for key in told})) == told


def test_what_is_expected_was_worked_out_by_hand() -> None:
    """One case of each package, from its definitions alone."""
    expected = {
        case["id"]: json.loads(BLOCK.findall(case["expected_output"])[0])
        for name in OURS
        for case in _cases(name)
        if case["expected_skill"]
    }
    # Variances 0.09, 0.09 and 0.18: weights as 2 to 2 to 1, and the cap of 40 % just holds.
    weights = expected["portfolio-construction-001-explicit"]["weights"]
    assert weights == {"AAA": 0.4, "BBB": 0.4, "CCC": 0.2}
    # 0.5 x 1.2 x -0.2 + 0.4 x 0.8 x -0.2 (market), 0.4 x 0.5 x -0.05 (size), 0.5 x -0.03 + 0.4 x 0.01 (sectors).
    loss = 0.5 * 1.2 * -0.2 + 0.4 * 0.8 * -0.2 + 0.4 * 0.5 * -0.05 + 0.5 * -0.03 + 0.4 * 0.01
    assert expected["risk-management-001-explicit"]["estimated_pnl_pct"] == pytest.approx(loss, abs=1e-12)
    # 150 / 1000, and 150 + 50.
    metrics = expected["fundamental-analysis-001-explicit"]["metrics"]
    assert (metrics["operating_margin"], metrics["ebitda"]) == (0.15, 200.0)


@pytest.mark.parametrize("condition", ["curated", "inline", "docs_only", "scripts_only"])
def test_no_arm_gives_them_to_an_agent(condition: str) -> None:
    packages = curated()
    mounted = mount(condition, packages, placebo()).packages
    assert set(OURS) <= set(mounted)
    for name in OURS:
        assert (packages[name].root / "evals" / "evals.json").is_file()
        assert not [file for file in read_files(packages[name].root) if file.startswith("evals")]
        assert not [file for file in (*mounted[name].references, *mounted[name].scripts) if "evals" in file]
        assert "evals" not in mounted[name].body
