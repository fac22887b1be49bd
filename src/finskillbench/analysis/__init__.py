"""Statistical analysis of result rows."""
