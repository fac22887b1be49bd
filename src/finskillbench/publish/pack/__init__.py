"""Validation pack: the evidence of runs as one document for a model-risk officer."""

from finskillbench.publish.pack.criteria import read_criteria
from finskillbench.publish.pack.evidence import read_audit, read_checks
from finskillbench.publish.pack.write import Pack, write_pack

__all__ = ["Pack", "read_audit", "read_checks", "read_criteria", "write_pack"]
