"""Panels of what companies filed: facts, reports, segments, and what was public on a day."""
