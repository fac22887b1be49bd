"""Publish results: bundles, leaderboards, validation packs and data set hubs."""
