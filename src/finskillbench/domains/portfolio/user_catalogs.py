"""User catalogs: sentences of tool-use mandates (`texts.json`) and constraint tiers (`tiers.json`).

Every sentence is tested before the build: an independent reader must recover the limit under which it is filed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NotRequired, cast

import msgspec
import numpy as np
import orjson
from numpy.random import Generator
from pydantic import ConfigDict, TypeAdapter
from typing_extensions import TypedDict

from finskillbench.arrays import SECTORS
from finskillbench.domains.building import read_catalog_text
from finskillbench.domains.catalog import Catalog, CatalogFile
from finskillbench.domains.portfolio.mandate_texts import (
    MandateSentences,
    MandateUniverse,
    built_in_sentences,
    draw_statement,
)
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
_UNIVERSE = MandateUniverse(SECTORS, 30, dict.fromkeys(SECTORS, 1 / len(SECTORS)))


class _File(TypedDict):
    """Format of `texts.json`; with `extends`, any part may be absent."""

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
    """Sentences of a file; `extends` adds them to the built-in ones."""

    sentences: Mapping[str, Any]
    extends: bool


def _read(files: Mapping[str, bytes]) -> UserTexts:
    ((name, data),) = files.items()
    document = Document(name, data)
    parsed = document.typed(_FILE, document.value)
    if parsed is not None:
        _check_parts(document, parsed)
        for place, sentence in _sentences(parsed):
            _check_sentence(document, place, sentence)
    document.mistakes.raise_if_any()
    table = cast("_File", parsed)
    sentences = {part: value for part, value in table.items() if part in (*_LISTS, *_TABLES)}
    return UserTexts(sentences, table.get("extends", False))


def _check_parts(document: Document, parsed: _File) -> None:
    """Add mistakes for unknown kinds and, without `extends`, for missing parts."""
    built_in = cast("Mapping[str, Any]", built_in_sentences())
    parts = cast("Mapping[str, Any]", parsed)
    for part in _TABLES:
        document.check_fields(parts.get(part, {}), built_in[part], (part,))
    if parsed.get("extends"):
        return
    for part in _LISTS:
        if not parts.get(part):
            document.add((part,), "has no sentence", 'add one, or "extends": true to keep the built-in ones')
    for part in _TABLES:
        for kind in built_in[part]:
            if not parts.get(part, {}).get(kind):
                document.add((part, kind), "has no sentence", 'add one, or "extends": true to keep the built-in ones')


def _sentences(parsed: _File) -> Iterator[tuple[Place, str]]:
    parts = cast("Mapping[str, Any]", parsed)
    for part in _LISTS:
        for at, sentence in enumerate(parts.get(part, [])):
            yield (part, at), sentence
    for part in _TABLES:
        for kind, sentences in parts.get(part, {}).items():
            for at, sentence in enumerate(sentences):
                yield (part, kind, at), sentence


def _check_sentence(document: Document, place: Place, sentence: str) -> None:
    """Test a sentence with drawn numbers in a mandate of built-in sentences."""
    part, kind = str(place[0]), str(place[1])
    built_in = cast("Mapping[str, Any]", built_in_sentences())
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
            problem = f"is not understood as intended ({', '.join(differ) or reading.unread[0]})"
            document.add(place, problem, f"phrase it like a built-in one: {_like(built_in, part, kind)!r}")
            return


def _like(built_in: Mapping[str, Any], part: str, kind: str) -> str:
    sentences: Sequence[str] = built_in[part][kind] if part in _TABLES else built_in[part]
    return sentences[0]


def _tried(part: str, kind: str, sentence: str, rng: Generator) -> tuple[str, dict[str, Any]]:
    built_in = built_in_sentences()
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
        more = draw_statement(kind, [sentence], limits, _UNIVERSE, rng)
    elif part == "asides":
        more = draw_statement("asides", [sentence], limits, _UNIVERSE, rng)
    else:
        short = sentence.format()
    return " ".join(filter(None, (opening, aim, more, short))), {**call, "constraints": limits}


def sentences_for(catalog: Catalog) -> MandateSentences:
    """Return the sentences of a build: built-in, user-defined, or both."""
    user_texts, built_in = catalog.of(TEXTS), built_in_sentences()
    if user_texts is None:
        return built_in
    if not user_texts.extends:
        return cast("MandateSentences", {"about": built_in["about"], **user_texts.sentences})
    merged: dict[str, Any] = dict(built_in)
    for part in _LISTS:
        merged[part] = [*merged[part], *user_texts.sentences.get(part, ())]
    for part in _TABLES:
        added = user_texts.sentences.get(part, {})
        merged[part] = {kind: [*sentences, *added.get(kind, ())] for kind, sentences in merged[part].items()}
    return cast("MandateSentences", merged)


TEXTS = CatalogFile(
    "texts.json", _read, lambda: {"texts.json": read_catalog_text("finskillbench.domains.portfolio", "mandates.json")}
)


_OF_NAV = "write a fraction of NAV, 0.08 for 8 %"
_Share = Annotated[float, within(0.01, 1, _OF_NAV)]
_Error = Annotated[float, within(0.001, 1, "write a decimal per year, 0.03 for 3 %")]
_Headroom = Annotated[float, within(0.0, 1, _OF_NAV)]
_Position = Annotated[float, within(HOLDING_THRESHOLD, 0.05, _OF_NAV)]


class _Tier(TypedDict):
    __pydantic_config__ = _STRICT  # pyright: ignore[reportGeneralTypeIssues] - read by pydantic

    max_weight: _Share
    sector_room: _Headroom
    min_position: _Position | None
    max_turnover: _Share | None
    max_tracking_error: _Error | None
    neutral_factors: list[Literal["mkt_rf", "smb", "hml", "rmw", "cma", "mom"]]
    neutrality_tolerance: Annotated[float, within(0.01, 1, "write an active beta, 0.1 for instance")]
    risk_aversion: Annotated[float, within(0.05, 50, "write a risk aversion, 1 for instance")]
    listed: Annotated[float, within(0.2, 1, "write a share of the universe")]


class _Tiers(TypedDict, total=False):
    __pydantic_config__ = _STRICT  # pyright: ignore[reportGeneralTypeIssues] - read by pydantic

    easy: _Tier
    medium: _Tier
    hard: _Tier


class _TierFile(TypedDict):
    __pydantic_config__ = _STRICT  # pyright: ignore[reportGeneralTypeIssues] - read by pydantic

    about: NotRequired[str]
    extends: NotRequired[bool]
    tiers: _Tiers


_TIERS_FILE = TypeAdapter(_TierFile)
_NAMES = ("easy", "medium", "hard")


@dataclass(frozen=True)
class UserTiers:
    """User-defined tiers by name; others keep their built-in values."""

    tiers: Mapping[str, TierSettings]


def _read_tiers(files: Mapping[str, bytes]) -> UserTiers:
    ((name, data),) = files.items()
    document = Document(name, data)
    parsed = document.typed(_TIERS_FILE, document.value)
    if parsed is not None:
        _check(document, parsed)
    document.mistakes.raise_if_any()
    stated = cast("Mapping[str, object]", cast("_TierFile", parsed)["tiers"])
    tiers = {name: msgspec.convert(stated[name], TierSettings) for name in _NAMES if name in stated}
    return UserTiers(tiers)


def _check(document: Document, parsed: _TierFile) -> None:
    for name in _NAMES:
        tier = parsed["tiers"].get(name)
        if tier is None:
            if not parsed.get("extends"):
                document.add(("tiers", name), "is missing", 'add it, or "extends": true to keep the built-in one')
            continue
        place = ("tiers", name)
        if (tier["min_position"] or 0.0) >= tier["max_weight"]:
            document.add((*place, "min_position"), f"is not less than max_weight, {tier['max_weight']}", "lower it")
        if len(set(tier["neutral_factors"])) < len(tier["neutral_factors"]):
            document.add((*place, "neutral_factors"), "names a factor twice", "name each once")


def settings_in(catalog: Catalog) -> Settings:
    """Return the settings of a build, including user-defined tiers."""
    settings, user_tiers = read_settings(), catalog.of(TIERS)
    return settings if user_tiers is None else {**settings, "tiers": {**settings["tiers"], **user_tiers.tiers}}


def _tiers_example() -> Mapping[str, str]:
    tiers = orjson.dumps({"tiers": read_settings()["tiers"]}, option=orjson.OPT_INDENT_2)
    return {"tiers.json": tiers.decode() + "\n"}


TIERS = CatalogFile("tiers.json", _read_tiers, _tiers_example)
