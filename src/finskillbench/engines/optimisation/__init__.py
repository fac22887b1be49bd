"""Certified optimisation: one formulation, one branch and bound, certificates and proofs of uniqueness."""
