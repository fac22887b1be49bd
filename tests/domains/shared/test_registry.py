"""The registry and what an agent is shown of each answer."""

import json
import sys
from dataclasses import replace
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Any

import pytest
from tests.scoring.examples import EXPECTED

from finskillbench import domains as registry
from finskillbench import extensions
from finskillbench.domains import (
    Domain,
    Extension,
    Subtask,
    by_method,
    domain_of,
    find_subtask,
    subtask_named,
    subtasks,
    suite_of,
)
from finskillbench.domains.base import Verification
from finskillbench.episode import PAPER_SUITE, Profile
from finskillbench.errors import InputError

ORDER = [
    ("unconstrained_optimization", "pc_uncon", ["weights"]),
    ("constrained_optimization", "pc_con", ["weights", "constraint_satisfaction"]),
    ("tool_use_parameterization", "pc_tool", ["optimizer_call"]),
    ("rebalancing", "pc_rebal", ["trade_list", "new_weights", "turnover"]),
    ("black_litterman", "pc_bl", ["posterior_returns", "optimal_weights"]),
    ("constraint_monitoring", "rm_cm", ["overall_compliant", "violations_count", "constraints"]),
    ("risk_identification", "rm_ri", ["top_risk_exposures"]),
    ("stress_testing", "rm_st", ["estimated_pnl_pct", "attribution", "stressed_var_pct"]),
    ("risk_remediation", "rm_rr", ["trades", "total_turnover", "post_trade_compliant"]),
    ("normalization", "fa_norm", ["metrics"]),
    (
        "earnings_quality",
        "fa_eq",
        [
            "piotroski_score",
            "piotroski_components",
            "beneish_m_score",
            "beneish_flag",
            "accruals_ratio",
            "income_quality_ratio",
            "flags",
        ],
    ),
    ("driver_decomposition", "fa_dd", ["revenue_delta", "top_revenue_drivers", "margin_drivers"]),
    ("infeasibility_detection", "pc_infeas", ["feasible", "conflicting_limits", "least_attainable"]),
]
DOMAINS = {"pc": "portfolio_construction", "rm": "risk_management", "fa": "fundamental_analysis"}


def test_the_subtasks_of_the_specification_in_its_order() -> None:
    """Others may stand among them."""
    specified = {name for name, _, _ in ORDER}
    listed = [(one.name, one.prefix, list(one.answer.model_fields)) for one in subtasks() if one.name in specified]
    assert listed == ORDER
    assert [domain_of(name).name for name, _, _ in ORDER] == [DOMAINS[prefix.split("_")[0]] for _, prefix, _ in ORDER]
    assert specified - {one.name for one in subtasks() if one.headline} == {"infeasibility_detection"}


def test_subtasks_are_found_by_name_and_by_method() -> None:
    for subtask in subtasks():
        assert subtask_named(subtask.name) is subtask
        assert by_method(subtask.verification.method) is subtask
        assert find_subtask(subtask.name, "none") is find_subtask(subtask.verification.method) is subtask
        assert find_subtask("none", subtask.verification.method) is subtask
        assert Profile.STRICT in subtask.scorers
        assert Profile.PAPER in subtask.scorers or suite_of(subtask.name) != PAPER_SUITE or not subtask.headline
    assert find_subtask("none") is None
    for find in (subtask_named, by_method):
        with pytest.raises(InputError, match=r"unknown .*'nothing'; known are "):
            find("nothing")


def _undescribed(schema: Any, path: str) -> list[str]:
    """Paths of properties that reach the agent without a description."""
    found: list[str] = []
    if isinstance(schema, dict):
        for name, part in schema.get("properties", {}).items():
            if "description" not in part:
                found.append(f"{path}.{name}")
        for key, part in schema.items():
            found += _undescribed(part, f"{path}.{key}")
    elif isinstance(schema, list):
        for part in schema:
            found += _undescribed(part, path)
    return found


@pytest.mark.parametrize("subtask", subtasks(), ids=lambda subtask: subtask.name)
def test_every_key_of_an_answer_is_described(subtask: Subtask) -> None:
    schema = subtask.answer.model_json_schema()
    assert _undescribed(schema, subtask.name) == []
    # Tickers and numbers of an episode must never be part of the schema.
    assert not {"AIG", "AAA"} & set(json.dumps(schema).replace('"', " ").split())


@pytest.mark.parametrize(
    "name", ["unconstrained_optimization", "rebalancing", "black_litterman", "tool_use_parameterization"]
)
def test_right_answers_fit_their_answer_type(name: str) -> None:
    assert subtask_named(name).answer.model_validate(EXPECTED[name]).model_dump(exclude_unset=True) == EXPECTED[name]


def _registered(monkeypatch: pytest.MonkeyPatch, **handed_in: str) -> tuple[Domain, ...]:
    """The domains there are with packages installed: entry point to the name in the module `from_outside`."""
    points = [EntryPoint(name, f"from_outside:{value}", extensions.DOMAINS) for name, value in handed_in.items()]
    monkeypatch.setattr(extensions, "entry_points", lambda group: points)
    return registry.domains.__wrapped__()


@pytest.fixture
def outside(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = ModuleType("from_outside")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module


def test_an_extension_may_come_before_its_domain(outside: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    known = subtask_named("stress_testing")
    more = [
        replace(known, name=name, prefix=f"x_{name}", verification=Verification(name)) for name in ("first", "second")
    ]
    outside.domain = replace(domain_of("stress_testing"), name="outside", subtasks=(more[0],), skills=())
    outside.extension = Extension("outside", subtasks=(more[1],))
    *_, last = _registered(monkeypatch, a="extension", b="domain")
    assert (last.name, [one.name for one in last.subtasks]) == ("outside", ["first", "second"])


def test_a_package_that_cannot_be_loaded_is_named(outside: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        InputError, match=r"^entry point a \(from_outside:gone\): cannot be loaded \(AttributeError: .*gone.*uninstall"
    ):
        _registered(monkeypatch, a="gone")
