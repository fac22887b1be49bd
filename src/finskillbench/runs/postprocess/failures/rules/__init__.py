"""The rules, in the order in which they are tried."""

from __future__ import annotations

from finskillbench.runs.postprocess.failures.rules import matching, process, rest, shape, skills
from finskillbench.runs.postprocess.failures.rules.matching import Rule

RULES: tuple[Rule, ...] = (*process.RULES, *shape.RULES, *skills.RULES, *matching.RULES, *rest.RULES)
"""A rule may look at what those before it found, so that what they explain is not explained again."""
