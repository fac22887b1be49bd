"""A `Table` written down: as text for a terminal, and as the formats that papers and programs read."""
