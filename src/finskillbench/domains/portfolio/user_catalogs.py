"""Words of tool-use mandates of a user's own (`texts.json`), in the format of the built-in ones.

Every sentence is tried before anything is built: a reader that knows only English, and not what was meant, must take it
for what it stands under. A label whose text says something else would be no label.

Constraint tiers of a user's own (`tiers.json`), in the format of the built-in ones.

They are set against the benchmark of each month-end as those are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NotRequired, cast

import msgspec
import numpy as np
import orjson
from pydantic import ConfigDict, TypeAdapter
from typing_extensions import TypedDict

from finskillbench.arrays import SECTORS
from finskillbench.domains.building import read_catalog_text
from finskillbench.domains.catalog import Catalog, CatalogFile
from finskillbench.domains.portfolio.mandate_texts import Universe, Words, stated, words
from finskillbench.domains.portfolio.objects.settings import Settings, TierSettings, read_settings
from finskillbench.domains.portfolio.tool_use import effective_parameters
from finskillbench.engines.holdings import HOLDING_THRESHOLD
from finskillbench.engines.portfolio.mandates.text import read_mandate
from finskillbench.engines.portfolio.problem import Objective
from finskillbench.sources.catalog.document import Document, Place, Title, within

_STRICT = ConfigDict(strict=True, extra="forbid")
_LISTS = ("openings", "barred", "allowed", "asides")
_TABLES = ("objectives", "limits")
_TRIES = 5
"""Draws of its numbers with which a sentence is tried."""
_UNIVERSE = Universe(SECTORS, 30, dict.fromkeys(SECTORS, 1 / len(SECTORS)))


class _File(TypedDict):
    """The whole file; with `extends` any part may be left out."""

    __pydantic_config__ = _STRICT  # pyright: ignore[reportGeneralTypeIssues] - read by pydantic

    about: NotRequired[str]
    extends: NotRequired[bool]
    openings: NotRequired[list[Title]]
    objectives: NotRequired[dict[str, list[Title]]]
    limits: NotRequired[dict[str, list[Title]]]
    barred: NotRequired[list[Title]]
    allowed: NotRequired[list[Title]]
    asides: NotRequired[list[Title]]


_FILE = TypeAdapter(_File)


@dataclass(frozen=True)
class UserTexts:
    """The sentences of a file, and whether they are added to the built-in ones."""

    said: Mapping[str, Any]
    extends: bool


def _read(files: Mapping[str, bytes]) -> UserTexts:
    ((name, data),) = files.items()
    document = Document(name, data)
    told = document.typed(_FILE, document.value)
    if told is not None:
        _check_parts(document, told)
        for place, sentence in _sentences(told):
            _check_sentence(document, place, sentence)
    document.mistakes.raise_if_any()
    table = cast("_File", told)
    said = {part: value for part, value in table.items() if part in (*_LISTS, *_TABLES)}
    return UserTexts(said, table.get("extends", False))


def _check_parts(document: Document, told: _File) -> None:
    """Kinds that are none; and, in a file that takes the place of the built-in one, parts that are not there."""
    built_in = cast("Mapping[str, Any]", words())
    given = cast("Mapping[str, Any]", told)
    for part in _TABLES:
        document.check_fields(given.get(part, {}), built_in[part], (part,))
    if told.get("extends"):
        return
    for part in _LISTS:
        if not given.get(part):
            document.add((part,), "has no sentence", 'add one, or "extends": true to keep the built-in ones')
    for part in _TABLES:
        for kind in built_in[part]:
            if not given.get(part, {}).get(kind):
                document.add((part, kind), "has no sentence", 'add one, or "extends": true to keep the built-in ones')


def _sentences(told: _File) -> Iterator[tuple[Place, str]]:
    given = cast("Mapping[str, Any]", told)
    for part in _LISTS:
        for at, sentence in enumerate(given.get(part, [])):
            yield (part, at), sentence
    for part in _TABLES:
        for kind, sentences in given.get(part, {}).items():
            for at, sentence in enumerate(sentences):
                yield (part, kind, at), sentence


def _check_sentence(document: Document, place: Place, sentence: str) -> None:
    """A sentence, with numbers drawn for it, between others that are known to be read."""
    part, kind = str(place[0]), str(place[1])
    built_in = cast("Mapping[str, Any]", words())
    if part in _TABLES and kind not in built_in[part]:
        return
    if not sentence.endswith("."):
        document.add(place, "does not end with a full stop", "end it with one: each sentence states one thing")
        return
    for number in range(_TRIES):
        rng = np.random.default_rng(number)
        try:
            text, call = _tried(part, kind, sentence, rng)
        except (KeyError, IndexError, ValueError, AttributeError) as error:
            problem = f"has braces that cannot be filled ({error})"
            document.add(place, problem, f"use those of {_like(built_in, part, kind)!r}")
            return
        reading = read_mandate(text, SECTORS)
        wanted, read = (effective_parameters(one, SECTORS, _UNIVERSE.size) for one in (call, reading.call()))
        if reading.unread or wanted != read:
            differ = sorted(name for name in wanted.keys() | read.keys() if wanted.get(name) != read.get(name))
            problem = f"is not read as it is meant ({', '.join(differ) or reading.unread[0]})"
            document.add(place, problem, f"say it as the built-in ones do: {_like(built_in, part, kind)!r}")
            return


def _like(built_in: Mapping[str, Any], part: str, kind: str) -> str:
    sentences: Sequence[str] = built_in[part][kind] if part in _TABLES else built_in[part]
    return sentences[0]


def _tried(part: str, kind: str, sentence: str, rng: np.random.Generator) -> tuple[str, dict[str, Any]]:
    """A mandate that holds the sentence, and the call that it implies."""
    built_in = words()
    call: dict[str, Any] = {"objective": Objective.MIN_VARIANCE.value}
    limits: dict[str, Any] = {"long_only": part != "allowed"}
    opening, aim, more = built_in["openings"][0], built_in["objectives"]["min_variance"][0], ""
    short = built_in["barred"][0]
    if part == "openings":
        opening = sentence.format()
    elif part == "objectives":
        call["objective"], aim = kind, sentence
        if kind == Objective.MAX_SHARPE:
            call["risk_aversion"] = int(rng.integers(3, 20)) / 2
            aim = sentence.format(x=f"{call['risk_aversion']:g}")
    elif part == "limits":
        more = stated(kind, [sentence], limits, _UNIVERSE, rng)
    elif part == "asides":
        more = stated("asides", [sentence], limits, _UNIVERSE, rng)
    else:
        short = sentence.format()
    return " ".join(filter(None, (opening, aim, more, short))), {**call, "constraints": limits}


def words_in(catalog: Catalog) -> Words:
    """The sentences of a build: the built-in ones, a user's, or both."""
    own, built_in = catalog.of(TEXTS), words()
    if own is None:
        return built_in
    if not own.extends:
        return cast("Words", {"about": built_in["about"], **own.said})
    merged: dict[str, Any] = dict(built_in)
    for part in _LISTS:
        merged[part] = [*merged[part], *own.said.get(part, ())]
    for part in _TABLES:
        added = own.said.get(part, {})
        merged[part] = {kind: [*sentences, *added.get(kind, ())] for kind, sentences in merged[part].items()}
    return cast("Words", merged)


def _example() -> Mapping[str, str]:
    return {"texts.json": read_catalog_text("finskillbench.domains.portfolio", "mandates.json")}


TEXTS = CatalogFile("texts.json", _read, _example)


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


class _TierFile(TypedDict):
    """The whole file."""

    __pydantic_config__ = _STRICT  # pyright: ignore[reportGeneralTypeIssues] - read by pydantic

    about: NotRequired[str]
    extends: NotRequired[bool]
    tiers: _Tiers


_TIERS_FILE = TypeAdapter(_TierFile)
_NAMES = ("easy", "medium", "hard")


@dataclass(frozen=True)
class UserTiers:
    """The tiers of a file by name; those that it does not name stay as they are built in."""

    tiers: Mapping[str, TierSettings]


def _read_tiers(files: Mapping[str, bytes]) -> UserTiers:
    ((name, data),) = files.items()
    document = Document(name, data)
    told = document.typed(_TIERS_FILE, document.value)
    if told is not None:
        _check(document, told)
    document.mistakes.raise_if_any()
    stated = cast("Mapping[str, object]", cast("_TierFile", told)["tiers"])
    tiers = {name: msgspec.convert(stated[name], TierSettings) for name in _NAMES if name in stated}
    return UserTiers(tiers)


def _check(document: Document, told: _TierFile) -> None:
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


def _tiers_example() -> Mapping[str, str]:
    tiers = orjson.dumps({"tiers": read_settings()["tiers"]}, option=orjson.OPT_INDENT_2)
    return {"tiers.json": tiers.decode() + "\n"}


TIERS = CatalogFile("tiers.json", _read_tiers, _tiers_example)
