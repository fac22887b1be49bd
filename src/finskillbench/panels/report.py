"""What building the panels found: counts, flags and notes, as plain data."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date


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
    first_session, last_session, sessions : the range of sessions and their number; None and 0 without prices.
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
    unusable : which companies' facts cannot be used, with the reason and the remedy, one sentence each.
    """

    first_session: date | None
    last_session: date | None
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
    unusable: tuple[str, ...] = ()
