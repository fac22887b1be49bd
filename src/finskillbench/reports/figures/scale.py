"""From values to pixels, and where an axis is marked."""

from __future__ import annotations

import math
from dataclasses import dataclass

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True, slots=True)
class Scale:
    """`low` lies at pixel `start` and `high` at `end`; with `log`, equal ratios are equally long."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """The pixel of a value; what lies outside is put at the end."""
        low, high, at = self.low, self.high, min(max(value, self.low), self.high)
        if self.log:
            low, high, at = math.log(low), math.log(high), math.log(at)
        part = 0.5 if high == low else (at - low) / (high - low)
        return self.start + (self.end - self.start) * part

    @property
    def ticks(self) -> list[float]:
        """Round values to mark, as many as fit: four to nine of them on a long axis."""
        room = abs(self.end - self.start)
        if not self.log:
            return ticks(self.low, self.high, min(5, int(room / 45)))
        found = log_ticks(self.low, self.high)
        return found[:: 1 + int(len(found) * 36 / room)]


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round values between two, both included where they are round."""
    if high <= low:
        return [low]
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * each for each in _STEPS if power * each >= rough * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(each * step, 12) for each in range(first, last + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """1, 2, 5 (or only 1) of every power of ten between two values."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    dense = [each * 10.0**power for power in powers for each in (1, 2, 5)]
    inside = [each for each in dense if low * (1 - 1e-9) <= each <= high * (1 + 1e-9)]
    if len(inside) > 9:
        inside = [each for each in inside if f"{each:.0e}".startswith("1")]
    return inside or [low, high]


def short(value: float) -> str:
    """A number as an axis shows it: 0.25, 40, 16k, 2.5M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"
