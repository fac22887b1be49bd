"""Answers that the audit scores: exploits, shortcuts and graded examples."""
