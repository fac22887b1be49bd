"""`in_flight.jsonl`: what episodes in flight have cost, so that not even kill -9 makes a budget forget it.

Kept only under a budget. Before each model call a line says what has been spent on the episode and how much is set
aside for the call, after it what was spent; a last line closes the episode, once its row or its line in `dropped.jsonl`
stands. What is open when the folder is opened again was killed: it goes to `dropped.jsonl`, the call under way at its
upper bound. A process killed between two of these writes counts an episode twice: too dear, never too cheap.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from finskillbench.harness.model import Usage
from finskillbench.runs.plan.items import Item
from finskillbench.runs.store import dropped
from finskillbench.runs.store.files import write_beside
from finskillbench.runs.store.journal import Journal, key_of, read_json_lines

FILE = "in_flight.jsonl"
_KILLED = "killed"


class InFlight:
    """Writes the file of one run folder, which this process holds."""

    def __init__(self, folder: Path) -> None:
        self._journal = Journal(folder / FILE)
        self._open: set[Item] = set()

    def note(self, item: Item, *, calls: int, usage: Usage, lost_usd: float, reserved_usd: float = 0.0) -> None:
        """Say what an episode has cost so far, and what is set aside for its call under way."""
        self._open.add(item)
        bound = lost_usd + reserved_usd
        self._journal.append(dropped.dropped_line(item, _KILLED, calls=calls, usage=usage, lost_usd=bound))

    def end(self, item: Item) -> None:
        """Say that the episode's cost, if it had any, stands elsewhere now."""
        if item not in self._open:
            return
        self._open.remove(item)
        self._journal.append({**dropped.key(item), "ended": True})

    def close(self) -> None:
        """Sync and close the file."""
        self._journal.close()


def recover(folder: Path) -> int:
    """Move the lines of episodes that a killed process left open to `dropped.jsonl`; returns how many there were.

    Raises
    ------
    InputError : a line is damaged; the message names it.
    """
    path = folder / FILE
    if not path.exists():
        return 0
    open_lines: dict[Item, dict[str, Any]] = {}
    for line in read_json_lines(path, _entry, mend=True):
        if line.get("ended"):
            open_lines.pop(key_of(line), None)
        else:
            open_lines[key_of(line)] = line
    if open_lines:
        notes = Journal(folder / dropped.FILE)
        try:
            for line in open_lines.values():
                notes.append(line)
        finally:
            notes.close()
    write_beside(path, b"", durable=True)
    return len(open_lines)


def _entry(line: Any) -> dict[str, Any]:
    if not isinstance(line, dict):
        raise TypeError("not an object")
    key_of(line)
    if not line.get("ended"):
        dropped.check_line(line)
    return line
