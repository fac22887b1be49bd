"""An answer with its numbers rounded."""

from __future__ import annotations

from typing import Any


def rounded(value: Any, digits: int) -> Any:
    """The JSON value with every float at so many significant digits."""
    if isinstance(value, float):
        return float(f"{value:.{digits}g}")
    if isinstance(value, dict):
        return {key: rounded(one, digits) for key, one in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list):
        return [rounded(one, digits) for one in value]  # pyright: ignore[reportUnknownVariableType]
    return value
