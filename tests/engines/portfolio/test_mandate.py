"""Every wrong input is refused in one line that names the field; nothing else ever escapes."""

import copy
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.sampling import examples

from finskillbench.engines.portfolio.black_litterman import pick_matrix
from finskillbench.engines.portfolio.mandates.fields import problem_from, views_from
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.engines.portfolio.problem import Objective
from finskillbench.errors import FinSkillBenchError, InputError

TICKERS = ["A", "B", "C", "D"]


def _task() -> dict[str, Any]:
    """A complete and feasible task of four names."""
    return {
        "covariance_matrix": {"tickers": list(TICKERS), "matrix": (0.02 + 0.03 * np.eye(4)).tolist()},
        "expected_returns": {"A": 0.05, "B": 0.07, "C": 0.03, "D": 0.06},
        "risk_aversion": 3.0,
        "objective": "max_sharpe",
        "constraints": {
            "long_only": True,
            "min_weight": 0.0,
            "max_weight": 0.4,
            "max_sector_weight": 0.9,
            "sector_limits": {"Energy": 0.6},
            "excluded_sectors": [],
            "min_names": 3,
            "max_names": 4,
            "max_turnover": 0.5,
            "max_tracking_error": 0.1,
            "factor_neutrality": True,
            "neutral_factors": ["mkt_rf"],
            "neutrality_tolerance": 0.2,
        },
        "benchmark_weights": {"A": 0.25, "B": 0.25, "C": 0.25, "D": 0.25},
        "current_portfolio": {"A": 0.4, "B": 0.6},
        "sector_mapping": {"A": "Energy", "B": "Energy", "C": "Utilities", "D": "Utilities"},
        "factor_exposures": {t: {"mkt_rf": 0.8 + 0.1 * i, "smb": 0.0} for i, t in enumerate(TICKERS)},
        "analyst_views": [
            {"type": "absolute", "symbols": ["A"], "return": 0.1, "confidence": 0.5},
            {"type": "relative", "symbols": ["B", "C"], "return": 0.02, "confidence": 0.0},
        ],
    }


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place of a JSON value."""
    places = [path] if path else []
    if isinstance(value, dict):
        for key, inner in value.items():
            places += _paths(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            places += _paths(inner, (*path, index))
    return places


def _put(data: Any, path: tuple[Any, ...], value: Any) -> None:
    for key in path[:-1]:
        data = data[key]
    data[path[-1]] = value


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([10**400, -(10**400), 1e308, 5e-324, -1, 0, 1])
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(TICKERS),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from([*TICKERS, "x", ""]), inner, max_size=4)
    ),
    max_leaves=6,
)


def _read(task: Any) -> None:
    """What the library does with a task: the problem, its optimum, and the views' matrix."""
    problem = problem_from(task)
    optimise(problem)
    pick_matrix(problem.tickers, views_from(task["analyst_views"]))


def _refusal(task: Any) -> str:
    """The message of an expected error, empty if there is none; any other exception fails the test."""
    try:
        _read(task)
    except FinSkillBenchError as error:
        return str(error)
    return ""


def test_a_complete_task_is_read() -> None:
    problem = problem_from(_task())
    assert problem.tickers == tuple(TICKERS)
    assert problem.objective is Objective.MAX_SHARPE
    np.testing.assert_array_equal(problem.mean, [0.05, 0.07, 0.03, 0.06])
    np.testing.assert_array_equal(problem.current, [0.4, 0.6, 0.0, 0.0])
    assert problem.exposures is not None
    np.testing.assert_allclose(problem.exposures[:, 0], [0.8, 0.9, 1.0, 1.1])
    limits = problem.limits
    assert (limits.min_names, limits.max_names, limits.max_weight) == (3, 4, 0.4)
    assert dict(limits.sector_limits) == {"Energy": 0.6, "Utilities": 0.9}
    _read(_task())


@settings(max_examples=examples(600), suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(_paths(_task())), JSON)
@example(("objective",), ["max_sharpe"])
@example(("risk_aversion",), -1.0)
@example(("risk_aversion",), 10**400)
@example(("constraints", "neutral_factors"), [["mkt_rf"]])
@example(("constraints", "long_only"), "no")
@example(("factor_exposures", "A"), 3)
@example(("sector_mapping", "A"), ["Energy"])
@example(("analyst_views", 1, "symbols"), ["B", "B"])
@example(("analyst_views", 0, "symbols"), 3)
@example(("analyst_views", 0, "symbols"), [["A"]])
@example(("covariance_matrix", "matrix", 0, 0), 1e308)
@example(("constraints", "max_weight"), 1e308)
@example(("constraints", "min_weight"), -1e308)
@example(("current_portfolio", "A"), 1e308)
@example(("expected_returns", "A"), 1e308)
def test_any_value_in_any_field_is_read_or_refused(path: tuple[Any, ...], value: Any) -> None:
    task = _task()
    _put(task, path, value)
    assert "\n" not in _refusal(task)


@settings(max_examples=examples(100))
@given(st.lists(st.tuples(st.sampled_from(sorted(_task())), JSON), min_size=2, max_size=4))
def test_several_wrong_fields_are_refused_as_well(changes: list[tuple[str, Any]]) -> None:
    task = _task() | dict(changes)
    assert "\n" not in _refusal(task)


@settings(max_examples=examples(50))
@given(JSON)
def test_a_task_that_is_no_object_is_refused(task: Any) -> None:
    with pytest.raises(InputError):
        problem_from(task)


@pytest.mark.parametrize("field", ["covariance_matrix", "expected_returns", "benchmark_weights", "sector_mapping"])
def test_a_missing_field_is_named(field: str) -> None:
    task = _task()
    del task[field]
    with pytest.raises(InputError, match=field):
        _read(task)


@pytest.mark.parametrize("field", ["expected_returns", "sector_mapping", "factor_exposures"])
def test_a_map_must_cover_every_name(field: str) -> None:
    task = _task()
    del task[field]["C"]
    with pytest.raises(InputError, match=rf"{field}.*C|C.*{field}"):
        problem_from(task)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("objective",), "max_utility", "objective"),
        (("objective",), ["max_sharpe"], "objective"),
        (("risk_aversion",), "high", "risk_aversion"),
        (("risk_aversion",), -0.5, "risk_aversion"),
        (("expected_returns", "B"), None, "expected_returns"),
        (("expected_returns", "B"), float("nan"), "expected_returns"),
        (("expected_returns", "B"), True, "expected_returns"),
        (("benchmark_weights", "Z"), 0.1, "benchmark_weights"),
        (("current_portfolio", "Z"), 0.1, "current_portfolio"),
        (("current_portfolio",), [0.4, 0.6], "current_portfolio"),
        (("covariance_matrix", "tickers"), ["A", "B", "C", "C"], "tickers"),
        (("covariance_matrix", "tickers"), ["A", "B", "C"], "covariance_matrix"),
        (("covariance_matrix", "matrix"), [[1, 2], [3]], "covariance_matrix"),
        (("covariance_matrix", "matrix", 0, 1), 0.5, "symmetric"),
        (("covariance_matrix", "matrix", 0, 0), 0.0, "positive definite"),
        (("covariance_matrix", "matrix", 0, 0), float("nan"), "covariance"),
        (("constraints",), ["long_only"], "constraints"),
        (("constraints", "max_wieght"), 0.1, "max_wieght"),
        (("constraints", "max_weight"), "6%", "max_weight"),
        (("constraints", "min_names"), 2.5, "min_names"),
        (("constraints", "max_names"), -1, "max_names"),
        (("constraints", "long_only"), "no", "long_only"),
        (("constraints", "sector_limits"), {"Energie": 0.2}, "Energie"),
        (("constraints", "sector_limits"), 0.2, "sector_limits"),
        (("constraints", "excluded_sectors"), "Energy", "excluded_sectors"),
        (("constraints", "neutral_factors"), "mkt_rf", "neutral_factors"),
        (("constraints", "neutral_factors"), ["value"], "value"),
        (("factor_exposures", "A"), 1.0, "factor_exposures"),
        (("factor_exposures", "A", "mkt_rf"), "1", "mkt_rf"),
    ],
)
def test_a_wrong_value_is_refused_in_one_line_that_names_it(path: tuple[Any, ...], value: Any, message: str) -> None:
    task = copy.deepcopy(_task())
    _put(task, path, value)
    with pytest.raises(InputError, match=message) as error:
        problem_from(task)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ((0,), "A will rise"),
        ((0, "type"), "bullish"),
        ((0, "type"), ["absolute"]),
        ((0, "symbols"), "A"),
        ((0, "symbols"), [1]),
        ((0, "return"), "5%"),
        ((0, "return"), None),
        ((0, "confidence"), 1.0),
        ((1, "symbols"), ["B", "B"]),
        ((1, "symbols"), ["B", "Z"]),
    ],
)
def test_a_wrong_view_is_refused(path: tuple[Any, ...], value: Any) -> None:
    views = _task()["analyst_views"]
    _put(views, path, value)
    with pytest.raises(InputError, match="view"):
        pick_matrix(TICKERS, views_from(views))


def test_null_switches_a_limit_off() -> None:
    task = _task()
    task["constraints"] = {"max_turnover": None, "max_tracking_error": None, "min_names": None, "max_weight": None}
    limits = problem_from(task).limits
    assert (limits.max_turnover, limits.max_tracking_error, limits.min_names, limits.max_weight) == (None,) * 4
    assert limits.long_only
