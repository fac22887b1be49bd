"""The pack that a model-risk officer files: what was validated, on what evidence, and how sure it is."""

from finskillbench.reports.validation.evidence import read_audit, read_checks
from finskillbench.reports.validation.write import write_pack

__all__ = ["read_audit", "read_checks", "write_pack"]
