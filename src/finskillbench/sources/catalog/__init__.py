"""Hand-written files of a user, with all mistakes reported by file, line, field and remedy."""
