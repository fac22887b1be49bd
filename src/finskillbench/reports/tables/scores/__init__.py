"""Scores: conditions against each other, by whatever groups."""
