"""Answers with which the audit tests the portfolio scorers: exploits, shortcuts, graded examples."""
