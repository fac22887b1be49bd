"""Raw files in, checked tables out: prices, factors, macro series, statements, constituents.

`market.collection.load_market` reads a raw collection; `synthetic.write_collection` writes one in the same formats.
Parsers check every byte they take: what cannot be trusted is a `SourceError` naming file and line.
"""
