"""User scenarios (`scenarios.json`), calibrated like the built-in ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from string import Formatter
from typing import Annotated, Any, Literal, NotRequired, cast

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter
from typing_extensions import TypedDict

from finskillbench.arrays import FACTORS, SECTORS
from finskillbench.domains.building import read_catalog_text
from finskillbench.domains.catalog import Catalog, CatalogFile
from finskillbench.domains.risk.catalogs import ReplayEntry, ScenarioCatalog, scenario_catalog
from finskillbench.domains.risk.inputs import ScenarioInput
from finskillbench.domains.risk.objects.scenarios import contradicting_moves
from finskillbench.episode import JsonObject
from finskillbench.panels import Panels
from finskillbench.scoring.values import as_object, objects
from finskillbench.sources.catalog.document import Document, Identity, Place, Title, within

_STRICT = ConfigDict(strict=True, extra="forbid")
MOST = 40
"""Most scenarios of a kind."""
_LONGEST_DAYS = 400
_SAME = 1e-4
"""Tolerance between market shock and stated equity move."""


def _day(text: str) -> str:
    try:
        date.fromisoformat(text)
    except ValueError:
        raise ValueError("no date; write YYYY-MM-DD") from None
    return text


_Day = Annotated[str, AfterValidator(_day)]
_Shock = Annotated[float, within(-0.9, 0.9, "write a decimal, -0.05 for -5 %")]
_Move = Annotated[float, within(-5000, 5000, "write per cent, or basis points where the name ends in _bp")]
_Widening = Annotated[float, within(0, 1000, "write basis points, 80 where bid-ask spreads widen by 0.8 %")]
_Shift = Annotated[float, within(0, 0.6, "write the part of its distance to 1 by which every correlation moves")]
_Fall = Annotated[float, within(-95, -0.5, "write the market's fall in per cent, -20 for -20 %")]
_Text = Annotated[str, Field(min_length=1, max_length=1000)]


class _Replay(TypedDict):
    __pydantic_config__ = _STRICT  # pyright: ignore[reportGeneralTypeIssues] - read by pydantic

    scenario_id: Identity
    name: Title
    start: _Day
    end: _Day
    market_pct: _Fall


class _Hypothetical(TypedDict):
    __pydantic_config__ = _STRICT  # pyright: ignore[reportGeneralTypeIssues] - read by pydantic

    scenario_id: Identity
    type: NotRequired[Literal["hypothetical"]]
    name: Title
    description: _Text
    market_shocks: dict[Identity, _Move]
    factor_shocks: dict[str, _Shock]
    sector_sensitivities: dict[str, _Shock]
    spread_widening_bp: NotRequired[_Widening]
    correlation_shift: NotRequired[_Shift]


class _File(TypedDict):
    """Scenario file; `severity` and `replay_description` must equal the built-in values."""

    __pydantic_config__ = _STRICT  # pyright: ignore[reportGeneralTypeIssues] - read by pydantic

    about: NotRequired[str]
    extends: NotRequired[bool]
    severity: NotRequired[float]
    replay_description: NotRequired[str]
    replays: NotRequired[Annotated[list[_Replay], Field(max_length=MOST)]]
    hypothetical: NotRequired[Annotated[list[_Hypothetical], Field(max_length=MOST)]]


_FILE = TypeAdapter(_File)


@dataclass(frozen=True)
class UserScenarios:
    """Scenarios of a file, `extends` to keep the built-in ones, and their locations by id."""

    replays: tuple[ReplayEntry, ...]
    hypothetical: tuple[ScenarioInput, ...]
    extends: bool
    places: Mapping[str, str] = field(repr=False)


def _read(files: Mapping[str, bytes]) -> UserScenarios:
    ((name, data),) = files.items()
    document = Document(name, data)
    parsed = document.typed(_FILE, document.value)
    for place, entry in document.items("hypothetical"):
        for table, known in (("factor_shocks", FACTORS), ("sector_sensitivities", SECTORS)):
            _check_keys(document, entry.get(table), known, (*place, table))
        _check_moves(document, entry, place)
    if parsed is not None:
        _check(document, parsed)
    document.mistakes.raise_if_any()
    table = cast("_File", parsed)
    replays, hypothetical = table.get("replays", []), table.get("hypothetical", [])
    lists = (("replays", replays), ("hypothetical", hypothetical))
    places = {one["scenario_id"]: document.where((kind, at)) for kind, some in lists for at, one in enumerate(some)}
    made = tuple(cast("ScenarioInput", {"type": "hypothetical", **one}) for one in hypothetical)
    return UserScenarios(cast("tuple[ReplayEntry, ...]", tuple(replays)), made, table.get("extends", False), places)


def _check_keys(document: Document, value: object, known: tuple[str, ...], place: Place) -> None:
    if isinstance(value, dict):
        row = cast("dict[str, Any]", value)
        document.check_fields(row, known, place)
        for key in known:
            if key not in row:
                document.add((*place, key), "is missing", "add it; 0 where it does not move")


def _check_moves(document: Document, entry: JsonObject, place: Place) -> None:
    """Check that stated moves agree with the shocks and are complete."""
    moves, shocks = as_object(entry.get("market_shocks")), as_object(entry.get("factor_shocks"))
    move_place = (*place, "market_shocks", "equity_change_pct")
    equity, market = moves.get("equity_change_pct"), shocks.get("mkt_rf")
    if equity is None:
        document.add(move_place, "is missing", "add the fall of equities in per cent, -20 for -20 %")
    elif isinstance(equity, int | float) and isinstance(market, int | float):
        if not -60 <= equity <= -0.5:
            remedy = "write the fall of equities in per cent, -20 for -20 %; severe versions are 1.5 times as large"
            document.add(move_place, f"is {equity:g}, not from -60 to -0.5", remedy)
        elif abs(market - equity / 100) > _SAME:
            problem = f"is {equity:g} per cent, but factor_shocks.mkt_rf is {market:g}, or {100 * market:g} per cent"
            document.add(move_place, problem, "state the same move in both")
    value, technology = moves.get("value_change_pct"), moves.get("technology_change_pct")
    if (value is None) is not (technology is None):
        lacking = "value_change_pct" if value is None else "technology_change_pct"
        document.add((*place, "market_shocks", lacking), "is missing", "give both sides of the rotation, or neither")


def _check(document: Document, parsed: _File) -> None:
    """Check ids, dates, templates and fixed values."""
    built_in = scenario_catalog()
    for name in ("severity", "replay_description"):
        if parsed.get(name, built_in[name]) != built_in[name]:
            document.add((name,), "differs from the built-in value", "leave it out; it cannot be changed")
    if not parsed.get("hypothetical") and not (parsed.get("extends") and parsed.get("replays")):
        document.add(("hypothetical",), "is empty", 'add a scenario, or "extends": true to keep the built-in ones')
    seen: set[str] = set()
    for kind in ("replays", "hypothetical"):
        for at, entry in enumerate(parsed.get(kind, [])):
            if entry["scenario_id"] in seen:
                document.add((kind, at, "scenario_id"), f"{entry['scenario_id']} is given twice", "rename one of them")
            seen.add(entry["scenario_id"])
    for at, entry in enumerate(parsed.get("replays", [])):
        days = (date.fromisoformat(entry["end"]) - date.fromisoformat(entry["start"])).days
        if not 0 < days <= _LONGEST_DAYS:
            problem = f"is {days} days after start, not 1 to {_LONGEST_DAYS}"
            document.add(("replays", at, "end"), problem, "give the first and the last day of the fall")
    for at, entry in enumerate(parsed.get("hypothetical", [])):
        for name in ("name", "description"):
            _check_template(document, entry[name], entry["market_shocks"], ("hypothetical", at, name))


def _check_template(document: Document, template: str, moves: Mapping[str, float], place: Place) -> None:
    """Check the placeholders of a template, such as `{rate_change_bp:+.0f}`."""
    remedy = f"write {{name:+.1f}} with a name of market_shocks: {', '.join(moves)}"
    try:
        unknown = [name for _, name, _, _ in Formatter().parse(template) if name is not None and name not in moves]
        if unknown:
            document.add(place, f"has the unknown placeholder {{{unknown[0]}}}", remedy)
        else:
            template.format(**moves)
    except ValueError as error:
        document.add(place, f"has braces that cannot be filled ({error})", remedy)


def scenarios_in(catalog: Catalog) -> ScenarioCatalog:
    """Return built-in and user scenarios; the user's replace those with the same id."""
    built_in, user_file = scenario_catalog(), catalog.of(SCENARIOS)
    if user_file is None:
        return built_in
    extends, places = user_file.extends, user_file.places
    replays = [one for one in built_in["replays"] if extends and one["scenario_id"] not in places]
    stories = [one for one in built_in["hypothetical"] if extends and one["scenario_id"] not in places]
    return {**built_in, "replays": [*replays, *user_file.replays], "hypothetical": [*stories, *user_file.hypothetical]}


def user_scenarios(manifest: JsonObject) -> set[str]:
    """Return the hypothetical scenario ids that a user added to an edition."""
    if SCENARIOS.name not in as_object(as_object(manifest.get("catalog")).get("files")):
        return set()
    built_in = scenario_catalog()["hypothetical"]
    stated = objects(as_object(as_object(manifest.get("parameters")).get("scenarios")).get("hypothetical"))
    return {str(one.get("scenario_id")) for one in stated if one not in built_in}


def _example() -> Mapping[str, str]:
    return {"scenarios.json": read_catalog_text("finskillbench.domains.risk", "scenarios.json")}


def _examine(user_file: UserScenarios, panels: Panels, catalog: Catalog) -> list[str]:
    """Return the replays that the market contradicts."""
    del catalog
    stated = {entry["scenario_id"]: entry for entry in user_file.replays}
    return [
        f"{user_file.places[name]}.market_pct: is {stated[name]['market_pct']:+.1f}, but the market moved by {moved} "
        f"beyond cash from {stated[name]['start']} to {stated[name]['end']}; correct it, or the dates"
        for name, moved in contradicting_moves(panels, user_file.replays).items()
    ]


SCENARIOS = CatalogFile("scenarios.json", _read, _example, examine=_examine)
