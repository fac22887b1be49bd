"""Mandates: parsing from text or fields, and feasibility."""
