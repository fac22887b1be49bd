"""Rows of filings as JSON objects: which fields they carry, and how many of them are made at once.

An episode holds thousands of rows and an edition millions: a literal takes a third of the time of
`dict(zip(fields, row))`, which was a tenth of a build.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

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
