"""Apply amendments to clause texts, definitions and timing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from finskillbench_desk.committee_case.documents.reader.definitions import (
    ParsedDefinitions,
    ReadingContext,
    UnreadableError,
    countries_in,
    sentences,
)

_NUMBER = re.compile(r"\b(\d+\.\d+)\b")
_QUANTITY = re.compile(r"\d+(?:\.\d+)?(?:%| per cent| percent| percentage points?)")
_APPENDED = re.compile(
    r"\bend\b|append|supplement|continue|sentence closes|further sentence|exception is added|last sentence"
)


@dataclass
class AmendedTexts:
    """Clause texts after the amendments, and timing that an amendment sets without editing the text."""

    texts: dict[str, str]
    timing: dict[str, str] = field(default_factory=dict[str, str])


def amend(texts: Mapping[str, str], items: list[str], reading: ReadingContext) -> AmendedTexts:
    """Return the clauses after all items, in order; changes the definitions of `reading` in place."""
    state, definitions = AmendedTexts(dict(texts)), reading.definitions
    for item in items:
        quoted = [text for text in re.findall(r"“([^”]+)”", item) if text.endswith(".")]
        about = next((name for name in definitions.sorts if f"“{name}”" in item), None)
        outside = item
        for text in quoted:
            outside = outside.replace(text, "")
        clauses = _NUMBER.findall(re.sub(_QUANTITY, "", outside))
        if about is not None and not clauses:
            _definition(reading, about, item)
        elif not clauses:
            raise UnreadableError(f"amendment names neither a clause nor a term: {item}")
        elif quoted:
            _replace_text(state, clauses[0], quoted[0], outside)
        else:
            _edit(state, clauses[0], item, definitions)
    return state


def _replace_text(state: AmendedTexts, clause: str, text: str, outside: str) -> None:
    if clause in state.texts and _APPENDED.search(outside):
        state.texts[clause] = f"{state.texts[clause]} {text}"
        return
    state.texts[clause] = text
    state.timing.pop(clause, None)


def _edit(state: AmendedTexts, clause: str, item: str, definitions: ParsedDefinitions) -> None:
    """Replace a value, set the timing, remove the exceptions, or delete a clause."""
    if clause not in state.texts:
        raise UnreadableError(f"amendment of missing clause {clause}: {item}")
    bases, plain = (definitions.nav, definitions.equity_value), item.replace("The Equity", "the Equity")
    values = _QUANTITY.findall(item) or [name for name in bases if name in plain]
    if len(values) == 2:
        text = state.texts[clause]
        old = [value for value in values if re.search(rf"(?<![\d.]){re.escape(value)}", text, re.IGNORECASE)]
        if len(old) != 1:
            raise UnreadableError(f"replaced text in clause {clause} is ambiguous: {item}")
        new = values[1 - values.index(old[0])]
        state.texts[clause] = re.sub(rf"(?<![\d.]){re.escape(old[0])}", new, text, count=1)
    elif re.search(r"except", item, re.IGNORECASE):
        state.texts[clause] = sentences(state.texts[clause])[0]
    elif re.search(r"\btest|applies|complied", item) and "ceases" not in item:
        always = re.search(r"at all times|every day|continuously|both at purchase", item)
        state.timing[clause] = "always" if always else "purchase"
    else:
        del state.texts[clause]


def _definition(reading: ReadingContext, name: str, item: str) -> None:
    """Change the number of a definition, or toggle a country or sub-sector in it."""
    meant: Any = reading.definitions.filters[name]
    rest = item.replace(f"“{name}”", "")
    match reading.definitions.sorts[name]:
        case "size":
            values = [float(value) * 1e9 for value in re.findall(r"USD ([\d.]+) billion", rest)]
            meant["market_cap"]["below"] = next(value for value in values if value != meant["market_cap"]["below"])
        case "countries":
            _toggle(meant["country"], countries_in(rest, reading.countries)[0])
        case "group":
            named = [sub for sub in reading.vocabulary.sub_sectors if sub in rest]
            if not named:
                raise UnreadableError(f"amended sub-sector of a definition not recognised: {item}")
            _toggle(meant["any"][1]["sub_sector"], max(named, key=len))
        case _:
            raise UnreadableError(f"amendment of a definition not recognised: {item}")


def _toggle(values: list[str], value: str) -> None:
    if value in values:
        values.remove(value)
    else:
        values.append(value)
