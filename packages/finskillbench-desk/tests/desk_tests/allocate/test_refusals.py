"""What the scripts for allocating among sources refuse: keys that nobody reads, and what has the wrong shape."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from desk_tests.allocate.cases import script

from finskillbench.errors import InputError

TABLES: dict[str, Any] = {
    "panel": {
        "quarter": [1, 1, 2, 2, 3, 3],
        "ticker": ["A", "B"] * 3,
        "industry": ["rail", "ships"] * 3,
        "return_bp": [10, -20, 30, 5, 0, 7],
        "S001": [100, -100, 200, -200, 50, 60],
        "A01": [5, 6, -7, 8, 9, -9],
    },
    "today": {"ticker": ["A", "B"], "industry": ["rail", "ships"], "S001": [90, -80], "A01": [4, 3]},
    "names": {
        "ticker": ["A", "B"],
        "industry": ["rail", "ships"],
        "market": [1.0, 0.9],
        "specific_volatility": [0.1, 0.12],
        "equilibrium_return": [0.01, 0.01],
        "current_weight": [0.5, 0.5],
        "benchmark_weight": [0.5, 0.5],
        "linear_cost": [0.001, 0.001],
        "quadratic_cost": [1.0, 1.0],
    },
    "factor_returns": {"quarter": [1, 2, 3], "market": [0.01, -0.02, 0.0]},
    "sources": {"source": ["S001", "A01"], "scale": [100, 6], "since": [1, 3]},
    "factor_covariance": {"factors": ["market"], "matrix": [[0.0064]]},
    "limits": {"max_weight": 0.9, "industry_band": 0.4, "max_turnover": 0.3, "price_of_breaking": 0.2},
    "risk_aversion": 4.0,
}
HYPOTHESIS = {
    "group": "rail",
    "name": "S001",
    "estimate": 0.02,
    "standard_error": 0.005,
    "probability": 0.004,
    "deviation": 0.02,
}
EFFECT = {"industry": "rail", "source": "S001", "effect": 0.01, "variance": 1e-5}
PROBLEMS: dict[str, dict[str, Any]] = {
    "panel_checks": {name: TABLES[name] for name in ("panel", "today", "names", "sources")},
    "panel_regress": {name: TABLES[name] for name in ("panel", "names", "factor_returns", "sources")},
    "shrink": {"hypotheses": [HYPOTHESIS]},
    "optimize_net_of_costs": {
        **{
            name: TABLES[name] for name in ("names", "today", "sources", "factor_covariance", "limits", "risk_aversion")
        },
        "effects": [EFFECT],
    },
}


def run(name: str, payload: dict[str, Any]) -> Any:
    return script(f"signal-trading/scripts/{name}.py")(payload)


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_problem_itself_is_taken(name: str) -> None:
    assert run(name, deepcopy(PROBLEMS[name]))


@pytest.mark.parametrize("name", PROBLEMS)
def test_an_unknown_key_is_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(InputError, match=rf"^{name}: unknown half_life; known are .*{next(iter(PROBLEMS[name]))}"):
        run(name, {**deepcopy(PROBLEMS[name]), "half_life": 3})


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("panel_checks", {"least_likeness": 70}, "least_likeness must be above 0 and at most 1, not 70"),
    ("panel_checks", {"today": {"ticker": ["A", "B"], "S001": [1, 2]}}, "today and panel differ in A01"),
    ("panel_checks", {"names": {}}, "names has no column ticker"),
    ("panel_checks", {"sources": {"source": ["S001", "A01"], "scale": [1, 2]}}, "sources has no column since"),
    ("panel_regress", {"windows": "1-3"}, "windows must be a list, not '1-3'"),
    ("panel_regress", {"windows": [1, 3]}, r"windows must list pairs \[first, last\] of quarters between 1 and 3"),
    ("panel_regress", {"windows": [[2, 4]]}, "last of a window must be a whole number from 2 to 3, not 4"),
    ("panel_regress", {"windows": [[1.5, 3]]}, "first of a window must be a whole number from 1 to 3, not 1.5"),
    ("panel_regress", {"start": ["A01"]}, "start must map sources to their first quarter"),
    ("panel_regress", {"start": {"A01": 4}}, "start of A01 must be a whole number from 1 to 3, not 4"),
    ("panel_regress", {"start": {"A9": 2}}, "start names A9, which is no source"),
    ("panel_regress", {"only": "S001"}, "only must be a list, not 'S001'"),
    ("panel_regress", {"only": ["S9"]}, "only names S9, which is no source"),
    ("panel_regress", {"positive": 1}, "positive must be true or false"),
    ("panel_regress", {"top": 0}, "top must be a whole number from 1 to 1000, not 0"),
    ("panel_regress", {"repairs": {"S001": -1}}, "repairs must be a list, not dict"),
    ("panel_regress", {"repairs": [{"source": "S001"}]}, "repairs: every entry must be an object with source, first"),
    ("panel_regress", {"repairs": [{"source": "S001", "multiply": 1, "until": 2}]}, "unknown until; known are source"),
    ("panel_regress", {"repairs": [{"source": "S001", "multiply": 1, "last": 0}]}, "last of a repair must be a whole"),
    ("panel_regress", {"factor_returns": {"quarter": [1], "market": [0.1]}}, "factor_returns has 1 quarters"),
    ("panel_regress", {"names": TABLES["names"] | {"market": [1.0]}}, "market must hold one number for each of 2"),
    ("panel_regress", {"panel": TABLES["panel"] | {"S001": [1, 2]}}, "S001 must hold one number for each of 6"),
    ("shrink", {"hypotheses": {}}, "hypotheses must be a list, not dict"),
    ("shrink", {"hypotheses": []}, "hypotheses is empty"),
    ("shrink", {"hypotheses": ["S001"]}, "hypotheses must list objects with group, name"),
    ("shrink", {"hypotheses": [HYPOTHESIS | {"se": 1}]}, "an entry of hypotheses: unknown se; known are group, name"),
    ("shrink", {"hypotheses": [HYPOTHESIS | {"counts": 0}]}, "counts must be true or false"),
    ("shrink", {"hypotheses": [HYPOTHESIS | {"deviation": 0}]}, "deviations positive"),
    ("shrink", {"hypotheses": [HYPOTHESIS | {"probability": 1}]}, "sum to less than 1"),
    ("optimize_net_of_costs", {"effects": {"S001": 0.01}}, "effects must be a list, not dict"),
    ("optimize_net_of_costs", {"effects": [{"source": "S001"}]}, "effects must list objects with industry, source"),
    ("optimize_net_of_costs", {"effects": [EFFECT | {"chance": 1}]}, "an entry of effects: unknown chance; known are"),
    ("optimize_net_of_costs", {"effects": [EFFECT | {"industry": "air"}]}, "which the table names does not have"),
    ("optimize_net_of_costs", {"effects": [EFFECT | {"variance": -1e-5}]}, "variance of S001 in rail is negative"),
    (
        "optimize_net_of_costs",
        {"repairs": [{"source": "S001", "multiply": -1, "last": 2}]},
        "an entry of repairs: unknown last; known are source, multiply",
    ),
    ("optimize_net_of_costs", {"limits": TABLES["limits"] | {"cash": 0}}, "limits: unknown cash; known are max_weight"),
    ("optimize_net_of_costs", {"factor_covariance": {"factors": ["market"], "matrix": [1]}}, "k rows of k numbers"),
    ("optimize_net_of_costs", {"names": {"ticker": ["A", "B"]}}, "names has no column industry"),
]


@pytest.mark.parametrize(("name", "changed", "told"), REFUSED)
def test_what_has_the_wrong_shape_is_refused_in_one_line(name: str, changed: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told) as refusal:
        run(name, {**deepcopy(PROBLEMS[name]), **changed})
    assert "\n" not in str(refusal.value)
