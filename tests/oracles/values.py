"""How the scoring oracle reads values and measures distances, written from the specification alone.

`num`, `text`, `flag`, `map_of` and `items` give None or nothing where the JSON type is wrong.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import Any

Json = dict[str, Any]


def num(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def signal(value: Any) -> float | None:
    return float(value) if isinstance(value, bool) else num(value)


def text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def map_of(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def entries(value: Any) -> list[Json]:
    """The objects of a list of objects: an element of another type is absent, and takes no place in a ranking."""
    return [item for item in items(value) if isinstance(item, dict)]


def numbers(value: Any) -> dict[str, float]:
    read = {key: num(item) for key, item in map_of(value).items()}
    return {key: number for key, number in read.items() if number is not None}


def first_numbers(source: Json, *names: str) -> dict[str, float]:
    return next((found for name in names if (found := numbers(source.get(name)))), {})


def positive(verification: Json, name: str, default: float) -> float:
    """A tolerance: it divides, so that only a number above 0 can be meant."""
    found = setting(verification, name, default)
    return found if found > 0.0 else default


def setting(verification: Json, name: str, default: float) -> float:
    found = num(verification.get(name))
    return default if found is None else found


def clip(x: float) -> float:
    return max(0.0, min(1.0, x))


def mean(values: Iterable[float]) -> float:
    listed = list(values)
    return math.fsum(listed) / len(listed) if listed else 0.0


def l2(p: dict[str, float], e: dict[str, float]) -> float:
    names = sorted({*p, *e})
    return math.dist([p.get(n, 0.0) for n in names], [e.get(n, 0.0) for n in names])


def mae(p: dict[str, float], e: dict[str, float]) -> float:
    names = sorted({*p, *e})
    return sum(abs(p.get(n, 0.0) - e.get(n, 0.0)) / len(names) for n in names)


def relative(p: float, e: float, floor: float) -> float:
    return abs(p - e) / max(abs(e), floor)


def ramp(p: float | None, e: float, tolerance: float, floor: float) -> float:
    return 0.0 if p is None else 1.0 - min(1.0, relative(p, e, floor) / tolerance)


def same(a: Any, b: Any) -> bool:
    """Equality of two JSON values: true is not 1, but 1 is 1.0."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


def f1(p: Counter[Any], e: Counter[Any]) -> float:
    sizes = p.total() + e.total()
    return 2.0 * (p & e).total() / sizes if sizes else 1.0
