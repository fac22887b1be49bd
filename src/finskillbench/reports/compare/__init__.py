"""Comparison of two runs, models, harnesses or conditions on the same episodes."""
