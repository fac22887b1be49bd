"""Raw files of companies: constituents, universe, published statements and share counts."""
