"""Providers of daily prices: what each is asked, and how its answer becomes a file of `sources.market.prices`."""
