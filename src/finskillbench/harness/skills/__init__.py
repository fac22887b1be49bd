"""Skill packages: loading, lint, agents' own skills and memory between episodes."""
