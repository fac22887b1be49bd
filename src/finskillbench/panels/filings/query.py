"""Facts as they were public on a day, by company: what `query_xbrl` serves and what episodes hold by reference.

`FiledStore` answers queries: every version of what filers stated, by XBRL tag. `FactStore` holds what scripts, builds
and checks are given of each metric: a tag chosen, a quarter subtracted, the last restatement.

A query takes NumPy operations on the rows of one company and no table operation. Rows that say the same thing (metric,
start, end) stand together in order of filing; what was current on a day is the last of them filed by then. The members
of an axis change together: the latest filing replaces all that was said of a period.
"""

import re
from calendar import monthrange
from collections.abc import Sequence
from datetime import date
from typing import Any, ClassVar

import numpy as np
import polars as pl

from finskillbench.engines.accounting.periods import Duration
from finskillbench.errors import InputError
from finskillbench.panels.filings.rows import (
    AS_FILED,
    ISO,
    MEMBERS,
    MEMBERS_AS_FILED,
    VISIBLE,
    PeriodTable,
    Places,
    Span,
    in_order,
    ordinal,
    runs_by_name,
)
from finskillbench.panels.filings.segments.revenue import GEOGRAPHIC, PRODUCT
from finskillbench.panels.filings.statements import FIGURE
from finskillbench.sources.files import symbol_of

DURATIONS = tuple(duration.value for duration in Duration)
AXES = (PRODUCT, GEOGRAPHIC)
DEFAULT_LIMIT = 200
LARGEST_LIMIT = 500
"""Rows of one answer: at some 350 characters each the largest stays below the 262,144 of a tool's result."""

QUERIED = (*AS_FILED, "taxonomy", "fiscal_year", "fiscal_period")
"""Fields of a fact in an answer to a query."""

_NEAR = 12
"""Period ends, and tickers, that are named where what was asked for is not there."""
_RECENT = 4
_PERIOD = re.compile(r"(\d{4})(?:-(\d{2}))?(?:-(\d{2}))?", re.ASCII)


class FactStore:
    """Facts and segments of many companies by metric, as they were public on a day.

    Parameters
    ----------
    facts, filings, segments : the panels of these names (see `panels.filings.fundamentals`); any may be empty.
    """

    _subject: ClassVar[tuple[str, ...]] = ("symbol", "metric", "end", "start")
    _later: ClassVar[tuple[str, ...]] = ("filed",)
    _fields: ClassVar[tuple[str, ...]] = VISIBLE
    _member_fields: ClassVar[tuple[str, ...]] = MEMBERS

    def __init__(self, facts: pl.DataFrame, filings: pl.DataFrame, segments: pl.DataFrame) -> None:
        forms = filings.select("accession", "form").unique("accession", keep="first", maintain_order=True)
        self._facts = PeriodTable(facts, self._subject, self._later)
        self._segments = PeriodTable(
            segments.join(forms, on="accession", how="left", maintain_order="left"),
            ("symbol", "axis", "end", "start"),
            ("filed", "accession"),
            together=True,
        )

    @property
    def symbols(self) -> tuple[str, ...]:
        """Companies with at least one fact, sorted."""
        return tuple(self._facts.companies)

    def visible(self, symbol: str, as_of: date, since: date | None = None) -> dict[str, list[dict[str, Any]]]:
        """All current `facts` and `segments` of a company as of a day, of periods that end on or after `since`.

        Rows have the fields `VISIBLE` and `MEMBERS` (of a `FiledStore` `AS_FILED` and `MEMBERS_AS_FILED`), the latest
        period first.

        Raises
        ------
        InputError : an unknown ticker.
        """
        company = self._known(symbol)
        found: dict[str, list[dict[str, Any]]] = {}
        tables = ("facts", self._facts, self._fields), ("segments", self._segments, self._member_fields)
        for name, table, fields in tables:
            places = table.current(company, as_of)
            if since is not None:
                places = places[table.end[places] >= ordinal(since)]
            found[name] = table.rows(table.ordered(places), fields)
        return found

    def _known(self, symbol: str) -> str:
        """The ticker as the panels write it."""
        known = symbol_of(symbol.strip())
        if known in self._facts.companies:
            return known
        near = sorted(self.symbols, key=lambda name: (name[:1] != known[:1], name))[:_NEAR]
        others = len(self.symbols) - len(near)
        listed = ", ".join(near) + (f" and {others} more" if others else "")
        raise InputError(f"there are no facts of {_short(symbol)}; ask for one of: {listed or 'no company'}")


class FiledStore(FactStore):
    """What filers stated of each tag, every version of it that was public on a day; nothing is chosen or derived.

    Parameters
    ----------
    filed, filings, segments : the panels of these names.
    """

    _subject = (*FIGURE, "filed")
    _later = ("accession",)
    _fields = AS_FILED
    _member_fields = MEMBERS_AS_FILED

    def __init__(self, filed: pl.DataFrame, filings: pl.DataFrame, segments: pl.DataFrame) -> None:
        super().__init__(filed, filings, segments.filter(~pl.col("derived")))
        self._filings = _Filings(filings)

    def query(
        self,
        symbol: str,
        as_of: date,
        *,
        period: str | None = None,
        metrics: Sequence[str] | None = None,
        form: str | None = None,
        duration: str | None = None,
        axis: str | None = None,
        limit: int = DEFAULT_LIMIT,
    ) -> dict[str, Any]:
        """Facts of a company that were filed by a day, latest period first; JSON values only.

        Parameters
        ----------
        symbol : ticker, in any case, `BF.B` or `BF-B`.
        as_of : the last day on which a filing counts.
        period : the end of a period, `YYYY-MM-DD`, or the month `YYYY-MM` or year `YYYY` that it lies in.
        metrics : XBRL tags, in any case; None takes all.
        form : `10-K` takes its amendments too, `10-K/A` only those.
        duration : one of `DURATIONS`.
        axis : one of `AXES`; adds `segments`, revenue by member, under the same period, form and duration.
        limit : most facts, and most rows of segments, to return, 1 to 500.

        Returns
        -------
        `ticker`, `as_of`, `matching` (how many facts) and `facts` (ISO dates, each value in its unit); `segments` where
        asked for; `missing` (tag to reason) and `available` where something asked for is not there; `note` where
        rows were left out.

        Raises
        ------
        InputError : an unknown ticker; a period, duration, axis or limit that cannot be meant.
        """
        span = _span(period) if period is not None else None
        _refuse_other("duration", duration, DURATIONS)
        _refuse_other("axis", axis, AXES)
        if not 1 <= limit <= LARGEST_LIMIT:
            raise InputError(f"limit must lie between 1 and {LARGEST_LIMIT}, not {limit}")
        return self._answer(self._known(symbol), as_of, span, metrics, form, duration, axis, limit)

    def _answer(
        self,
        company: str,
        as_of: date,
        span: Span | None,
        metrics: Sequence[str] | None,
        form: str | None,
        duration: str | None,
        axis: str | None,
        limit: int,
    ) -> dict[str, Any]:
        """The answer to a query whose arguments can be meant."""
        facts, segments = self._facts, self._segments
        visible = facts.current(company, as_of)
        chosen = facts.matching(visible, span, form, duration)
        missing: dict[str, str] = {}
        if metrics is not None:
            chosen, missing = self._of_tags(visible, chosen, metrics)
        answer: dict[str, Any] = {
            "ticker": company,
            "as_of": as_of.isoformat(),
            "matching": len(chosen),
            "facts": facts.rows(facts.ordered(chosen)[:limit], QUERIED),
        }
        most, lacking = len(chosen), not len(chosen) or bool(missing)
        if axis is not None:
            members = segments.matching(segments.current(company, as_of), span, form, duration)
            members = members[segments.texts["axis"].among(members, {axis})]
            answer["segments"] = segments.rows(segments.ordered(members)[:limit], MEMBERS_AS_FILED)
            most, lacking = max(most, len(members)), lacking or not len(members)
        if missing:
            answer["missing"] = missing
        if lacking:
            answer["available"] = self._available(company, as_of, visible, span)
        if most > limit:
            answer["note"] = (
                f"the latest {limit} of {most} rows; narrow by period, metrics, form or duration, or raise limit (at "
                f"most {LARGEST_LIMIT})"
            )
        return answer

    def _of_tags(self, visible: Places, chosen: Places, wanted: Sequence[str]) -> tuple[Places, dict[str, str]]:
        """Those of the chosen rows that have a wanted tag, and why others of the wanted have none."""
        asked, tags = {name.strip().lower(): name for name in wanted}, self._facts.texts["tag"]
        there, known = ({tag.lower() for tag in tags.present(places)} for places in (chosen, visible))
        missing = {
            _cut(text): "on file, but not for this period, form and duration" if key in known else "not on file"
            for key, text in asked.items()
            if key not in there
        }
        return chosen[tags.among(chosen, {tag for tag in tags.names if tag and tag.lower() in asked})], missing

    def _available(self, company: str, as_of: date, visible: Places, span: Span | None) -> dict[str, Any]:
        """What there is as of a day: names, the period ends nearest to the span asked for, the latest filings."""
        flows = visible[~self._facts.texts["duration"].among(visible, {Duration.INSTANT})]  # not cover-page dates
        ends = np.unique(self._facts.end[flows if len(flows) else visible])
        if span is not None:
            ends = np.sort(ends[np.argsort(np.abs(ends - span.last), kind="stable")[:_NEAR]])
        texts, segments = self._facts.texts, self._segments
        durations = texts["duration"].present(visible)
        return {
            "tags": sorted(texts["tag"].present(visible)),
            "periods": [ISO[end] for end in ends[: -_NEAR - 1 : -1].tolist()],
            "durations": [name for name in DURATIONS if name in durations],
            "forms": sorted(texts["form"].present(visible)),
            "axes": sorted(segments.texts["axis"].present(segments.current(company, as_of))),
            "latest_filings": self._filings.latest(company, as_of),
        }

    def said(self, symbol: str, as_of: date, ends: Sequence[date]) -> dict[tuple[date, str], list[float]]:
        """(last day, tag) -> every figure that filings gave by a day of periods that end on some days."""
        facts, days = self._facts, {ordinal(end): end for end in ends}
        places = facts.current(symbol, as_of)
        places = places[np.isin(facts.end[places], list(days))]
        found: dict[tuple[date, str], list[float]] = {}
        columns = facts.end[places].tolist(), facts.texts["tag"].at(places), facts.value[places].tolist()
        for end, tag, value in zip(*columns, strict=True):
            found.setdefault((days[end], tag), []).append(value)
        return found


class _Filings:
    """The filings of all companies, each company's by day."""

    def __init__(self, frame: pl.DataFrame) -> None:
        frame = in_order(frame, ("symbol", "filed", "accession"))
        self._companies = runs_by_name(frame["symbol"])
        self._filed = frame["filed"].to_physical().to_numpy()
        self._frame = frame.select(
            "form", pl.col("period_end").dt.to_string(), pl.col("filed").dt.to_string(), "accession"
        )

    def latest(self, company: str, as_of: date) -> list[dict[str, Any]]:
        """The last few filings of a company by a day, the latest first."""
        first, stop = self._companies.get(company, (0, 0))
        after = first + int(np.searchsorted(self._filed[first:stop], ordinal(as_of), side="right"))
        recent = range(after - 1, max(first, after - _RECENT) - 1, -1)
        return [self._frame.row(place, named=True) for place in recent]


def _span(period: str) -> Span:
    """The days that a text `YYYY[-MM[-DD]]` stands for; InputError says what it should have been."""
    found = _PERIOD.fullmatch(period.strip())
    try:
        if found is None:
            raise ValueError("no period")
        year, month, day = (int(part) if part else None for part in found.groups())
        assert year is not None
        first = date(year, month or 1, day or 1)
        last = date(year, month or 12, day or monthrange(year, month or 12)[1])
    except ValueError:
        raise InputError(
            f"period {_short(period)} is not the end of a period; give YYYY-MM-DD, or the month YYYY-MM or the year "
            "YYYY it lies in"
        ) from None
    return Span(ordinal(first), ordinal(last))


def _refuse_other(name: str, value: str | None, known: Sequence[str]) -> None:
    if value is not None and value not in known:
        raise InputError(f"{name} {_short(value)} is unknown; choose one of: {', '.join(known)}")


def _short(text: str) -> str:
    return repr(_cut(text))


def _cut(text: str, limit: int = 60) -> str:
    return text if len(text) <= limit else f"{text[:limit]}..."
