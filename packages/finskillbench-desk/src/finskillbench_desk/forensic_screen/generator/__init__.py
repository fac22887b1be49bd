"""How a screening world comes about: what is drawn of it, its statements, and where its data mislead."""
