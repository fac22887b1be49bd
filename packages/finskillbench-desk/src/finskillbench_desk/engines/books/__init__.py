"""Measures of a fund's records: sums, differences between two sources, and figures of the book."""
