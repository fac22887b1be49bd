"""Risk engines: covariance in factor form and rolling regressions."""
