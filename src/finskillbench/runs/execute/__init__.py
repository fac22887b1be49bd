"""Execute a plan: concurrency, budget, rate limits, interrupts."""
