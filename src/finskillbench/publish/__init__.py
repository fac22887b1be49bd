"""Runs and editions for others: data sets for a hub, signed bundles, a leaderboard, the validation pack."""
