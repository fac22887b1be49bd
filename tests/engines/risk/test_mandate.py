"""A mandate survives the round trip through its JSON; every wrong one is refused naming the constraint."""

import json
import math
from typing import Any

import pytest
from tests.engines.risk.cases import SAMPLE, mandate_json

from finskillbench.engines.risk.mandate import DEFINITIONS, ConstraintKind, mandate_from
from finskillbench.errors import InputError


def test_round_trip_with_definitions() -> None:
    mandate = mandate_from(mandate_json())
    shown = mandate.to_json()
    assert mandate_from(json.loads(json.dumps(shown))) == mandate
    assert [row["type"] for row in shown["constraints"]] == list(ConstraintKind) == list(DEFINITIONS)
    assert [row.pop("definition") for row in shown["constraints"]] == list(DEFINITIONS.values())
    assert shown == mandate_json()


def test_get_finds_a_constraint_by_kind() -> None:
    mandate = mandate_from(mandate_json(cash_max=None))
    assert mandate.get(ConstraintKind.CASH_MAX) is None
    assert mandate.limit(ConstraintKind.CASH_MAX) is None
    assert mandate.limit(ConstraintKind.HHI_MAX) == 0.15
    exposure = mandate.get(ConstraintKind.FACTOR_EXPOSURE_MAX)
    assert exposure is not None
    assert exposure.factors == ("smb", "hml")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"var_max": {"value": 0.1}}, r"constraints\[12\].type 'var_max' is unknown; choose one of long_only"),
        ({"long_only": {"value": False}}, "constraint long_only: value must be true"),
        ({"hhi_max": {}}, "constraint hhi_max: value must be a number"),
        ({"hhi_max": {"value": "0.1"}}, "constraint hhi_max: value must be a number"),
        ({"hhi_max": {"value": True}}, "constraint hhi_max: value must be a number"),
        ({"hhi_max": {"value": math.nan}}, "constraint hhi_max: value must be a number"),
        ({"hhi_max": {"value": 0}}, "constraint hhi_max: value must be > 0"),
        ({"cash_max": {"value": -0.01}}, "constraint cash_max: value must be >= 0"),
        ({"hhi_max": {"value": 0.1, "max": 0.1}}, "constraint hhi_max has unknown fields max"),
        ({"beta_range": {"min": 0.8}}, "constraint beta_range: max must be a number"),
        ({"beta_range": {"min": 1.2, "max": 0.8}}, "constraint beta_range: min 1.2 is greater than max 0.8"),
        ({"name_count": {"min": None, "max": None}}, "constraint name_count has neither"),
        ({"name_count": {"min": 2.5}}, "constraint name_count: min and max must be whole"),
        ({"name_count": {"min": 9, "max": 8}}, "constraint name_count: min 9 is greater"),
        ({"factor_exposure_max": {"value": 0.3}}, "constraint factor_exposure_max: factors must be a list"),
        ({"factor_exposure_max": {"value": 0.3, "factors": ["beta"]}}, "factor 'beta' is unknown"),
        ({"factor_exposure_max": {"value": 0.3, "factors": [[]]}}, "factor list is unknown"),
        ({"factor_exposure_max": {"value": 0.3, "factors": ["smb", "smb"]}}, "names a factor twice"),
        # Limits that exclude each other on any universe.
        ({"position_limit_min": {"value": 0.21}}, "position_limit_min and position_limit_max exclude"),
        ({"position_limit_min": {"value": 0.15}}, "name_count and position_limit_min exclude"),
        ({"gross_exposure_max": {"value": 0.9}}, "gross_exposure_max and cash_max exclude"),
        ({"position_limit_min": {"value": 0.1}, "hhi_max": {"value": 0.07}}, "name_count and hhi_max exclude"),
        (
            {"beta_range": {"min": 0.8, "max": 1.2}, "factor_exposure_max": {"factors": ["mkt_rf"], "value": 0.5}},
            "beta_range and factor_exposure_max exclude",
        ),
    ],
)
def test_refuses_naming_the_constraint(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as refused:
        mandate_from(mandate_json(**changes))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("data", [None, [], {}, {"constraints": []}, {"constraints": "x"}, {"constraints": [1]}])
def test_refuses_what_is_no_mandate(data: Any) -> None:
    with pytest.raises(InputError, match="mandate"):
        mandate_from(data)


def test_refuses_a_repeated_type() -> None:
    data = mandate_json()
    data["constraints"].append({"type": "hhi_max", "value": 0.1})
    with pytest.raises(InputError, match="constraint hhi_max is given 2 times"):
        mandate_from(data)


@pytest.mark.parametrize(
    ("names", "changes", "message"),
    [
        (7, {}, "name_count requires 8 holdings of a universe of 7"),
        # 30 names at 3 % are 90 %, and 8 % in cash are allowed: 2 % have no place.
        (30, {"position_limit_max": {"value": 0.03}, "cash_max": {"value": 0.08}}, "position_limit_max and cash_max"),
        (30, {"hhi_max": {"value": 0.03}, "cash_max": {"value": 0.0}}, "hhi_max and cash_max"),
        # Four holdings at 20 %, and 36 names too small to count at 0.1 % each, are 83.6 %.
        (
            40,
            {"name_count": {"max": 4}, "cash_max": {"value": 0.1}, "position_limit_min": None, "hhi_max": None},
            "position_limit_max and cash_max",
        ),
    ],
)
def test_check_knows_the_size_of_the_universe(names: int, changes: dict[str, Any], message: str) -> None:
    mandate = mandate_from(mandate_json(**changes))
    with pytest.raises(InputError, match=message):
        mandate.check(names)


def test_names_too_small_to_count_may_fill_the_rest() -> None:
    changes = {"name_count": {"max": 4}, "cash_max": {"value": 0.1}, "position_limit_min": None, "hhi_max": None}
    mandate_from(mandate_json(**changes)).check(104)


def test_limits_that_just_touch_are_no_contradiction() -> None:
    changes = {
        "position_limit_min": {"value": 0.1},
        "position_limit_max": {"value": 0.1},
        "name_count": {"min": 10, "max": 10},
        "hhi_max": {"value": 0.1},
        "cash_max": {"value": 0.0},
    }
    mandate_from(mandate_json(**changes)).check(10)


@pytest.mark.skipif(not SAMPLE.exists(), reason=f"{SAMPLE} is absent")
def test_the_published_quant_mandate_cannot_hold_thirty_names() -> None:
    """3 % a name and HHI < 0.03 over 30 names (release_defects.md, row 9); nothing says how much cash it may hold."""
    published = json.loads((SAMPLE / "constructed/mandates/mandate_quant.json").read_text())
    rows = [row for row in published["constraints"] if row["type"] != "factor_exposure_max"]
    invested = {"mandate_id": "quant", "constraints": [*rows, {"type": "cash_max", "value": 0.0}]}
    with pytest.raises(InputError, match="position_limit_max and cash_max exclude"):
        mandate_from(invested).check(30)
    mandate_from(invested).check(34)
