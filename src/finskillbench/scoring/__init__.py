"""Strict JSON parsing, typed values, and the measures that scorers share."""
