"""Texts for agents: system prompt, task, abridged input, answer schema, and token estimates."""
