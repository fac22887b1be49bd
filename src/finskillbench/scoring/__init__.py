"""Judging text: strict JSON, typed values out of it, and the measures that the scorers share."""
