"""Mandates: read from words or fields, and whether they can be kept."""
