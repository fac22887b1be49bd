"""Forensic screening: which of two hundred companies managed their accounts, and how."""

from finskillbench_desk.forensic_screen.subtask import SUBTASK

__all__ = ["SUBTASK"]
