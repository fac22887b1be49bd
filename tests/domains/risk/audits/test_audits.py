"""What the audit asks of mandates and statuses: each planted defect is found, there and nowhere else."""

from __future__ import annotations

from datetime import date
from types import SimpleNamespace
from typing import Any

import pytest
from tests.domains.risk.judging.cases import MARKET, TICKERS, Json, mandate, portfolio

from finskillbench.domains.risk.checks.economics import check_risk_economics
from finskillbench.findings import CheckState, Findings


def _whole_input(episode: Any) -> Any:
    return episode.input


def _subject(inputs: list[Json], manifest: Json) -> Any:
    episodes = [
        SimpleNamespace(
            task_id=f"rm_cm_{place}", as_of_date=date(2024, 1, 31), sub_task="constraint_monitoring", input=one
        )
        for place, one in enumerate(inputs)
    ]
    complies = [one["portfolio"]["cash_weight"] <= 0.05 for one in inputs]

    def truth(task_id: str) -> Any:
        return SimpleNamespace(expected_output={"overall_compliant": complies[int(task_id.rsplit("_")[-1])]})

    return SimpleNamespace(
        episodes=episodes,
        built=True,
        edition=SimpleNamespace(has_truth=True, truth=truth, manifest=manifest),
        of=lambda name: episodes,  # pyright: ignore[reportUnknownLambdaType]
        input_of=_whole_input,
    )


def _inputs(cash: list[float], *limits: Json) -> list[Json]:
    """Portfolios whose cash lies where it is told about a limit of 5 %; the mandates differ in name only."""
    found: list[Json] = []
    for place, weight in enumerate(cash):
        own = mandate({"type": "cash_max", "value": 0.05}, *limits) | {"mandate_id": f"M{place}"}
        held = dict.fromkeys(TICKERS, (1 - weight) / 6)
        found.append(MARKET | {"portfolio": portfolio(**held), "mandate": own})
    return found


_BALANCED = [0.0498, 0.0502, 0.0499, 0.0501, 0.048, 0.052, 0.02, 0.09, 0.01, 0.08, 0.0495, 0.0505]


def _told(inputs: list[Json], manifest: Json | None = None, state: CheckState = CheckState.FAIL) -> list[str]:
    findings = Findings()
    check_risk_economics(_subject(inputs, manifest or {}), findings)
    return [f"{one.where}: {one.message}" for one in findings.found if one.state is state]


def test_balanced_statuses_and_a_mandate_that_its_benchmark_keeps_are_clean() -> None:
    assert _told(_inputs(_BALANCED)) == []


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        ({"type": "beta_range", "min": 0.0, "max": 1.0}, "beta_range of M3 is broken by its benchmark, at 1.1500"),
        ({"type": "tracking_error_max", "value": 0.07}, "M may run a tracking error of 7.0%, over 6%"),
    ],
)
def test_a_mandate_that_does_not_fit_its_benchmark_is_found(limit: Json, message: str) -> None:
    inputs = _inputs(_BALANCED)
    inputs[3]["mandate"]["constraints"].append(limit)
    assert _told(inputs) == [f"rm_cm_3: {message}"]


def test_of_a_mandate_that_a_user_brought_it_is_only_said() -> None:
    inputs = _inputs(_BALANCED)
    inputs[3]["mandate"]["constraints"].append({"type": "tracking_error_max", "value": 0.07})
    brought = {
        "catalog": {"files": {"mandates.json": ""}},
        "parameters": {"mandates": {"mandates": [{"mandate_id": "M3"}]}},
    }
    assert _told(inputs, brought) == []
    assert _told(inputs, brought, CheckState.WARN) == ["rm_cm_3: M may run a tracking error of 7.0%, over 6%"]
    assert _told(inputs, {**brought, "catalog": {"files": {}}}) != []


def test_no_balance_is_asked_of_a_users_own_books() -> None:
    inputs = _inputs([*_BALANCED, *[0.01] * 12])
    for place, one in enumerate(inputs):
        one["portfolio"] = {**one["portfolio"], "portfolio_id": f"own-{place}" if place >= len(_BALANCED) else "P001"}
    own = {f"own-{place}": {} for place in range(len(inputs))}
    assert _told(inputs) != []
    assert _told(inputs, {"parameters": {"books": own}}) == []


def test_a_limit_that_is_hardly_ever_broken_is_found() -> None:
    cash = [0.0498, 0.0502, 0.048, 0.052, *[0.01] * 8]
    told = _told(_inputs(cash))
    assert told == [
        "cash_max: 2 of 12 statuses are FAIL: a constant verdict scores well",
        "overall_compliant: 83% comply",
    ]


def test_near_misses_on_one_side_are_found() -> None:
    cash = [0.0499, 0.0498, 0.0497, 0.0496, 0.0495, 0.0494, *[0.09] * 6]
    told = _told(_inputs(cash))
    assert [line.split(":")[0] for line in told] == ["near misses"]
