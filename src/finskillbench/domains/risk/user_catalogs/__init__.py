"""User catalogs of risk management: mandates, scenarios and books."""
