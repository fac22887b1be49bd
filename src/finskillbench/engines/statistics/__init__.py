"""Statistics of returns: covariance and regression."""
