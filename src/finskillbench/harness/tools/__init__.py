"""Tools for agents: contracts, the toolbox that serves them, and its interpreters."""
