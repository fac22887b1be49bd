"""Trading against costs: one decision net of costs, and optimal steps with decaying forecasts."""
