"""Statistics of returns: covariance, regressions, value at risk."""
