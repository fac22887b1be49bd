"""Failure rules in the order of execution."""

from __future__ import annotations

from finskillbench.runs.postprocess.failures.rules import matching, process, rest, shape, skills
from finskillbench.runs.postprocess.failures.rules.matching import FailureRule

RULES: tuple[FailureRule, ...] = (*process.RULES, *shape.RULES, *skills.RULES, *matching.RULES, *rest.RULES)
"""Each rule receives the findings of those before it, so that nothing is explained twice."""
