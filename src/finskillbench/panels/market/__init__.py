"""Panels of the market: prices, returns, covariances, factors, rates, benchmark weights."""
