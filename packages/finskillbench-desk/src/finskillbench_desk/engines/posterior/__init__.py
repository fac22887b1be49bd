"""Exact posterior of an unknown shift in ratio paths that starts in an unknown quarter."""
