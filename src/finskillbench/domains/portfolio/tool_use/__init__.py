"""Tool use: the grammar of its mandates, and what a call of the optimiser is worth."""
