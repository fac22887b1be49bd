"""Taskset of `finskillbench.integrations.verifiers_taskset` under a name of verifiers, a top-level module."""
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false

from finskillbench.integrations.verifiers_taskset import FinSkillBenchTaskset, NullHarness

__all__ = ["FinSkillBenchTaskset", "NullHarness"]
