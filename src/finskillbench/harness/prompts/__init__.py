"""What an agent reads: the system prompt, the task, its input abridged, the answer schema, and how long that is."""
