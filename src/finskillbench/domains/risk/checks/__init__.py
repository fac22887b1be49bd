"""Domain checks of risk management: dates, portfolios, mandates and scenarios."""
