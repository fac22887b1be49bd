"""Public sources, asked by HTTP, as a raw collection: EDGAR, Kenneth R. French, FRED, constituents and prices.

`collect.fetch_collection` fills a folder in the layout that `sources.market.collection` and `sources.edgar.collection`
read; `sources.fetched` remembers what came from where, so that nothing is asked for twice and nothing altered is built.
"""
