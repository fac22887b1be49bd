"""Weigh hypotheses of which at most one holds, and shrink the estimate of each: Bayes' rule with normal priors.

Payload: hypotheses, a list of {"group", "name", "estimate", "standard_error", "probability", "mean", "deviation",
"counts"}: within a group exactly one holds or none does; `probability` is its chance before the data (the remainder of
a group is the chance that none holds), `mean` and `deviation` its normal prior of the coefficient (mean 0 if left out),
`counts` false for one that explains the past but does not hold now (true if left out). `estimate` and
`standard_error` are least squares by that hypothesis alone, all of one group on the same data. Other keys are refused.
Result: by group `none` (chance that no listed hypothesis holds), hypotheses with `chance` and `effect` (coefficient if
it holds), and `expected` by name: the sum over hypotheses that count of chance times effect, with its `variance`.
"""

from typing import Any

import numpy as np

from finskillbench.engines.fields import number, refuse_unknown, require, table_of
from finskillbench.errors import InputError
from finskillbench.sandbox.script import cli, rounded
from finskillbench_desk.engines.source_tables import entries
from finskillbench_desk.engines.sources import evidence

_KEYS = ("group", "name", "estimate", "standard_error", "probability", "mean", "deviation", "counts")


def main(payload: dict[str, Any]) -> dict[str, Any]:
    """Chances and shrunk coefficients, group by group."""
    require(payload, "hypotheses")
    refuse_unknown(payload, ("hypotheses",), "shrink")
    groups: dict[str, list[Any]] = {}
    for entry in entries(payload, "hypotheses"):
        if (row := table_of(entry)) is None or not all(isinstance(row.get(key), str) for key in ("group", "name")):
            raise InputError(f"hypotheses must list objects with {', '.join(_KEYS)}; group and name are texts")
        refuse_unknown(row, _KEYS, "an entry of hypotheses")
        if not isinstance(row.get("counts", True), bool):
            raise InputError(f"hypotheses of {row['group']}: counts must be true or false")
        groups.setdefault(row["group"], []).append(row)
    if not groups:
        raise InputError("hypotheses is empty; list at least one")
    return rounded({"groups": {group: _weighed(group, rows) for group, rows in groups.items()}})


def _weighed(group: str, rows: list[Any]) -> dict[str, Any]:
    def column(key: str, default: float | None = None) -> Any:
        return np.array([number(row, key, f"hypotheses of {group}", default=default) for row in rows])

    prior, error, deviation = column("probability"), column("standard_error"), column("deviation")
    if not (prior > 0).all() or prior.sum() >= 1 or not (error > 0).all() or not (deviation > 0).all():
        raise InputError(
            f"hypotheses of {group}: probabilities must be positive and sum to less than 1, standard errors and "
            "deviations positive"
        )
    found = evidence(error**-2, column("estimate") * error**-2, column("mean", 0.0), deviation)
    logs = found.log_odds + np.log(prior)
    none = np.log(1 - prior.sum())
    top = max(float(logs.max()), none)
    weights = np.exp(logs - top)
    total = weights.sum() + np.exp(none - top)
    chance = weights / total
    expected: dict[str, dict[str, float]] = {}
    for row, share, mean, variance in zip(rows, chance, found.mean, found.variance, strict=True):
        if row.get("counts", True):
            part = expected.setdefault(str(row["name"]), {"effect": 0.0, "square": 0.0})
            part["effect"] += float(share * mean)
            part["square"] += float(share * (mean * mean + variance))
    return {
        "none": float(np.exp(none - top) / total),
        "hypotheses": [
            {"name": row["name"], "chance": float(share), "effect": float(mean)}
            for row, share, mean in zip(rows, chance, found.mean, strict=True)
        ],
        "expected": {
            name: {"effect": part["effect"], "variance": part["square"] - part["effect"] ** 2}
            for name, part in expected.items()
        },
    }


if __name__ == "__main__":
    cli(main)
