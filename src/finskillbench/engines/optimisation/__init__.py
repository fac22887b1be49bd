"""Certified optimisation: formulation, branch and bound, certificates, uniqueness proofs."""
