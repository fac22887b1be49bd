"""An independent reader of guidelines: text and the words of the data in, coded rules out.

It shares nothing with the grammar that writes the documents, neither code nor tables of phrases: it finds paragraphs by
their numbers, terms by their quotation marks, edits a text as an amendment says by looking which of the two values
stands in it, and tells clauses apart by what they speak of. A document that it cannot read is not clear enough.
"""

from __future__ import annotations

from typing import Any

from finskillbench_desk.committee_case.documents.reader.amendments import amend
from finskillbench_desk.committee_case.documents.reader.definitions import (
    country_names,
    default_timing,
    definitions,
    granted,
    parse,
    sounds_like,
)
from finskillbench_desk.committee_case.documents.reader.subjects import Reading, coded_clause
from finskillbench_desk.committee_case.documents.vocabulary import Vocabulary


def read_guidelines(
    text: str, vocabulary: Vocabulary, *, amended: bool = True, defined: bool = True
) -> list[dict[str, Any]]:
    """The coded rules in force, as JSON, from the text of a document and the words of the data.

    Not `amended` they are those of the original text, not `defined` those of terms taken for what they sound like.

    Raises
    ------
    UnreadableError : for a paragraph that the reader cannot make sense of, naming it.
    """
    paragraphs, items = parse(text)
    countries = country_names(vocabulary)
    defining = [body for number, body in paragraphs.items() if number.startswith("1.")]
    terms = definitions(defining, countries, vocabulary.sub_sectors)
    timing = default_timing([body for number, body in paragraphs.items() if number.startswith("2.")])
    operative = {number: body for number, body in paragraphs.items() if number.split(".")[0] not in ("1", "2")}
    state = amend(operative, items if amended else [], terms, countries, vocabulary.sub_sectors)
    if not defined:
        terms.filters |= {name: sounds_like(terms, name) for name in terms.filters}
    reading = Reading(terms, countries, vocabulary, timing)
    grants = {number: body for number, body in state.texts.items() if granted(body)}
    return [
        coded_clause(number, body, reading, state, grants)
        for number, body in state.texts.items()
        if number not in grants
    ]
