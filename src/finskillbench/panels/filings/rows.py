"""Rows of filings as arrays and JSON objects, and removal of figures tagged in a wrong scale.

JSON rows are written by dict literals, which take a third of the time of `dict(zip(fields, row))`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from statistics import median
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from finskillbench.arrays import Booleans, Integers
from finskillbench.panels.filings.concepts import PERIOD

AS_FILED = ("tag", "unit", "start", "end", "duration", "value", "form", "filed", "accession")
VISIBLE = ("metric", "start", "end", "duration", "value", "unit", "form", "filed", "accession", "tag", "derived")
"""Fields of an episode's facts."""
MEMBERS = ("axis", "segment", "start", "end", "duration", "value", "form", "filed", "accession", "derived")
MEMBERS_AS_FILED = MEMBERS[:-1]
"""Fields of segment revenue as filed, without derived rows."""

Columns: TypeAlias = Iterable[Sequence[Any]]
Row: TypeAlias = dict[str, Any]


def as_rows(fields: Sequence[str], columns: Columns) -> list[Row]:
    """Return rows as dictionaries, given the values of each field in order."""
    write = _WRITERS.get(tuple(fields))
    return write(columns) if write else [dict(zip(fields, row, strict=True)) for row in zip(*columns, strict=True)]


def _as_filed(columns: Columns) -> list[Row]:
    return [
        {
            "tag": tag,
            "unit": unit,
            "start": start,
            "end": end,
            "duration": duration,
            "value": value,
            "form": form,
            "filed": filed,
            "accession": accession,
        }
        for tag, unit, start, end, duration, value, form, filed, accession in zip(*columns, strict=True)
    ]


def _visible(columns: Columns) -> list[Row]:
    return [
        {
            "metric": metric,
            "start": start,
            "end": end,
            "duration": duration,
            "value": value,
            "unit": unit,
            "form": form,
            "filed": filed,
            "accession": accession,
            "tag": tag,
            "derived": derived,
        }
        for metric, start, end, duration, value, unit, form, filed, accession, tag, derived in zip(
            *columns, strict=True
        )
    ]


def _members(columns: Columns) -> list[Row]:
    return [
        {
            "axis": axis,
            "segment": segment,
            "start": start,
            "end": end,
            "duration": duration,
            "value": value,
            "form": form,
            "filed": filed,
            "accession": accession,
            "derived": derived,
        }
        for axis, segment, start, end, duration, value, form, filed, accession, derived in zip(*columns, strict=True)
    ]


_WRITERS: Mapping[tuple[str, ...], Callable[[Columns], list[Row]]] = MappingProxyType(
    {AS_FILED: _as_filed, VISIBLE: _visible, MEMBERS: _members}
)


_MISSCALED = (1e3, 1e6)
_SCALE_TOLERANCE = 0.005
"""Two filings agree on a figure to four digits or more; restatements are smaller than a scale."""
_PRODUCT_TOLERANCE = 0.2
"""Tolerance for few-digit earnings per share and preferred dividends."""
_MIN_EPS = 0.05
_FEWER = ((300.0, 3e3), (3e5, 3e6))
"""Drops in share count that indicate thousands or millions; splits are smaller, and counts drift."""
_RECENT_FILINGS = 8
"""Filings of two years; their median is robust to one misscaled figure."""
_MAX_EPS = 750.0
"""Maximum dollars per share and period unless the filing's own earnings per share agree (Berkshire's A share)."""


def without_misscaled(reported: pl.DataFrame, notes: list[str]) -> pl.DataFrame:
    """Drop figures that a filer tagged in thousands or millions as if they were units, with a note.

    A figure is wrong if it is a thousandth or millionth of the one filed earlier for its period. Net income that is
    such a multiple of earnings per share x diluted shares proves an error too: in shares if too small, in dollars if
    too large. Shares are also wrong if they fall by such a factor or income per share is not credible. No later filing
    is used.
    """
    row = ["symbol", "metric", "accession", "start", "end"]
    earlier = reported.select(*PERIOD, before="filed", other="value")
    pairs = reported.filter(pl.col("value") != 0).join(earlier, on=PERIOD, nulls_equal=True)
    shrunk = _near(pl.col("other") / pl.col("value"), _MISSCALED, _SCALE_TOLERANCE)
    wrong = [pairs.filter(shrunk & (pl.col("before") < pl.col("filed"))).select(row)]
    key = ["symbol", "accession", "start", "end"]
    income, per_share, shares = (
        reported.filter(pl.col("metric") == name).select(*key, pl.col("value").alias(name))
        for name in ("net_income", "eps_diluted", "diluted_shares")
    )
    product = income.join(per_share.filter(pl.col("eps_diluted").abs() >= _MIN_EPS), on=key).join(shares, on=key)
    ratios = product.group_by("symbol", "accession").agg(
        ratio=(pl.col("net_income") / (pl.col("eps_diluted") * pl.col("diluted_shares"))).abs().median()
    )
    ratio = ratios.filter(
        _near(pl.col("ratio"), (*_MISSCALED, *(1 / scale for scale in _MISSCALED)), _PRODUCT_TOLERANCE)
    )
    judged = reported.join(ratio, on=["symbol", "accession"])
    few_shares = (pl.col("ratio") > 1) & (pl.col("metric") == "diluted_shares")
    few_dollars = (pl.col("ratio") < 1) & (pl.col("unit") == "USD")
    wrong.append(judged.filter(few_shares | few_dollars).select(row))
    borne_out = ratios.filter(_near(pl.col("ratio"), (1.0,), _PRODUCT_TOLERANCE))
    rich = income.join(shares, on=key).filter(pl.col("net_income").abs() > _MAX_EPS * pl.col("diluted_shares"))
    rich = rich.join(borne_out, on=["symbol", "accession"], how="anti")
    wrong.append(rich.select(row[0], pl.lit("diluted_shares").alias("metric"), *row[2:]))
    counts = reported.filter(pl.col("unit") == "shares")
    tags = _of_fewer_shares(counts, counts.join(pl.concat(wrong), on=row, how="semi", nulls_equal=True), borne_out)
    bad = pl.concat([*wrong, counts.join(tags, on=tags.columns, how="semi").select(row)]).unique()
    counted = bad.join(reported, on=row, nulls_equal=True).group_by("symbol", "tag", "accession").len()
    for symbol, tag, accession, count in counted.sort("symbol", "accession", "tag").iter_rows():
        notes.append(f"{symbol}: {count} figures of {tag} in {accession} are in thousands or millions: left out.")
    return reported.join(bad, on=row, how="anti", nulls_equal=True)


def _of_fewer_shares(counts: pl.DataFrame, wrong: pl.DataFrame, borne_out: pl.DataFrame) -> pl.DataFrame:
    """Return symbol, metric, tag, accession with share counts out of scale with earlier filings.

    wrong : counts out of scale, excluded as references. borne_out : filings whose earnings per share agree.
    """
    key = ["symbol", "metric", "tag", "accession"]
    condemned = set(wrong.select(key).iter_rows())
    sound = set(borne_out["symbol", "accession"].iter_rows())
    filings = (
        counts.group_by(key)
        .agg(pl.col("filed").max(), least=pl.col("value").min(), usual=pl.col("value").median())
        .sort("symbol", "metric", "filed", "accession", "tag")
    )
    found: list[tuple[str, ...]] = []
    for _, series in filings.group_by("symbol", "metric", maintain_order=True):
        recent: list[float] = []
        today: list[float] = []
        day: date | None = None
        for symbol, metric, tag, accession, filed, least, usual in series.iter_rows():
            if filed != day:  # same-day filings are not compared with each other
                recent, today, day = (recent + today)[-_RECENT_FILINGS:], [], filed
            fewer = bool(recent) and any(low <= median(recent) / least <= high for low, high in _FEWER)
            agrees = metric == "diluted_shares" and (symbol, accession) in sound
            if (symbol, metric, tag, accession) in condemned or (fewer and not agrees):
                found.append((symbol, metric, tag, accession))
            else:
                today.append(usual)
    return pl.DataFrame(found, schema=dict.fromkeys(key, pl.String), orient="row")


def _near(ratio: pl.Expr, scales: tuple[float, ...], tolerance: float) -> pl.Expr:
    return pl.any_horizontal([(ratio / scale - 1).abs() < tolerance for scale in scales])


_1970 = date(1970, 1, 1).toordinal()
_ALWAYS = np.iinfo(np.int32).min

Places = NDArray[np.intp]


class Span(NamedTuple):
    """First and last day, as days since 1970."""

    first: int
    last: int


def ordinal(day: date) -> int:
    """Return the days since 1970."""
    return day.toordinal() - _1970


class _Dates(dict[int, str | None]):
    """ISO text by days since 1970, computed on first use; None for the start of an instant."""

    def __missing__(self, day: int) -> str:
        self[day] = text = date.fromordinal(day + _1970).isoformat()
        return text


ISO = _Dates({_ALWAYS: None})


class Texts:
    """Column of strings, whole numbers or booleans: codes (N,) into `names`, whose last entry is None for null."""

    def __init__(self, column: pl.Series) -> None:
        arrow = cast("Any", column.to_arrow())  # pyarrow has no types
        encoded = arrow.dictionary_encode()
        self.names = np.array([*encoded.dictionary.to_pylist(), None], dtype=object)
        # By polars: pyarrow would import pandas, which takes a second.
        codes = pl.Series(encoded.indices).fill_null(len(self.names) - 1).to_numpy()
        self.codes: Integers = codes.astype(np.min_scalar_type(len(self.names)))

    def at(self, places: Places) -> list[Any]:
        return self.names[self.codes[places]].tolist()

    def among(self, places: Places, wanted: set[str]) -> Booleans:
        """Mark the rows whose value is one of those wanted."""
        return np.array([name in wanted for name in self.names])[self.codes[places]]

    def present(self, places: Places) -> set[Any]:
        counts = np.bincount(self.codes[places], minlength=len(self.names))
        return {self.names[code] for code in np.flatnonzero(counts[:-1]).tolist()}


class PeriodTable:
    """Rows about periods as arrays (N,), in order of company, key and filing.

    subject : key columns, the company first; only the row filed last is current. later : columns that order the rows of
        a
    key; with `together`, equal ones are current together.
    """

    def __init__(
        self, frame: pl.DataFrame, subject: Sequence[str], later: Sequence[str], *, together: bool = False
    ) -> None:
        frame = sorted_by(frame, (*subject, *later))
        self.companies = runs_by_name(frame["symbol"])
        self.start, self.end, self.filed = (
            frame[name].to_physical().fill_null(_ALWAYS).to_numpy().astype(np.int32)
            for name in ("start", "end", "filed")
        )
        self.value = frame["value"].cast(pl.Float64).fill_null(np.nan).to_numpy()
        plain = {"symbol", "start", "end", "filed", "value", "parents"}
        self.texts = {name: Texts(frame[name]) for name in frame.columns if name not in plain}
        self._subject = _runs(frame, subject)
        self._source = _runs(frame, (*subject, *later)) if together else None

    def current(self, company: str, as_of: date) -> Places:
        """Return the places of a company's rows current on a day; later filings are excluded."""
        first, stop = self.companies.get(company, (0, 0))
        places = first + np.flatnonzero(self.filed[first:stop] <= ordinal(as_of))
        if not len(places):
            return places
        subjects = self._subject[places]
        ends = np.flatnonzero(np.append(subjects[1:] != subjects[:-1], True))
        last = places[ends]
        if self._source is None:
            return last
        lengths = np.diff(ends, prepend=-1)
        return places[self._source[places] == np.repeat(self._source[last], lengths)]

    def matching(self, places: Places, span: Span | None, form: str | None, duration: str | None) -> Places:
        """Filter rows by the span of their period ends, form (with its amendments) and duration."""
        if span is not None:
            ends = self.end[places]
            places = places[(ends >= span.first) & (ends <= span.last)]
        if form is not None:
            name = form.strip().upper()
            places = places[self.texts["form"].among(places, {name, f"{name}/A"})]
        if duration is not None:
            places = places[self.texts["duration"].among(places, {duration})]
        return places

    def ordered(self, places: Places) -> Places:
        """Sort rows for display: latest end first, then by key, the longer period first."""
        return places[np.argsort(-self.end[places], kind="stable")]

    def rows(self, places: Places, fields: Sequence[str]) -> list[dict[str, Any]]:
        """Return rows as JSON objects in the given order; unknown values are null."""
        return as_rows(fields, [self._values(name, places) for name in fields])

    def _values(self, name: str, places: Places) -> list[Any]:
        if name in self.texts:
            return self.texts[name].at(places)
        values = getattr(self, name)[places].tolist()
        if name == "value":
            return [None if value != value else value for value in values]  # NaN
        return list(map(ISO.__getitem__, values))


def sorted_by(frame: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Sort rows by some columns, instants before periods; frames already sorted are not copied."""
    keys = [pl.col(name).fill_null(date.min) if name == "start" else pl.col(name) for name in names]
    if frame.select(pl.struct(keys)).to_series().is_sorted():
        return frame
    return frame.sort(keys, maintain_order=True)


def _runs(frame: pl.DataFrame, names: Sequence[str]) -> NDArray[np.uint32]:
    return frame.select(pl.struct(names).rle_id()).to_series().to_numpy()


def runs_by_name(column: pl.Series) -> dict[str, tuple[int, int]]:
    """Return the first place and the one after the last of each name's contiguous rows."""
    runs = column.rle().struct.unnest()
    lengths = runs["len"].to_numpy()
    stops = np.cumsum(lengths, dtype=np.int64)
    places = zip((stops - lengths).tolist(), stops.tolist(), strict=True)
    return dict(zip(runs["value"].to_list(), places, strict=True))
