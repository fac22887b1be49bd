"""Asking politely: addresses, paces, retries, redirects, and whether what came is what was asked for."""
