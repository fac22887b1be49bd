"""Runs over many episodes, and the only place where submissions meet truth."""
