"""Portfolio construction: optimise, rebalance, combine views; every answer comes with a certificate.

The modules are pure functions on arrays and frozen dataclasses: no files, no clock, no globals.
"""
