"""Regress residual returns on each source alone, industry by industry, in the windows of quarters that you name.

Payload: panel, names, factor_returns, sources (inject all four); windows, a list of [first, last] quarter (all if
left out); start, {source: first quarter that counts}; repairs, [{"source", "first", "last", "multiply"}], applied to
the values before anything else; only, a list of sources; top, how many sources of each window and industry to show (5);
positive, true to rank by t, so that a negative sign does not count (false: by |t|). Other keys are refused.
Result: for every industry the sources with the largest |t| (or t) of any window, each with estimate (return per
quarter for one score, a value divided by its scale), standard_error and t by window (null where no quarter of it
counts), by weighted least squares with the given specific volatilities, no intercept: residuals are returns less
loadings times factor returns. Out of 190 sources that are worth nothing, the largest |t| of an industry is about 3.
"""

from typing import Any

import numpy as np

from finskillbench.engines.fields import list_of, refuse_unknown
from finskillbench.errors import InputError
from finskillbench.sandbox.script import cli, rounded
from finskillbench_desk.engines.source_tables import Panel, entries, panel_from, place_of, whole

_KEYS = ("panel", "names", "factor_returns", "sources", "windows", "start", "repairs", "only", "top", "positive")
_MOST_SHOWN = 1000


def main(payload: dict[str, Any]) -> dict[str, Any]:
    """Return estimates, standard errors and t values of the strongest sources."""
    refuse_unknown(payload, _KEYS, "panel_regress")
    panel = panel_from(payload)
    quarters = len(panel.scores)
    windows = _windows(payload, quarters)
    only = [place_of(str(name), panel.sources, "only") for name in entries(payload, "only")]
    columns = np.array(only or range(len(panel.sources)))
    top = whole(payload.get("top", 5), "top", 1, _MOST_SHOWN)
    positive = payload.get("positive", False)
    if not isinstance(positive, bool):
        raise InputError("positive must be true or false")
    result: dict[str, Any] = {}
    for group in panel.groups:
        estimate, error = _fits(panel, group, windows, columns)
        t = np.nan_to_num(estimate / error)
        ranked = t if positive else np.abs(t)
        chosen = np.unique(np.argsort(-ranked, axis=1)[:, :top])
        chosen = chosen[np.argsort(-ranked[:, chosen].max(axis=0))]
        result[group] = [
            {
                "source": panel.sources[columns[place]],
                "estimate": _numbers(estimate[:, place]),
                "standard_error": _numbers(error[:, place]),
                "t": [round(value, 2) for value in t[:, place].tolist()],
            }
            for place in chosen
        ]
    used: dict[str, Any] = {"windows": windows, "sources": len(columns), "start": payload.get("start") or {}}
    return rounded({"industries": result, "used": used | {"repairs": payload.get("repairs") or []}})


def _windows(payload: dict[str, Any], quarters: int) -> list[list[int]]:
    found: list[list[int]] = []
    for entry in entries(payload, "windows") or ([1, quarters],):
        window = list_of(entry)
        if window is None or len(window) != 2:
            raise InputError(f"windows must list pairs [first, last] of quarters between 1 and {quarters}")
        first = whole(window[0], "first of a window", 1, quarters)
        found.append([first, whole(window[1], "last of a window", first, quarters)])
    return found


def _fits(panel: Panel, group: str, windows: list[list[int]], columns: Any) -> tuple[Any, Any]:
    """(W, C) estimates and standard errors of one industry; NaN where nothing counts."""
    names = panel.members(group)
    scaled = panel.scores[:, names][:, :, columns] / panel.specific[names, None]
    target = panel.residuals[:, names] / panel.specific[names]
    counts = np.arange(len(scaled))[:, None] >= panel.start[columns]
    squares = (scaled**2).sum(axis=1) * counts
    products = np.einsum("tnc,tn->tc", scaled, target) * counts
    spans = [slice(first - 1, last) for first, last in windows]
    x = np.array([squares[span].sum(axis=0) for span in spans])
    y = np.array([products[span].sum(axis=0) for span in spans])
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(x > 0, y / x, np.nan), np.where(x > 0, x**-0.5, np.nan)


def _numbers(values: Any) -> list[float | None]:
    return [round(value, 6) if np.isfinite(value) else None for value in values.tolist()]


if __name__ == "__main__":
    cli(main)
