"""Publish runs and editions: data sets for a hub, signed bundles, a leaderboard, the validation pack."""
