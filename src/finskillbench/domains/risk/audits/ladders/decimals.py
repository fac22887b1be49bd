"""An answer with its numbers rounded to decimals, as reports round fractions of NAV."""

from __future__ import annotations

from typing import Any


def to_decimals(value: Any, digits: int) -> Any:
    """The JSON value with every float at so many decimals."""
    if isinstance(value, float):
        return round(value, digits)
    if isinstance(value, dict):
        return {key: to_decimals(one, digits) for key, one in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list):
        return [to_decimals(one, digits) for one in value]  # pyright: ignore[reportUnknownVariableType]
    return value
