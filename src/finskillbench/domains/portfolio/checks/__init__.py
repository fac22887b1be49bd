"""Checks of portfolio construction beyond labels: panels and task sets."""
