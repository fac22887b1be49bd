"""Mandates of a user's own (`mandates.json`), in the format of the built-in ones.

They are held as stated. Only where the file, or a mandate in it, says how much `room` its benchmark needs is a limit
raised as those of the built-in mandates are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NotRequired, cast

from pydantic import ConfigDict, Field, TypeAdapter
from typing_extensions import TypedDict

from finskillbench.domains.building import read_catalog_text
from finskillbench.domains.catalog import Catalog, CatalogFile
from finskillbench.domains.risk.catalogs import MandateCatalog, MandateEntry, mandate_catalog
from finskillbench.domains.risk.objects.mandates import fit
from finskillbench.domains.risk.objects.recipes import LEAST
from finskillbench.engines.risk.mandate import Kind, mandate_from
from finskillbench.episode import JsonObject
from finskillbench.errors import InputError, SourceError
from finskillbench.panels import Panels
from finskillbench.scoring.values import mapping, objects
from finskillbench.sources.catalog.document import Document, Identity, Place, Title, shown, within

_STRICT = ConfigDict(strict=True, extra="forbid")
MOST = 40
"""Mandates of a file, at most: each is fitted to every date."""

_OF_NAV = "write a fraction of NAV, 0.08 for 8 %"
_Share = Annotated[float, within(1e-4, 1, _OF_NAV)]
_ShareOrNone = Annotated[float, within(0, 1, _OF_NAV)]
_Error = Annotated[float, within(1e-4, 1, "write a decimal per year, 0.03 for 3 %")]
_Beta = Annotated[float, within(-5, 5, "write a beta, 1 for the market's own")]
_Tilt = Annotated[float, within(1e-3, 5, "write a beta, 0.3 for instance")]
_Gross = Annotated[float, within(0.01, 10, "write a multiple of NAV, 1.3 for 130 %")]
_Count = Annotated[int, within(1, 3000, "write a number of holdings")] | None
_Room = Annotated[float, within(0, 1, "write it in the unit of its limit, 0.02 for 2 % of NAV")]
_Factors = Annotated[list[Literal["mkt_rf", "smb", "hml", "rmw", "cma", "mom"]], Field(min_length=1)]

_FIELDS: Mapping[Kind, Mapping[str, TypeAdapter[Any]]] = {
    Kind.LONG_ONLY: {"value": TypeAdapter(Literal[True])},
    Kind.POSITION_LIMIT_MAX: {"value": TypeAdapter(_Share)},
    Kind.POSITION_LIMIT_MIN: {"value": TypeAdapter(_Share)},
    Kind.SECTOR_LIMIT_MAX: {"value": TypeAdapter(_Share)},
    Kind.TRACKING_ERROR_MAX: {"value": TypeAdapter(_Error)},
    Kind.BETA_RANGE: {"min": TypeAdapter(_Beta), "max": TypeAdapter(_Beta)},
    Kind.FACTOR_EXPOSURE_MAX: {"factors": TypeAdapter(_Factors), "value": TypeAdapter(_Tilt)},
    Kind.TURNOVER_MAX_MONTHLY: {"value": TypeAdapter(_ShareOrNone)},
    Kind.CASH_MAX: {"value": TypeAdapter(_ShareOrNone)},
    Kind.GROSS_EXPOSURE_MAX: {"value": TypeAdapter(_Gross)},
    Kind.HHI_MAX: {"value": TypeAdapter(_Share)},
    Kind.NAME_COUNT: {"min": TypeAdapter(_Count), "max": TypeAdapter(_Count)},
}
"""The fields of each kind of constraint, beside its type."""


class _RoomOf(TypedDict, total=False):
    """By kind of limit, how far above what the benchmark measures it lies at least."""

    __pydantic_config__ = _STRICT  # pyright: ignore[reportGeneralTypeIssues] - read by pydantic

    position_limit_max: _Room
    sector_limit_max: _Room
    hhi_max: _Room
    factor_exposure_max: _Room
    beta_range: _Room


class _Entry(TypedDict):
    """A mandate as the file has it; its constraints are read by their types."""

    __pydantic_config__ = _STRICT  # pyright: ignore[reportGeneralTypeIssues] - read by pydantic

    mandate_id: Identity
    name: Title
    tier: Literal["easy", "medium", "hard"]
    room: NotRequired[_RoomOf]
    constraints: Annotated[list[dict[str, Any]], Field(min_length=1)]


class _File(TypedDict):
    """The whole file."""

    __pydantic_config__ = _STRICT  # pyright: ignore[reportGeneralTypeIssues] - read by pydantic

    about: NotRequired[str]
    extends: NotRequired[bool]
    room: NotRequired[_RoomOf]
    mandates: Annotated[list[_Entry], Field(min_length=1, max_length=MOST)]


_FILE = TypeAdapter(_File)


@dataclass(frozen=True)
class UserMandates:
    """The mandates of a file, whether the built-in ones stay beside them, and where each stands in the file, by id."""

    entries: tuple[MandateEntry, ...]
    extends: bool
    places: Mapping[str, str] = field(repr=False)


def _read(files: Mapping[str, bytes]) -> UserMandates:
    ((name, data),) = files.items()
    document = Document(name, data)
    told = document.typed(_FILE, document.value)
    for place, _ in document.items("mandates"):
        for limit_at, limit in document.items(*place, "constraints"):
            _check_limit(document, limit, limit_at)
    if told is not None:
        _check(document, told)
    document.mistakes.raise_if_any()
    table = cast("_File", told)
    places = {one["mandate_id"]: document.where(("mandates", at)) for at, one in enumerate(table["mandates"])}
    entries = tuple(_entry(one, table.get("room")) for one in table["mandates"])
    return UserMandates(entries, table.get("extends", False), places)


def _check_limit(document: Document, row: dict[str, Any], place: Place) -> None:
    """One constraint by its type: the fields that it has, and their numbers."""
    kind = row.get("type")
    if kind not in set(Kind):
        document.add((*place, "type"), f"is {shown(kind)}", f"choose one of {', '.join(Kind)}")
        return
    fields = _FIELDS[Kind(kind)]
    document.check_fields(row, {"type", *fields}, place)
    for name, adapter in fields.items():
        if name in row:
            document.typed(adapter, row[name], (*place, name))
        elif kind != Kind.NAME_COUNT:
            document.add((*place, name), "is missing", "add it")


def _check(document: Document, told: _File) -> None:
    """What the types do not say: distinct ids, limits that go together."""
    if not told.get("extends") and all(len(one["constraints"]) <= LEAST["failing"] for one in told["mandates"]):
        problem = f"no mandate has more than {LEAST['failing']} constraints, of which drawn portfolios break so many"
        document.add(("mandates",), problem, 'add one with more, or "extends": true to keep the built-in ones')
    read, seen = not document.mistakes.found, dict[str, int]()
    for at, entry in enumerate(told["mandates"]):
        place, identity = ("mandates", at), entry["mandate_id"]
        if identity in seen:
            document.add(
                (*place, "mandate_id"), f"{identity} is also mandates[{seen[identity]}]", "give it one of its own"
            )
        seen.setdefault(identity, at)
        try:
            mandate_from(entry)
        except InputError as error:
            problem, _, remedy = str(error).removeprefix("mandate: ").rpartition("; ")
            if read:  # else it says again what its type says
                document.add((*place, "constraints"), problem, remedy)


def _entry(entry: _Entry, room: _RoomOf | None) -> MandateEntry:
    """A mandate with the room that it has, its own or that of the file; held as stated where neither says any."""
    own = entry.get("room")
    if own is None and room is None:
        return cast("MandateEntry", {**entry, "as_stated": True})
    return cast("MandateEntry", {**entry, "room": {**mandate_catalog()["room"], **(room or {}), **(own or {})}})


def mandates_in(catalog: Catalog) -> MandateCatalog:
    """The mandates of a build: the built-in ones, a user's, or both, of which a user's take the place of their ids."""
    built_in, own = mandate_catalog(), catalog.of(MANDATES)
    if own is None:
        return built_in
    replaced = set(own.places)
    kept = [one for one in built_in["mandates"] if own.extends and one["mandate_id"] not in replaced]
    return {**built_in, "mandates": [*kept, *own.entries]}


def user_mandates(manifest: JsonObject) -> set[str]:
    """The ids of the mandates of an edition that a user brought."""
    if MANDATES.name not in mapping(mapping(manifest.get("catalog")).get("files")):
        return set()
    built_in = mandate_catalog()["mandates"]
    stated = objects(mapping(mapping(manifest.get("parameters")).get("mandates")).get("mandates"))
    return {str(one.get("mandate_id")) for one in stated if one not in built_in}


def _example() -> Mapping[str, str]:
    return {"mandates.json": read_catalog_text("finskillbench.domains.risk", "mandates.json")}


def _examine(own: UserMandates, panels: Panels, catalog: Catalog) -> list[str]:
    """The mandates that some risk date leaves no portfolio for, each with the first such date."""
    stated, found = mandates_in(catalog), dict[str, str]()
    for day in panels.risk_dates:
        market = panels.snapshot(day)
        for entry in own.entries:
            name = entry["mandate_id"]
            if name not in found:
                try:
                    fit(entry, day, market, stated, own.places[name])
                except SourceError as error:
                    found[name] = str(error)
    return list(found.values())


MANDATES = CatalogFile("mandates.json", _read, _example, examine=_examine)
