"""Model Context Protocol: serve one episode, or run a command-line agent over the episodes of a run."""
