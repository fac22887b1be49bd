"""One module for each table: `Results` in, a `Table` out."""
