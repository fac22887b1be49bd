"""What the paper's suite registers: editions of these tests hold it, whatever other distributions are installed."""

from __future__ import annotations

from finskillbench.domains import domains, subtasks, suite_of
from finskillbench.episode import PAPER_SUITE

DOMAINS = tuple(domain for domain in domains() if domain.suite == PAPER_SUITE)
SUBTASKS = tuple(subtask for subtask in subtasks() if suite_of(subtask.name) == PAPER_SUITE)
