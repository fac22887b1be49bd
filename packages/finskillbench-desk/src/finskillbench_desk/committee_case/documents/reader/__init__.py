"""Independent reader of guidelines: text and vocabulary in, coded rules out.

It shares no code or phrases with the grammar that writes the documents. Paragraphs are found by number, terms by
quotation marks, clause kinds by subject. An amendment replaces the one of its two values that is in the clause.
"""

from __future__ import annotations

from typing import Any

from finskillbench_desk.committee_case.documents.reader.amendments import amend
from finskillbench_desk.committee_case.documents.reader.definitions import (
    ReadingContext,
    country_names,
    default_timing,
    granted,
    parse_definitions,
    parse_paragraphs,
    sounds_like,
)
from finskillbench_desk.committee_case.documents.reader.subjects import coded_clause
from finskillbench_desk.committee_case.documents.vocabulary import Vocabulary


def read_guidelines(
    text: str, vocabulary: Vocabulary, *, amended: bool = True, defined: bool = True
) -> list[dict[str, Any]]:
    """Return the coded rules in force, as JSON, from the text of a document.

    Parameters
    ----------
    amended : apply the amendments.
    defined : use the definitions; False takes terms at face value.

    Raises
    ------
    UnreadableError : if a paragraph cannot be parsed; the message quotes it.
    """
    paragraphs, items = parse_paragraphs(text)
    countries = country_names(vocabulary)
    defining = [body for number, body in paragraphs.items() if number.startswith("1.")]
    definitions = parse_definitions(defining, countries, vocabulary.sub_sectors)
    timing = default_timing([body for number, body in paragraphs.items() if number.startswith("2.")])
    operative = {number: body for number, body in paragraphs.items() if number.split(".")[0] not in ("1", "2")}
    reading = ReadingContext(definitions, countries, vocabulary, timing)
    state = amend(operative, items if amended else [], reading)
    if not defined:
        definitions.filters |= {name: sounds_like(definitions, name) for name in definitions.filters}
    grants = {number: body for number, body in state.texts.items() if granted(body)}
    coded = [entry for entry in state.texts.items() if entry[0] not in grants]
    return [coded_clause(number, body, reading, state, grants) for number, body in coded]
