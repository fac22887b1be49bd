"""Run one episode with an agent: prompts, tools, conditions, the loop and the models.

This package never reads a truth; `finskillbench.runs` joins traces and truths.
"""
