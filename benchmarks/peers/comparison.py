"""Comparison of a derived answer with a label, and the search for another answer that is as good."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

Json = dict[str, Any]
Least = Callable[[np.ndarray], float]
"""Least objective after adding `lean @ w`."""
VALUE, WEIGHT, CLOSED_FORM = 1e-6, 1e-4, 1e-8
AS_GOOD, APART = 1e-8, 0.005
"""Relative objective of an answer that is as good, and the distance along a random direction that makes it another."""
TILTS = (1e-3, 3e-4, 1e-4, 1e-5)
NEAR = 1e-9
"""A verdict is decided where its value lies farther than this from the limit."""


@dataclass
class Outcome:
    """Comparison of one label with its derivation."""

    value: float = 0.0
    weights: float = 0.0
    unique: bool = False
    wrong: list[str] = field(default_factory=list)

    def compare(self, what: str, ours: float, label: float, tolerance: float = VALUE) -> None:
        """Compare two numbers, relative to the label where that is above 1e-3."""
        difference = abs(ours - label) / max(abs(label), 1e-3)
        self.value = max(self.value, difference)
        if not difference <= tolerance:
            self.wrong.append(f"{what}: derived {ours!r}, label {label!r}")

    def same(self, what: str, ours: object, label: object) -> None:
        if ours != label:
            self.wrong.append(f"{what}: derived {ours!r}, label {label!r}")

    def fields(self, path: str, ours: Any, label: Any) -> None:
        """Compare every field of an answer that was derived; further fields of a label explain it."""
        if isinstance(ours, dict):
            for key, value in cast("Json", ours).items():
                if key in label:
                    self.fields(f"{path}.{key}", value, label[key])
                else:
                    self.same(f"{path}.{key}", value, None)
        elif isinstance(ours, list):
            rows = cast("list[Any]", ours)
            self.same(f"length of {path}", len(rows), len(label))
            for place, (one, other) in enumerate(zip(_ordered(rows), _ordered(label), strict=False)):
                self.fields(f"{path}[{place}]", one, other)
        elif isinstance(ours, float):
            self.compare(path, ours, label, CLOSED_FORM)
        else:
            self.same(path, ours, label)

    def optimum(self, ours: np.ndarray, label: np.ndarray, value: float, least: Least, task_id: str) -> None:
        """Compare weights, and look for another answer that is as good."""
        self.weights = float(np.abs(ours - label).max())
        self.unique = is_unique(value, least, len(ours), task_id)
        if self.unique and self.weights > WEIGHT:
            place = int(np.argmax(np.abs(ours - label)))
            self.wrong.append(f"weight {place}: derived {ours[place]!r}, label {label[place]!r}")


def is_unique(value: float, least: Least, names: int, task_id: str) -> bool:
    """Whether no answer as good lies `APART` from another along a random direction.

    With m the least of objective + d c'w and f the optimum, c'w >= (m - f - AS_GOOD) / d at every answer as good.
    """
    direction = np.random.default_rng(zlib.crc32(task_id.encode())).standard_normal(names)
    scale = max(abs(value), 1e-3)
    for tilt in TILTS:
        lean = tilt * scale * direction
        width = (2 * value + 2 * AS_GOOD * scale - least(lean) - least(-lean)) / (tilt * scale)
        if -APART < width <= APART:  # below 0 by what the solver leaves
            return True
    return False


def _ordered(rows: list[Any]) -> list[Any]:
    """Attributions and lists of names have no order; other lists keep theirs."""
    return sorted(rows, key=lambda row: row if isinstance(row, str) else str(row.get("sector", row.get("factor", ""))))
