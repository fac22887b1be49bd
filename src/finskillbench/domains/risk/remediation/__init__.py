"""Remediation: the proof that a cure is the cheapest, and what proposed trades are worth."""
