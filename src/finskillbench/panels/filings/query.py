"""Facts public on a day, by company.

`FiledStore` answers `query_xbrl` by XBRL tag with all versions. `FactStore` serves scripts, builds and checks by
metric. Queries use NumPy on the rows of one company. Rows of one key are contiguous in order of filing, and the last
one filed by a day is current; members of an axis are replaced together.
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
    ordinal,
    runs_by_name,
    sorted_by,
)
from finskillbench.panels.filings.segments.revenue import GEOGRAPHIC, PRODUCT
from finskillbench.panels.filings.statements import FIGURE
from finskillbench.sources.files import symbol_of

DURATIONS = tuple(duration.value for duration in Duration)
AXES = (PRODUCT, GEOGRAPHIC)
DEFAULT_LIMIT = 200
LARGEST_LIMIT = 500
"""Maximum rows of an answer: at about 350 characters each, below the 262,144 of a tool's result."""

QUERIED = (*AS_FILED, "taxonomy", "fiscal_year", "fiscal_period")

_NEAR = 12
"""Number of period ends or tickers suggested when a request matches nothing."""
_RECENT = 4
_PERIOD = re.compile(r"(\d{4})(?:-(\d{2}))?(?:-(\d{2}))?", re.ASCII)


class FactStore:
    """Facts and segments of many companies by metric, as they were public on a day; any panel may be empty."""

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
        """Return the current `facts` and `segments` of a company as of a day, of periods that end on or after `since`.

        Rows have the fields `VISIBLE` and `MEMBERS` (of a `FiledStore` `AS_FILED` and `MEMBERS_AS_FILED`), the latest
        period first. Raises InputError for an unknown ticker.
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
        """Return the ticker as spelled in the panels."""
        known = symbol_of(symbol.strip())
        if known in self._facts.companies:
            return known
        near = sorted(self.symbols, key=lambda name: (name[:1] != known[:1], name))[:_NEAR]
        remaining = len(self.symbols) - len(near)
        listed = ", ".join(near) + (f" and {remaining} more" if remaining else "")
        raise InputError(f"there are no facts of {_short(symbol)}; choose one of: {listed or 'no company'}")


class FiledStore(FactStore):
    """Figures by tag in every version public on a day, without choice or derivation."""

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
        """Return facts of a company filed by a day, latest period first; JSON values only.

        Parameters
        ----------
        symbol : ticker, in any case, `BF.B` or `BF-B`.
        as_of : last filing date included.
        period : period end `YYYY-MM-DD`, or its month `YYYY-MM` or year `YYYY`.
        metrics : XBRL tags, in any case; None takes all.
        form : `10-K` includes its amendments, `10-K/A` only those.
        duration : one of `DURATIONS`.
        axis : one of `AXES`; adds `segments`, revenue by member, with the same filters.
        limit : maximum number of facts, and of segment rows, 1 to 500.

        Returns
        -------
        `ticker`, `as_of`, `matching` (number of facts) and `facts` (ISO dates, each value in its unit); `segments` if
        requested; `missing` (tag to reason) and `available` if a request matches nothing; `note` if rows are cut.

        Raises
        ------
        InputError : an unknown ticker; an invalid period, duration, axis or limit.
        """
        span = _span(period) if period is not None else None
        _refuse_other("duration", duration, DURATIONS)
        _refuse_other("axis", axis, AXES)
        if not 1 <= limit <= LARGEST_LIMIT:
            raise InputError(f"limit must be between 1 and {LARGEST_LIMIT}, not {limit}")
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
        """Return the chosen rows with a wanted tag, and the reason for each tag without rows."""
        requested, tags = {name.strip().lower(): name for name in wanted}, self._facts.texts["tag"]
        there, known = ({tag.lower() for tag in tags.present(places)} for places in (chosen, visible))
        missing = {
            _cut(text): "on file, but not for this period, form and duration" if key in known else "not on file"
            for key, text in requested.items()
            if key not in there
        }
        return chosen[tags.among(chosen, {tag for tag in tags.names if tag and tag.lower() in requested})], missing

    def _available(self, company: str, as_of: date, visible: Places, span: Span | None) -> dict[str, Any]:
        """Return the names, period ends nearest to the span, and latest filings available on a day."""
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

    def values_by_tag(self, symbol: str, as_of: date, ends: Sequence[date]) -> dict[tuple[date, str], list[float]]:
        """Return figures by (last day, tag) filed by a day for periods ending on some days."""
        facts, days = self._facts, {ordinal(end): end for end in ends}
        places = facts.current(symbol, as_of)
        places = places[np.isin(facts.end[places], list(days))]
        found: dict[tuple[date, str], list[float]] = {}
        columns = facts.end[places].tolist(), facts.texts["tag"].at(places), facts.value[places].tolist()
        for end, tag, value in zip(*columns, strict=True):
            found.setdefault((days[end], tag), []).append(value)
        return found


class _Filings:
    def __init__(self, frame: pl.DataFrame) -> None:
        frame = sorted_by(frame, ("symbol", "filed", "accession"))
        self._companies = runs_by_name(frame["symbol"])
        self._filed = frame["filed"].to_physical().to_numpy()
        self._frame = frame.select(
            "form", pl.col("period_end").dt.to_string(), pl.col("filed").dt.to_string(), "accession"
        )

    def latest(self, company: str, as_of: date) -> list[dict[str, Any]]:
        first, stop = self._companies.get(company, (0, 0))
        after = first + int(np.searchsorted(self._filed[first:stop], ordinal(as_of), side="right"))
        recent = range(after - 1, max(first, after - _RECENT) - 1, -1)
        return [self._frame.row(place, named=True) for place in recent]


def _span(period: str) -> Span:
    """Parse `YYYY[-MM[-DD]]` into its days; InputError if invalid."""
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
            f"period {_short(period)} is not the end of a period; give its day YYYY-MM-DD, its month YYYY-MM or its "
            "year YYYY"
        ) from None
    return Span(ordinal(first), ordinal(last))


def _refuse_other(name: str, value: str | None, known: Sequence[str]) -> None:
    if value is not None and value not in known:
        raise InputError(f"{name} {_short(value)} is unknown; choose one of: {', '.join(known)}")


def _short(text: str) -> str:
    return repr(_cut(text))


def _cut(text: str, limit: int = 60) -> str:
    return text if len(text) <= limit else f"{text[:limit]}..."
