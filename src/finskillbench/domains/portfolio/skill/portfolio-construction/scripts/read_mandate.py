"""Read a mandate text and propose the optimiser call it implies.

Payload: scenario_description (English), sectors (the universe's sector names).
Result: optimizer_call, evidence (the text of each limit), unread (clauses with a number that no rule matched),
left_out (sentences on the past or on money, which limit nothing).
"""

from typing import Any, cast

from finskillbench.engines.portfolio.mandates.text import read_mandate
from finskillbench.errors import InputError
from finskillbench.sandbox.script import cli


def main(payload: dict[str, Any]) -> dict[str, Any]:
    """Read the text by rules; check the evidence before submitting."""
    text, sectors = payload.get("scenario_description"), payload.get("sectors")
    if not isinstance(text, str) or not isinstance(sectors, list):
        raise InputError("scenario_description must be a text and sectors a list; inject both from the task data")
    reading = read_mandate(text, [str(name) for name in cast("list[object]", sectors)])
    return {
        "optimizer_call": reading.call(),
        "evidence": reading.evidence,
        "unread": reading.unread,
        "left_out": reading.left_out,
    }


if __name__ == "__main__":
    cli(main)
