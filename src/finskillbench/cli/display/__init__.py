"""How commands show what they do: tables, progress, a live board."""
