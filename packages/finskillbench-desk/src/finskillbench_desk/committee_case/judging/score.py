"""The score of a case: the mean of five parts, and whether it could be signed."""

from __future__ import annotations

from typing import Any

from finskillbench.episode import JsonObject, Score, Truth
from finskillbench.scoring.measures import clip, mean
from finskillbench_desk.committee_case.judging import coding, later, papers
from finskillbench_desk.committee_case.judging.facts import Facts
from finskillbench_desk.committee_case.judging.own import Own

FOUNDED = {"rules": 0.5, "book": 0.6}
UNFOUNDED = 0.2
"""What each of the first two parts must earn for the later ones to count in full, and up to which they count for
nothing: whoever has no rules, or no book, has nothing to be consistent with."""
SIGNED = 0.995
"""Score of every part of a case that could be signed."""


def score(answer: JsonObject, truth: Truth, task_input: Any) -> Score:
    """Judge an answer: rules, book, breaches, cure and figures, each by what the earlier ones come to."""
    del task_input  # its tables are not opened to judge
    own = Own(Facts.of(truth), answer)
    rules, book = coding.judged(own), papers.judged(own)
    parts = {"rules": rules.score, "book": book.score}
    founded = min(clip((parts[name] - UNFOUNDED) / (full - UNFOUNDED)) for name, full in FOUNDED.items())
    for name, part in (("breaches", later.breaches), ("cure", later.cure), ("figures", later.after_cure)):
        parts[name] = founded * part(own) if founded else 0.0
    details = {
        "parts": parts,
        "signed": min(parts.values()) >= SIGNED,
        "traps": {**{f"{trap}@guidelines": fate for trap, fate in rules.traps.items()}, **book.traps},
        "controls": book.controls,
        "clauses": rules.clauses,
    }
    return Score(mean(list(parts.values())), details)
