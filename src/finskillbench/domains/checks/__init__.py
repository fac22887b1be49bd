"""What checks of several domains share: the edition under examination, derivations held against each other, proofs."""
