"""Raw files of a market: prices, factors and macro series, and their collection as one checked `MarketData`."""
