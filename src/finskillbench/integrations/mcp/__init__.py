"""Agents that speak the Model Context Protocol: one episode served, or a command started for each episode of a run."""
