"""Tables of results: `Results` in, a `Table` out."""
