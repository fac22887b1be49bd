"""Panels estimated from trailing returns: covariances, factor exposures, expected returns."""
