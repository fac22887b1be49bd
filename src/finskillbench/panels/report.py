"""What building the panels found: counts, flags and notes, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any


@dataclass(frozen=True, slots=True)
class PriceGap:
    """A run of sessions without a price inside a name's history, longer than prices are carried forward.

    `last` is the session of the last price before it and `next` that of the first after it, absent (None) where the
    prices never resume; `sessions` counts the run, of which the first five are filled and the rest are null.
    """

    symbol: str
    last: date
    next: date | None
    sessions: int


@dataclass(frozen=True, slots=True)
class Jump:
    """A one-session move beyond the limit: a corporate action adjusted wrongly, or news. Reported, never altered."""

    symbol: str
    date: date
    simple_return: float


@dataclass(frozen=True, slots=True)
class PanelReport:
    """Counts and findings of one build.

    Attributes
    ----------
    first_session, last_session, sessions : the range of sessions and their number.
    observations : sessions with an observed price, per symbol.
    forward_filled : sessions filled with the last price, per symbol (symbols with none are left out).
    gaps, jumps : see `PriceGap` and `Jump`.
    short_history : symbols with fewer observations than a regression needs.
    absent_signals : per view signal, the number of (month-end, symbol) pairs where it could not be computed.
    stale_shares : symbols whose shares were older than two reporting years at a month-end or risk date: the greatest
        age in days.
    shrinkage : Ledoit-Wolf intensity per month-end and risk date (ISO date).
    ridged : month-ends and risk dates (ISO dates) whose covariance needed a ridge.
    notes : sentences for the reader, those of the sources first.
    """

    first_session: date
    last_session: date
    sessions: int
    observations: Mapping[str, int]
    forward_filled: Mapping[str, int]
    gaps: tuple[PriceGap, ...]
    jumps: tuple[Jump, ...]
    short_history: tuple[str, ...]
    absent_signals: Mapping[str, int]
    stale_shares: Mapping[str, int]
    shrinkage: Mapping[str, float]
    ridged: tuple[str, ...]
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """JSON values: dates as ISO text, tuples as lists."""
        return _plain(asdict(self))

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> PanelReport:
        """The inverse of `to_json`."""
        fields = dict(value)
        for name in ("first_session", "last_session"):
            fields[name] = date.fromisoformat(fields[name])
        fields["gaps"] = tuple(
            PriceGap(
                gap["symbol"],
                date.fromisoformat(gap["last"]),
                date.fromisoformat(gap["next"]) if gap["next"] else None,
                gap["sessions"],
            )
            for gap in fields["gaps"]
        )
        fields["jumps"] = tuple(
            Jump(jump["symbol"], date.fromisoformat(jump["date"]), jump["simple_return"]) for jump in fields["jumps"]
        )
        for name in ("short_history", "ridged", "notes"):
            fields[name] = tuple(fields[name])
        return cls(**fields)


def _plain(value: Any) -> Any:
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value
