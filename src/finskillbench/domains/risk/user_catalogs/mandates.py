"""User mandates (`mandates.json`); limits stay as stated unless the file or a mandate has a `room`."""

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
from finskillbench.engines.risk.mandate import ConstraintKind, mandate_from
from finskillbench.episode import JsonObject
from finskillbench.errors import InputError, SourceError
from finskillbench.panels import Panels
from finskillbench.scoring.values import as_object, objects
from finskillbench.sources.catalog.document import Document, Identity, Place, Title, short_json, within

_STRICT = ConfigDict(strict=True, extra="forbid")
MOST = 40
"""Most mandates of a file; each is fitted to every date."""

_OF_NAV = "write a fraction of NAV, 0.08 for 8 %"
_Share = Annotated[float, within(1e-4, 1, _OF_NAV)]
_ShareOrNone = Annotated[float, within(0, 1, _OF_NAV)]
_Error = Annotated[float, within(1e-4, 1, "write a decimal per year, 0.03 for 3 %")]
_Beta = Annotated[float, within(-5, 5, "write a beta, 1 for the market's own")]
_Tilt = Annotated[float, within(1e-3, 5, "write a beta, 0.3 for instance")]
_Gross = Annotated[float, within(0.01, 10, "write a multiple of NAV, 1.3 for 130 %")]
_Count = Annotated[int, within(1, 3000, "write a number of holdings")] | None
_Headroom = Annotated[float, within(0, 1, "write it in the unit of its limit, 0.02 for 2 % of NAV")]
_Factors = Annotated[list[Literal["mkt_rf", "smb", "hml", "rmw", "cma", "mom"]], Field(min_length=1)]

_FIELDS: Mapping[ConstraintKind, Mapping[str, TypeAdapter[Any]]] = {
    ConstraintKind.LONG_ONLY: {"value": TypeAdapter(Literal[True])},
    ConstraintKind.POSITION_LIMIT_MAX: {"value": TypeAdapter(_Share)},
    ConstraintKind.POSITION_LIMIT_MIN: {"value": TypeAdapter(_Share)},
    ConstraintKind.SECTOR_LIMIT_MAX: {"value": TypeAdapter(_Share)},
    ConstraintKind.TRACKING_ERROR_MAX: {"value": TypeAdapter(_Error)},
    ConstraintKind.BETA_RANGE: {"min": TypeAdapter(_Beta), "max": TypeAdapter(_Beta)},
    ConstraintKind.FACTOR_EXPOSURE_MAX: {"factors": TypeAdapter(_Factors), "value": TypeAdapter(_Tilt)},
    ConstraintKind.TURNOVER_MAX_MONTHLY: {"value": TypeAdapter(_ShareOrNone)},
    ConstraintKind.CASH_MAX: {"value": TypeAdapter(_ShareOrNone)},
    ConstraintKind.GROSS_EXPOSURE_MAX: {"value": TypeAdapter(_Gross)},
    ConstraintKind.HHI_MAX: {"value": TypeAdapter(_Share)},
    ConstraintKind.NAME_COUNT: {"min": TypeAdapter(_Count), "max": TypeAdapter(_Count)},
}
"""Fields of each kind of constraint, without its type."""


class _HeadroomByKind(TypedDict, total=False):
    """Least margin above the benchmark by kind of limit."""

    __pydantic_config__ = _STRICT  # pyright: ignore[reportGeneralTypeIssues] - read by pydantic

    position_limit_max: _Headroom
    sector_limit_max: _Headroom
    hhi_max: _Headroom
    factor_exposure_max: _Headroom
    beta_range: _Headroom


class _Entry(TypedDict):
    """Mandate of the file; constraints are validated by type."""

    __pydantic_config__ = _STRICT  # pyright: ignore[reportGeneralTypeIssues] - read by pydantic

    mandate_id: Identity
    name: Title
    tier: Literal["easy", "medium", "hard"]
    room: NotRequired[_HeadroomByKind]
    constraints: Annotated[list[dict[str, Any]], Field(min_length=1)]


class _File(TypedDict):
    __pydantic_config__ = _STRICT  # pyright: ignore[reportGeneralTypeIssues] - read by pydantic

    about: NotRequired[str]
    extends: NotRequired[bool]
    room: NotRequired[_HeadroomByKind]
    mandates: Annotated[list[_Entry], Field(min_length=1, max_length=MOST)]


_FILE = TypeAdapter(_File)


@dataclass(frozen=True)
class UserMandates:
    """Mandates of a file, `extends` to keep the built-in ones, and their locations by id."""

    entries: tuple[MandateEntry, ...]
    extends: bool
    places: Mapping[str, str] = field(repr=False)


def _read(files: Mapping[str, bytes]) -> UserMandates:
    ((name, data),) = files.items()
    document = Document(name, data)
    parsed = document.typed(_FILE, document.value)
    for place, _ in document.items("mandates"):
        for limit_at, limit in document.items(*place, "constraints"):
            _check_limit(document, limit, limit_at)
    if parsed is not None:
        _check(document, parsed)
    document.mistakes.raise_if_any()
    table = cast("_File", parsed)
    places = {one["mandate_id"]: document.where(("mandates", at)) for at, one in enumerate(table["mandates"])}
    entries = tuple(_entry(one, table.get("room")) for one in table["mandates"])
    return UserMandates(entries, table.get("extends", False), places)


def _check_limit(document: Document, row: dict[str, Any], place: Place) -> None:
    kind = row.get("type")
    if kind not in set(ConstraintKind):
        document.add((*place, "type"), f"is {short_json(kind)}", f"choose one of {', '.join(ConstraintKind)}")
        return
    fields = _FIELDS[ConstraintKind(kind)]
    document.check_fields(row, {"type", *fields}, place)
    for name, adapter in fields.items():
        if name in row:
            document.typed(adapter, row[name], (*place, name))
        elif kind != ConstraintKind.NAME_COUNT:
            document.add((*place, name), "is missing", "add it")


def _check(document: Document, parsed: _File) -> None:
    """Check ids and the consistency of limits."""
    if not parsed.get("extends") and all(len(one["constraints"]) <= LEAST["failing"] for one in parsed["mandates"]):
        problem = f"no mandate has more than {LEAST['failing']} constraints, the number that a drawn portfolio breaks"
        document.add(("mandates",), problem, 'add one with more, or "extends": true to keep the built-in ones')
    read, seen = not document.mistakes.found, dict[str, int]()
    for at, entry in enumerate(parsed["mandates"]):
        place, identity = ("mandates", at), entry["mandate_id"]
        if identity in seen:
            document.add((*place, "mandate_id"), f"{identity} is also mandates[{seen[identity]}]", "use a different id")
        seen.setdefault(identity, at)
        try:
            mandate_from(entry)
        except InputError as error:
            problem, _, remedy = str(error).removeprefix("mandate: ").rpartition("; ")
            if read:  # the type check already reports it otherwise
                document.add((*place, "constraints"), problem, remedy)


def _entry(entry: _Entry, file_headroom: _HeadroomByKind | None) -> MandateEntry:
    """Add the margins of mandate and file, or mark the mandate `as_stated`."""
    entry_headroom = entry.get("room")
    if entry_headroom is None and file_headroom is None:
        return cast("MandateEntry", {**entry, "as_stated": True})
    return cast(
        "MandateEntry",
        {**entry, "room": {**mandate_catalog()["room"], **(file_headroom or {}), **(entry_headroom or {})}},
    )


def mandates_in(catalog: Catalog) -> MandateCatalog:
    """Return built-in and user mandates; the user's replace those with the same id."""
    built_in, user_file = mandate_catalog(), catalog.of(MANDATES)
    if user_file is None:
        return built_in
    replaced = set(user_file.places)
    kept = [one for one in built_in["mandates"] if user_file.extends and one["mandate_id"] not in replaced]
    return {**built_in, "mandates": [*kept, *user_file.entries]}


def user_mandates(manifest: JsonObject) -> set[str]:
    """Return the mandate ids that a user added to an edition."""
    if MANDATES.name not in as_object(as_object(manifest.get("catalog")).get("files")):
        return set()
    built_in = mandate_catalog()["mandates"]
    stated = objects(as_object(as_object(manifest.get("parameters")).get("mandates")).get("mandates"))
    return {str(one.get("mandate_id")) for one in stated if one not in built_in}


def _examine(user_file: UserMandates, panels: Panels, catalog: Catalog) -> list[str]:
    """Return the infeasible mandates, each with its first such date."""
    stated, found = mandates_in(catalog), dict[str, str]()
    for day in panels.risk_dates:
        market = panels.snapshot(day)
        for entry in user_file.entries:
            name = entry["mandate_id"]
            if name not in found:
                try:
                    fit(entry, day, market, stated, user_file.places[name])
                except SourceError as error:
                    found[name] = str(error)
    return list(found.values())


def _example() -> Mapping[str, str]:
    return {"mandates.json": read_catalog_text("finskillbench.domains.risk", "mandates.json")}


MANDATES = CatalogFile("mandates.json", _read, _example, examine=_examine)
