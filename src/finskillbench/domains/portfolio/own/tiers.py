"""Constraint tiers of a user's own (`tiers.json`), in the format of the built-in ones.

They are set against the benchmark of each month-end as those are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, NotRequired, cast

import msgspec
import orjson
from pydantic import ConfigDict, TypeAdapter
from typing_extensions import TypedDict

from finskillbench.domains.catalog import Catalog, CatalogFile
from finskillbench.domains.portfolio.objects.settings import Settings, TierSettings, read_settings
from finskillbench.engines.holdings import HOLDING_THRESHOLD
from finskillbench.sources.catalog.document import Document, within

_STRICT = ConfigDict(strict=True, extra="forbid")
_OF_NAV = "write a fraction of NAV, 0.08 for 8 %"
_Share = Annotated[float, within(0.01, 1, _OF_NAV)]
_Error = Annotated[float, within(0.001, 1, "write a decimal per year, 0.03 for 3 %")]
_Room = Annotated[float, within(0.0, 1, _OF_NAV)]
_Position = Annotated[float, within(HOLDING_THRESHOLD, 0.05, _OF_NAV)]


class _Tier(TypedDict):
    """One tier, every field of it."""

    __pydantic_config__ = _STRICT  # pyright: ignore[reportGeneralTypeIssues] - read by pydantic

    max_weight: _Share
    sector_room: _Room
    min_position: _Position | None
    max_turnover: _Share | None
    max_tracking_error: _Error | None
    neutral_factors: list[Literal["mkt_rf", "smb", "hml", "rmw", "cma", "mom"]]
    neutrality_tolerance: Annotated[float, within(0.01, 1, "write an active beta, 0.1 for instance")]
    risk_aversion: Annotated[float, within(0.05, 50, "write a risk aversion, 1 for instance")]
    listed: Annotated[float, within(0.2, 1, "write a share of the universe")]


class _Tiers(TypedDict, total=False):
    """The three tiers that tasks are built from."""

    __pydantic_config__ = _STRICT  # pyright: ignore[reportGeneralTypeIssues] - read by pydantic

    easy: _Tier
    medium: _Tier
    hard: _Tier


class _File(TypedDict):
    """The whole file."""

    __pydantic_config__ = _STRICT  # pyright: ignore[reportGeneralTypeIssues] - read by pydantic

    about: NotRequired[str]
    extends: NotRequired[bool]
    tiers: _Tiers


_FILE = TypeAdapter(_File)
_NAMES = ("easy", "medium", "hard")


@dataclass(frozen=True)
class OwnTiers:
    """The tiers of a file by name; those that it does not name stay as they are built in."""

    tiers: Mapping[str, TierSettings]


def _read(files: Mapping[str, bytes]) -> OwnTiers:
    ((name, data),) = files.items()
    document = Document(name, data)
    told = document.typed(_FILE, document.value)
    if told is not None:
        _check(document, told)
    document.mistakes.raise_if_any()
    stated = cast("Mapping[str, object]", cast("_File", told)["tiers"])
    tiers = {name: msgspec.convert(stated[name], TierSettings) for name in _NAMES if name in stated}
    return OwnTiers(tiers)


def _check(document: Document, told: _File) -> None:
    """What the types do not say: all tiers are there, limits go together."""
    for name in _NAMES:
        tier = told["tiers"].get(name)
        if tier is None:
            if not told.get("extends"):
                document.add(("tiers", name), "is missing", 'add it, or "extends": true to keep the built-in one')
            continue
        place = ("tiers", name)
        if (tier["min_position"] or 0.0) >= tier["max_weight"]:
            document.add((*place, "min_position"), f"is not less than max_weight, {tier['max_weight']}", "lower it")
        if len(set(tier["neutral_factors"])) < len(tier["neutral_factors"]):
            document.add((*place, "neutral_factors"), "names a factor twice", "name each once")


def settings_in(catalog: Catalog) -> Settings:
    """The settings of a build, with the tiers that a user brought."""
    settings, own = read_settings(), catalog.of(TIERS)
    return settings if own is None else {**settings, "tiers": {**settings["tiers"], **own.tiers}}


def _example() -> Mapping[str, str]:
    tiers = orjson.dumps({"tiers": read_settings()["tiers"]}, option=orjson.OPT_INDENT_2)
    return {"tiers.json": tiers.decode() + "\n"}


TIERS = CatalogFile("tiers.json", _read, _example)
