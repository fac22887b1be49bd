"""Amendments carried out on the text: edits, deletions, additions, and what they say of definitions and of timing."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from finskillbench_desk.committee_case.documents.reader.definitions import (
    Defined,
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
class State:
    """Texts of clauses as amended, and what amendments say that is no edit of a text: times of testing."""

    texts: dict[str, str]
    timing: dict[str, str] = field(default_factory=dict[str, str])


def amend(
    texts: Mapping[str, str],
    items: list[str],
    terms: Defined,
    countries: Mapping[str, str],
    sub_sectors: Collection[str],
) -> State:
    """The clauses after all items, in their order; definitions are changed in `terms`."""
    state = State(dict(texts))
    for item in items:
        quoted = [text for text in re.findall(r"“([^”]+)”", item) if text.endswith(".")]
        about = next((name for name in terms.sorts if f"“{name}”" in item), None)
        outside = item
        for text in quoted:
            outside = outside.replace(text, "")
        clauses = _NUMBER.findall(re.sub(_QUANTITY, "", outside))
        if about is not None and not clauses:
            _definition(terms, about, item, countries, sub_sectors)
        elif not clauses:
            raise UnreadableError(f"an amendment of nothing: {item}")
        elif quoted:
            _words(state, clauses[0], quoted[0], outside)
        else:
            _edit(state, clauses[0], item, terms)
    return state


def _words(state: State, clause: str, text: str, outside: str) -> None:
    """New words: of a new clause, at the end of one, or in its place."""
    if clause in state.texts and _APPENDED.search(outside):
        state.texts[clause] = f"{state.texts[clause]} {text}"
        return
    state.texts[clause] = text
    state.timing.pop(clause, None)


def _edit(state: State, clause: str, item: str, terms: Defined) -> None:
    """One value for another, a time of testing, an exception taken back, or the end of a clause."""
    if clause not in state.texts:
        raise UnreadableError(f"an amendment of clause {clause}, which is not there: {item}")
    values = _QUANTITY.findall(item) or [name for name in (terms.nav, terms.equity_value) if name in _plain(item)]
    if len(values) == 2:
        text = state.texts[clause]
        old = [value for value in values if _standing(value, text)]
        if len(old) != 1:
            raise UnreadableError(f"it is not clear what is replaced in clause {clause}: {item}")
        new = values[1 - values.index(old[0])]
        state.texts[clause] = re.sub(rf"(?<![\d.]){re.escape(old[0])}", new, text, count=1)
    elif re.search(r"except", item, re.IGNORECASE):
        state.texts[clause] = sentences(state.texts[clause])[0]
    elif re.search(r"\btest|applies|complied", item) and "ceases" not in item:
        always = re.search(r"at all times|every day|continuously|both at purchase", item)
        state.timing[clause] = "always" if always else "purchase"
    else:
        del state.texts[clause]


def _plain(item: str) -> str:
    return item.replace("The Equity", "the Equity")


def _standing(value: str, text: str) -> bool:
    return re.search(rf"(?<![\d.]){re.escape(value)}", text, re.IGNORECASE) is not None


def _definition(
    terms: Defined, name: str, item: str, countries: Mapping[str, str], sub_sectors: Collection[str]
) -> None:
    """A country, a sub-sector or a number of a definition: what is in it goes, what is not comes."""
    meant: Any = terms.filters[name]
    rest = item.replace(f"“{name}”", "")
    match terms.sorts[name]:
        case "size":
            values = [float(value) * 1e9 for value in re.findall(r"USD ([\d.]+) billion", rest)]
            meant["market_cap"]["below"] = next(value for value in values if value != meant["market_cap"]["below"])
        case "countries":
            _toggle(meant["country"], countries_in(rest, countries)[0])
        case "group":
            named = [sub for sub in sub_sectors if sub in rest]
            if not named:
                raise UnreadableError(f"a definition amended by nothing: {item}")
            _toggle(meant["any"][1]["sub_sector"], max(named, key=len))
        case _:
            raise UnreadableError(f"a definition amended by nothing: {item}")


def _toggle(words: list[str], word: str) -> None:
    if word in words:
        words.remove(word)
    else:
        words.append(word)
