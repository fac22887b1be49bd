"""Rows that say something of a period, as arrays, and which of them were current on a day.

Rows that say the same thing stand together in order of filing; what was current on a day is the last of them filed by
then. A question takes NumPy operations on the rows of one company and no table operation.
"""

from collections.abc import Sequence
from datetime import date
from typing import Any, NamedTuple, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from finskillbench.arrays import Booleans, Integers
from finskillbench.panels.filings.rows import written

_1970 = date(1970, 1, 1).toordinal()
_ALWAYS = np.iinfo(np.int32).min
"""The start of an instant."""

Places = NDArray[np.intp]


class Span(NamedTuple):
    """First and last day, since 1970."""

    first: int
    last: int


def ordinal(day: date) -> int:
    """Days since 1970."""
    return day.toordinal() - _1970


class _Dates(dict[int, str | None]):
    """ISO text by days since 1970, made when first asked for; None for the start of an instant."""

    def __missing__(self, day: int) -> str:
        self[day] = text = date.fromordinal(day + _1970).isoformat()
        return text


ISO = _Dates({_ALWAYS: None})


class Texts:
    """A column of strings, whole numbers or booleans: codes (N,) into `names`; null is the last of them, None."""

    def __init__(self, column: pl.Series) -> None:
        arrow = cast("Any", column.to_arrow())  # pyarrow has no types
        encoded = arrow.dictionary_encode()
        self.names = np.array([*encoded.dictionary.to_pylist(), None], dtype=object)
        # By polars: pyarrow would import pandas for it, which takes a second.
        codes = pl.Series(encoded.indices).fill_null(len(self.names) - 1).to_numpy()
        self.codes: Integers = codes.astype(np.min_scalar_type(len(self.names)))

    def at(self, places: Places) -> list[Any]:
        """The values of some rows."""
        return self.names[self.codes[places]].tolist()

    def among(self, places: Places, wanted: set[str]) -> Booleans:
        """Of some rows, whether the value of each is one of those wanted."""
        return np.array([name in wanted for name in self.names])[self.codes[places]]

    def present(self, places: Places) -> set[Any]:
        """The distinct values of some rows, without null."""
        counts = np.bincount(self.codes[places], minlength=len(self.names))
        return {self.names[code] for code in np.flatnonzero(counts[:-1]).tolist()}


class PeriodTable:
    """Rows that say something of a period, as arrays (N,) in order of company, subject and filing.

    Parameters
    ----------
    frame : the rows.
    subject : what a row is about, the company first; of one subject only what was filed last is current.
    later : what orders the rows of a subject.
    together : rows of one subject that are equal in `later` are current together; else each row is for itself.
    """

    def __init__(
        self,
        frame: pl.DataFrame,
        subject: Sequence[str],
        later: Sequence[str],
        *,
        together: bool = False,
    ) -> None:
        frame = in_order(frame, (*subject, *later))
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
        """Places of the rows of a company that were current on a day: nothing filed after it is among them."""
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
        """Those of some rows whose period ends in a span, of a form (and its amendments) and a duration."""
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
        """Rows in the order of showing: the latest end first, then by what they are about, the longer period first."""
        return places[np.argsort(-self.end[places], kind="stable")]

    def rows(self, places: Places, fields: Sequence[str]) -> list[dict[str, Any]]:
        """Rows as JSON objects, in the order given; what is not known is null."""
        return written(fields, [self._values(name, places) for name in fields])

    def _values(self, name: str, places: Places) -> list[Any]:
        if name in self.texts:
            return self.texts[name].at(places)
        values = getattr(self, name)[places].tolist()
        if name == "value":
            return [None if value != value else value for value in values]  # NaN
        return list(map(ISO.__getitem__, values))


def in_order(frame: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """The rows in order of some columns, an instant before every period; panels are, and are not copied."""
    keys = [pl.col(name).fill_null(date.min) if name == "start" else pl.col(name) for name in names]
    if frame.select(pl.struct(keys)).to_series().is_sorted():
        return frame
    return frame.sort(keys, maintain_order=True)


def _runs(frame: pl.DataFrame, names: Sequence[str]) -> NDArray[np.uint32]:
    """The number (N,) of the run of rows, equal in some columns, that each row lies in."""
    return frame.select(pl.struct(names).rle_id()).to_series().to_numpy()


def runs_by_name(column: pl.Series) -> dict[str, tuple[int, int]]:
    """Where the rows of each name lie, first and one after the last; a name's rows stand together."""
    runs = column.rle().struct.unnest()
    lengths = runs["len"].to_numpy()
    stops = np.cumsum(lengths, dtype=np.int64)
    places = zip((stops - lengths).tolist(), stops.tolist(), strict=True)
    return dict(zip(runs["value"].to_list(), places, strict=True))
