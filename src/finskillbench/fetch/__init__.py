"""Download EDGAR filings, factors, FRED series, constituents and prices into a raw collection.

`sources.fetched` records the origin of each file: nothing is downloaded twice, and altered files are not built.
"""
