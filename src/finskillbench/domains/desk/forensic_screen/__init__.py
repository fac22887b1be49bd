"""Forensic screening: which of two hundred companies managed their accounts, and how."""

from finskillbench.domains.desk.forensic_screen.subtask import SUBTASK

__all__ = ["SUBTASK"]
