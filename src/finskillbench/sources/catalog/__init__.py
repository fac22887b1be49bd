"""Files that a user writes by hand: every mistake is told with file, line, field and remedy."""
