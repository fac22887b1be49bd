"""Answers scored by the audit: exploits, shortcuts and graded examples."""
