"""Scoring of remediations, and bounds that prove a cure cheapest."""
