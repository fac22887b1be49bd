"""One episode with an agent: prompts, tools, conditions, the loop, and the models that answer.

Nothing here can reach a truth: an episode comes in, a trace with a submission goes out, and
`finskillbench.runs` joins the two afterwards.
"""
