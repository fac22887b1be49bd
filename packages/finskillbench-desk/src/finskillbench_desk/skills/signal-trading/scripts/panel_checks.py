"""Check the columns of a panel of sources before estimation: units, deliveries, correlation.

Payload: panel, today, names, sources (inject all four); least_likeness (0.7 if left out). Other keys are refused.
Result: jumps (a source whose dispersion over names changes by a factor of three or more from one quarter to the next,
with quarter and ratio; the quarter after the last is today), not_delivered (sources whose values in today are those of
the last quarter for every name), alike (groups of sources whose scores have at least that correlation), since (sources
whose record began after quarter 1 by the table sources, by quarter). Nothing is repaired.
"""

from typing import Any

import numpy as np

from finskillbench.engines.fields import listed, mapping, number, refuse_unknown, require
from finskillbench.errors import InputError
from finskillbench.sandbox.script import cli, rounded
from finskillbench_desk.engines.source_tables import column, scale_of, texts, values_of

_KEYS = ("panel", "today", "names", "sources", "least_likeness")
_JUMP = 3.0


def main(payload: dict[str, Any]) -> dict[str, Any]:
    """Measure dispersion, repetition and correlation of every column."""
    require(payload, "panel", "today", "names", "sources")
    refuse_unknown(payload, _KEYS, "panel_checks")
    least = number(payload, "least_likeness", "panel_checks", default=0.7)
    if not 0 < least <= 1:
        raise InputError(f"panel_checks: least_likeness must be above 0 and at most 1, not {least:g}")
    tickers = texts(mapping(payload, "names"), "ticker", "names")
    history, sources = values_of(payload, "panel", tickers)
    today, delivered = values_of(payload, "today", tickers)
    if delivered != sources:
        apart = sorted(set(delivered) ^ set(sources)) or ["the order of columns"]
        raise InputError(f"today and panel differ in {listed(apart[:3])}; inject both tables whole")
    values = np.concatenate([history, today]) / scale_of(payload, sources)
    spread = values.std(axis=1)
    ratio = spread[1:] / np.maximum(spread[:-1], 1e-12)
    jumps: list[dict[str, Any]] = [
        {"source": sources[column], "quarter": quarter + 2, "ratio": float(ratio[quarter, column])}
        for quarter, column in np.argwhere((ratio > _JUMP) | (ratio < 1 / _JUMP)).tolist()
    ]
    repeated = (values[-1] == values[-2]).all(axis=0)
    table = mapping(payload, "sources")
    known = texts(table, "source", "sources")
    since: dict[str, list[str]] = {}
    for name, first in zip(known, column(table, "since", "sources", len(known)).tolist(), strict=True):
        if first > 1:
            since.setdefault(str(int(first)), []).append(name)
    return rounded(
        {
            "jumps": jumps,
            "not_delivered": [name for name, same in zip(sources, repeated, strict=True) if same],
            "alike": _alike(values[:-1], sources, least),
            "since": since,
            "used": {"quarters": len(history), "names": len(tickers), "sources": len(sources)},
        }
    )


def _alike(values: Any, sources: tuple[str, ...], least: float) -> list[list[str]]:
    """Groups of sources linked by correlations of at least `least`, each with more than one."""
    flat = values.reshape(-1, len(sources))
    close = np.abs(np.corrcoef(flat, rowvar=False)) >= least
    left, groups = set(range(len(sources))), list[list[str]]()
    while left:
        group, fresh = set[int](), {left.pop()}
        while fresh:
            group |= fresh
            fresh = {int(other) for one in fresh for other in np.flatnonzero(close[one])} - group
        left -= group
        if len(group) > 1:
            groups.append([sources[column] for column in sorted(group)])
    return sorted(groups)


if __name__ == "__main__":
    cli(main)
