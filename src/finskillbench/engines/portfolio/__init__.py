"""Portfolio construction with certificates: optimisation, rebalancing, Black-Litterman views."""
