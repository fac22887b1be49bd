"""What a check of the audit is: of one episode, of all episodes of a subtask, or of a domain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from finskillbench.audit.seen import Bench, Seen
from finskillbench.episode import Episode
from finskillbench.findings import Findings

Look = Callable[[Seen, Findings], None]
"""Looks at one episode."""
Conclude = Callable[[str, Findings], None]
"""`(sub_task, findings)`: judges what looking at all episodes of a subtask has left in the figures."""
Survey = Callable[[Bench, Sequence[Episode], Findings], None]
"""Looks at all episodes of a subtask together."""


@dataclass(frozen=True, slots=True)
class AuditCheck:
    """One check that is asked of every domain: `name`, what it `asks`, and how it looks.

    look : at each episode by itself.
    conclude : on a subtask, after every episode was looked at.
    survey : of the episodes of a subtask together.
    needs_truth : whether an edition without truth leaves nothing to look at.
    """

    name: str
    asks: str
    look: Look | None = None
    conclude: Conclude | None = None
    survey: Survey | None = None
    needs_truth: bool = True
