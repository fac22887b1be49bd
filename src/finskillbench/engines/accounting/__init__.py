"""Accounting engines: statements of one period, earnings quality and what moved revenue and margins."""
