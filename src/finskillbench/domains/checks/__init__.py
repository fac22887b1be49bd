"""Checks shared by domains: the edition under examination, comparison of answers, coverage, proofs."""
