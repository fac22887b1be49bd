"""What the risk mandates count as a holding."""

from __future__ import annotations

HOLDING_THRESHOLD = 0.001
"""Smallest weight that counts as a holding (10 basis points of NAV)."""
STUB = HOLDING_THRESHOLD - 1e-6
"""Greatest weight of a name that is not a holding; just under the threshold, so that the feasible set is closed."""
