"""Answers to desk cases derived from what an agent is shown, without a line of the code that made the cases."""
