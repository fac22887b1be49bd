"""Books of a fund against the papers that they come from: measures of where two papers differ, and no verdicts."""
