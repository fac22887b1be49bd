"""Derive the truth of a case again from the agent's view alone, with code independent of the build."""
