"""Estimate the joint value of signals: one regression of a panel's returns on all, under a known risk model.

Payload: history, signals, signal_unit, return_unit, names, factors (as signal_decay.py and decay_target.py take them);
method, one of least_squares (nothing shrunk), ridge (a normal prior of mean 0 with prior_deviation) and group_variance
(the prior variance of each group is estimated from the panel; groups: signal to group). prior_shape (signal to number)
gives the relative prior deviations of signals, 1 for all where it is absent; from_week (signal to week) leaves out
the values of a column before that week; last_week (a week) leaves out all later rows; news adds the rows of later
weeks. Other keys are refused.
A coefficient is the expected return, in units of the name's specific volatility, per unit of the signal.
Result: coefficient, standard error by least squares, and what was used; prior deviations and log evidence against
coefficients of 0 where a prior was used. Numbers have ten decimals.
"""

from typing import Any

import numpy as np

from finskillbench.engines.fields import mapping, number, refuse_unknown, require
from finskillbench.errors import InputError
from finskillbench.sandbox.script import cli, rounded
from finskillbench_desk.engines.panel import Sums, group_variances, least_squares, posterior, sums
from finskillbench_desk.engines.panel_table import by_signal, names_of, optional_table, panel_of

_KEYS = (
    *("history", "signals", "signal_unit", "return_unit", "news", "names", "factors"),
    *("method", "prior_deviation", "prior_shape", "groups", "from_week", "last_week"),
)
_METHODS = ("least_squares", "ridge", "group_variance")


def main(payload: dict[str, Any]) -> dict[str, Any]:
    """Regress, and shrink by the stated method."""
    refuse_unknown(payload, _KEYS, "signal_worth")
    require(payload, "method")
    method = payload["method"]
    if method not in _METHODS:
        raise InputError(f"method must be one of {', '.join(_METHODS)}, not {method!r:.40}")
    names, panel = names_of(payload), panel_of(payload)
    if panel.tickers != names.tickers:
        raise InputError("history and names do not list the same names in the same order; inject both as they are")
    first = optional_table(payload, "from_week") or {}
    scale = names.specific
    kept = np.asarray(panel.weeks) <= number(payload, "last_week", "signal_worth", float(panel.weeks[-1]))
    if not kept.any():
        raise InputError(f"signal_worth: last_week is before the first week of the history, {panel.weeks[0]}")
    values, returns = panel.only_from(first).signals[kept], panel.returns[kept] / scale
    of = sums(values, returns, names.covariance / scale[:, None] / scale)
    plain, covariance = least_squares(of)
    result: dict[str, Any] = {
        "standard_error": dict(zip(panel.names, np.sqrt(np.diag(covariance)).tolist(), strict=True)),
        "used": {"method": method, "weeks": int(kept.sum()), "from_week": dict(first)},
    }
    worth = plain
    if method != "least_squares":
        deviations = _prior(payload, method, panel.names, of)
        worth, evidence = posterior(of, deviations**2)
        result["prior_deviation"] = dict(zip(panel.names, deviations.tolist(), strict=True))
        result["log_evidence"] = evidence
    return rounded({"coefficient": dict(zip(panel.names, worth.tolist(), strict=True)), **result})


def _prior(payload: dict[str, Any], method: str, names: tuple[str, ...], of: Sums) -> Any:
    """(k,) prior standard deviations."""
    shape = np.ones(len(names))
    if (stated := optional_table(payload, "prior_shape")) is not None:
        shape = by_signal(stated, names, "prior_shape")
    if (shape < 0).any():
        raise InputError("prior_shape: a number is 0 for a signal that is switched off, else positive")
    if method == "ridge":
        if (deviation := number(payload, "prior_deviation", "ridge")) <= 0:
            raise InputError("ridge: prior_deviation must be positive")
        return deviation * shape
    groups = mapping(payload, "groups")
    refuse_unknown(groups, names, "groups")
    missing = [name for name in names if name not in groups]
    if missing:
        raise InputError(f"groups does not say of {missing[0]} which group it is of")
    labels = sorted({str(groups[name]) for name in names})
    member = np.array([labels.index(str(groups[name])) for name in names], dtype=float)
    shaped = Sums(of.information * np.outer(shape, shape), of.score * shape)
    return np.sqrt(group_variances(shaped, member)) * shape


if __name__ == "__main__":
    cli(main)
