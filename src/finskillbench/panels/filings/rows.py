"""Rows of filings as JSON objects: which fields they carry, and how many of them are made at once.

An episode holds thousands of rows and an edition millions: a literal takes a third of the time of
`dict(zip(fields, row))`, which was a tenth of a build.

Figures that a filer tagged in thousands or millions as if they were units.

Rows that say something of a period, as arrays, and which of them were current on a day.

Rows that say the same thing stand together in order of filing; what was current on a day is the last of them filed by
then. A question takes NumPy operations on the rows of one company and no table operation.
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
"""What a fact as filed carries."""
VISIBLE = ("metric", "start", "end", "duration", "value", "unit", "form", "filed", "accession", "tag", "derived")
"""What an episode's facts carry."""
MEMBERS = ("axis", "segment", "start", "end", "duration", "value", "form", "filed", "accession", "derived")
"""What revenue of a segment carries."""
MEMBERS_AS_FILED = MEMBERS[:-1]
"""The same as filed, where no row is derived."""

Columns: TypeAlias = Iterable[Sequence[Any]]
Row: TypeAlias = dict[str, Any]


def written(fields: Sequence[str], columns: Columns) -> list[Row]:
    """Rows of some fields, given the values of each field in their order."""
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
"""Two filings round one figure to four digits or more (they may be restated by less than a scale)."""
_PRODUCT_TOLERANCE = 0.2
"""Earnings per share have few digits, and preferred dividends come off net income."""
_MIN_EPS = 0.05
_FEWER = ((300.0, 3e3), (3e5, 3e6))
"""How many times fewer shares than before speak of thousands or millions: no split is so large, and counts drift."""
_RECENT_FILINGS = 8
"""Two years of filings, of which the median cannot be one figure that is itself out of scale."""
_MAX_EPS = 750.0
"""Dollars a share in one period that only a filing's own earnings per share make credible (Berkshire's A share)."""


def without_misscaled(reported: pl.DataFrame, notes: list[str]) -> pl.DataFrame:
    """Leave out figures that a filer tagged in thousands or millions as if they were units, and name them.

    Signs, none of which needs a later filing: the figure is a thousandth or a millionth of what an earlier filing says
    of the same period; or net income is so many times earnings per share x diluted shares of the filing. Of the latter
    the shares are wrong where the product is too small, the dollars where it is too large. Shares are wrong also where
    they are so many times fewer than those of any period known before, or where net income would be an incredible
    sum a share, unless the filing's earnings per share bear them out. A filing tags its shares in one scale: all
    figures of a tag fall with one.
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
    """symbol, metric, tag, accession whose numbers of shares are out of scale, filing after filing.

    counts : the reported numbers of shares.
    wrong : those known to be out of scale; they condemn their tag in the filing and are no measure of later filings.
    borne_out : symbol, accession of filings whose earnings per share agree with their diluted shares.
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
            if filed != day:  # what is filed on one day is no measure of itself
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
