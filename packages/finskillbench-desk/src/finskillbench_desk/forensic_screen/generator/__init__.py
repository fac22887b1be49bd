"""Generator of screening worlds: parameters, statements and pitfalls."""
