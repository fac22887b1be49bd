"""Trading against costs: one decision from a book that is held, and the optimal step where forecasts decay."""
