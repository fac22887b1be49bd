"""The fictional economy and its companies: factors, macro series, names, returns and published figures."""
