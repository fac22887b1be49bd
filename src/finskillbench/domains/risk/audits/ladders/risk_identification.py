"""Answers to an identification task from right to wrong: what a risk committee would act on, or act wrongly on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from finskillbench.domains.examples import GradedExample, Label
from finskillbench.domains.risk.audits.ladders.rounding import rounded
from finskillbench.domains.risk.inputs import IdentificationInput
from finskillbench.episode import JsonObject

_Row = dict[str, Any]
_CLEARLY = 1.06
"""How much larger one magnitude is than another that it cannot be taken for."""


def ladder(label: Label[IdentificationInput]) -> list[GradedExample]:
    """From the truth to an empty list."""
    truth = label.truth.expected_output
    rows: list[_Row] = [dict(row) for row in truth["top_risk_exposures"]]
    rungs = [
        GradedExample("truth", truth, 1.0, 1.0),
        GradedExample("six digits", rounded(truth, 6), 1.0, 1.0),
        GradedExample("four digits", rounded(truth, 4), 0.99, 1.0),
        GradedExample("three digits", rounded(truth, 3), 0.9, 1.0),
        GradedExample("without the last of the list", _ranked(rows[:-1]), 0.2, 0.8),
    ]
    if len(rows) > 2 and rows[0]["magnitude"] > _CLEARLY * rows[-1]["magnitude"]:
        rungs.append(GradedExample("the list in reverse", _ranked(rows[::-1]), 0.0, 0.3))
    rungs.append(
        GradedExample("magnitudes off by 0.8 per cent", _ranked([_times(row, 1.008) for row in rows]), 0.05, 0.2)
    )
    if all(abs(abs(row["evidence"]) / row["magnitude"] - 1) > _CLEARLY - 1 for row in rows):
        plain = [row | {"magnitude": abs(row["evidence"])} for row in rows]
        rungs.append(GradedExample("weights and betas for magnitudes", _ranked(plain), 0.0, 0.0))
    rungs.append(GradedExample("magnitudes in per cent", _ranked([_per_cent(row) for row in rows]), 0.0, 0.0))
    rungs.append(GradedExample("no exposures", {"top_risk_exposures": []}, 0.0, 0.0))
    return rungs


def _ranked(rows: Sequence[_Row]) -> JsonObject:
    return {"top_risk_exposures": [row | {"rank": rank} for rank, row in enumerate(rows, start=1)]}


def _times(row: _Row, factor: float) -> _Row:
    return row | {"magnitude": row["magnitude"] * factor}


def _per_cent(row: _Row) -> _Row:
    return row | {"magnitude": row["magnitude"] * 100, "evidence": row["evidence"] * 100}
