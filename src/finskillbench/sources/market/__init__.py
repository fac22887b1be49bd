"""Raw files of a market: prices, factors and macro series, and a collection of them as one checked `MarketData`."""
