"""What is checked of risk management beside its labels: dates, portfolios, mandates, scenarios."""
