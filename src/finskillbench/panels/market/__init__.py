"""Market panels: prices, returns, covariances, factors, rates, benchmark weights."""
