"""Working off a plan: concurrency, budget, limits of providers, interrupts."""
