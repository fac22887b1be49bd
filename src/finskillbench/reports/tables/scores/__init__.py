"""Tables of scores by condition and group."""
