"""Accounting engines: statements, earnings quality, drivers of revenue and margins."""
