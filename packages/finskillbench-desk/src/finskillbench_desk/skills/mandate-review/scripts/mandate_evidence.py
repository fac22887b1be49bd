"""Find quotations by topic in guidelines; never rules.

Payload: text, the unchanged document; or inject `documents`, whose guidelines are read. An unknown key is refused.
Result: topics (by topic the paragraphs about it, quoted), terms (the meaning of each defined term, quoted, and
where it is used), references (paragraphs that name others, amendments among them), gaps (topics never mentioned,
paragraphs with numbers that no topic claims, terms that are not used or not defined, references to nothing).
"""

from typing import Any

from finskillbench.engines.fields import refuse_unknown, table_of
from finskillbench.errors import InputError
from finskillbench.sandbox.script import cli
from finskillbench_desk.engines.guidelines.evidence import evidence


def main(payload: dict[str, Any]) -> dict[str, Any]:
    """Quote the document; you interpret it."""
    refuse_unknown(payload, ("text", "documents"), "mandate_evidence")
    documents = table_of(payload.get("documents")) or {}
    text = payload.get("text", documents.get("guidelines"))
    if not isinstance(text, str):
        raise InputError("text must be the whole document unchanged; or inject documents, with guidelines among them")
    return evidence(text)


if __name__ == "__main__":
    cli(main)
