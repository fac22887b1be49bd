"""Measure how fast signals decay, and their correlation with the next returns in each span of the history.

Payload: history (week, ticker, a column per signal, next_return), signals (names, or a map by name), signal_unit and
return_unit (stored values for a signal of 1, a return of 1); news if there is any; spans (3) of the history. Other
keys are refused.
Result per signal: autocorrelation from week to week and the half-life in weeks that it implies; deviation; the
correlation with the next return relative to the week's mean, for each span with its standard error if names were
independent; the signal that it resembles most, with the correlation. Nothing is shrunk and nothing is left out.
"""

from typing import Any

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.engines.fields import number, refuse_unknown
from finskillbench.errors import InputError
from finskillbench.sandbox.script import cli, rounded
from finskillbench_desk.engines.panel_table import panel_of

_KEYS = ("history", "signals", "signal_unit", "return_unit", "news", "spans")


def main(payload: dict[str, Any]) -> dict[str, Any]:
    """Measure every signal alone."""
    refuse_unknown(payload, _KEYS, "signal_decay")
    panel = panel_of(payload)
    count = number(payload, "spans", "signal_decay", min(3, len(panel.weeks)))
    if count != int(count) or not 1 <= count <= len(panel.weeks):
        raise InputError(f"signal_decay: spans must be a whole number from 1 to {len(panel.weeks)}, not {count:g}")
    spans = np.array_split(np.arange(len(panel.weeks)), int(count))
    flat = panel.signals.reshape(-1, len(panel.names))
    alike = np.corrcoef(flat.T) - np.eye(len(panel.names))
    later, earlier = panel.signals[1:], panel.signals[:-1]
    decay = (later * earlier).sum(axis=(0, 1)) / np.maximum((earlier**2).sum(axis=(0, 1)), 1e-300)
    measured: dict[str, Any] = {}
    for place, name in enumerate(panel.names):
        twin = int(np.abs(alike[place]).argmax())
        share = float(decay[place])
        measured[name] = {
            "autocorrelation": share,
            "half_life": float(np.log(0.5) / np.log(share)) if 0 < share < 1 else None,
            "deviation": float(flat[:, place].std()),
            "spans": [_span(panel.weeks[part], panel.signals[part, :, place], panel.returns[part]) for part in spans],
            "resembles": {"signal": panel.names[twin], "correlation": float(alike[place, twin])},
        }
    return rounded({"signals": measured, "used": {"weeks": len(panel.weeks), "names": len(panel.tickers)}})


def _span(weeks: Any, signal: Floats, returns: Floats) -> dict[str, Any]:
    """The correlation of a signal with the next return, both relative to the mean of the week."""
    x, y = (part - part.mean(axis=1, keepdims=True) for part in (signal, returns))
    correlation = float((x * y).sum() / max(float(np.sqrt((x**2).sum() * (y**2).sum())), 1e-300))
    return {
        "first_week": int(weeks[0]),
        "last_week": int(weeks[-1]),
        "correlation": correlation,
        "standard_error": float(1 / np.sqrt(x.size)),
    }


if __name__ == "__main__":
    cli(main)
