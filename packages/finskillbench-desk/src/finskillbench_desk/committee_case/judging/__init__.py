"""Score answers part by part; later parts are scored against the agent's own earlier parts."""
