"""Answers of the risk subtasks that leave out a part of the work."""
