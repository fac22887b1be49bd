"""Raw files of companies: which names there are, their sectors, their published statements and share counts."""
