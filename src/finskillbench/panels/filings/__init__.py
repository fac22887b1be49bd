"""Panels of filings: facts, reports, revenue by segment, and point-in-time queries."""
