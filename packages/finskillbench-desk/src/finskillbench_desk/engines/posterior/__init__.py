"""Paths of ratios with an unknown shift from an unknown quarter: the model, and its exact posterior."""
