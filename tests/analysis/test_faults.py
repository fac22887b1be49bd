"""Outcomes of planted faults, by hand."""

from __future__ import annotations

import json

import polars as pl
from tests.analysis.scenes import results, row

from finskillbench.analysis.faults import Outcome, concerned, fault_outcomes

NONE = list[str]()
LINES = [
    # condition, status, score, equal, loaded, failed, outcome
    ("faulty:sign", "scored", 0.0, True, ["p"], False, Outcome.FAULTY),
    ("faulty:sign", "scored", 1.0, False, ["q", "p"], False, Outcome.RIGHT_LOADED),
    ("faulty:sign+hinted", "scored", 1.0, False, ["q"], False, Outcome.RIGHT_UNLOADED),
    ("faulty:sign+forced", "scored", 1.0, False, NONE, False, Outcome.RIGHT_LOADED),
    ("faulty:sign", "incomplete_submission", 0.0, False, ["p"], False, Outcome.NO_ANSWER),
    ("faulty:sign", "scored", 0.9, False, ["p"], False, Outcome.OTHER),
    ("faulty:sign", "error", None, False, ["p"], True, None),
    ("curated", "scored", 1.0, False, ["p"], False, None),
]


def test_outcomes_by_what_was_submitted_and_loaded() -> None:
    names = ("condition", "status", "score", "equal", "skills_loaded", "failed", "expected")
    rows = pl.DataFrame([dict(zip(names, line, strict=True)) for line in LINES], schema_overrides={"score": pl.Float64})
    details = [
        json.dumps({"fault": {"package": "p", "equal": equal, "loss": 3.0, "unit": unit}})
        for equal, unit in zip(rows["equal"], ["bp", "USD"] * 4, strict=True)
    ]
    found = concerned(rows.drop("equal").with_columns(scoring_details=pl.Series(details)))
    assert found["outcome"].to_list() == [line[-1] for line in LINES[:6]]
    assert found["loss_bp"].to_list() == [3.0, None] * 3
    assert found["loss_usd"].to_list() == [None, 3.0] * 3
    assert concerned(rows.drop("equal").with_columns(scoring_details=pl.lit("{}"))).is_empty()


def test_a_loss_is_against_the_curated_condition_with_the_same_activation() -> None:
    details = json.dumps({"fault": {"package": "p", "equal": True, "loss": None, "unit": None}})
    scores = {"curated": 1.0, "curated+forced": 0.5, "faulty:sign": 0.0, "faulty:sign+forced": 0.0}
    rows = [
        row(condition, task, score, scoring_details=details if condition.startswith("faulty") else "{}")
        for condition, score in scores.items()
        for task in ("a", "b")
    ]
    losses = dict(fault_outcomes(results(*rows)).select("condition", "loss_score").rows())
    assert losses == {"faulty:sign": -1.0, "faulty:sign+forced": -0.5}
    without = results(*(each for each in rows if each["condition"].startswith("faulty")))
    assert fault_outcomes(without)["loss_score"].to_list() == [None, None]
