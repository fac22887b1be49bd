"""Ratios of many companies over many quarters, as a screening for managed accounts needs them."""
