"""Run one episode with an agent; traces are joined with truths by `finskillbench.runs` only."""
