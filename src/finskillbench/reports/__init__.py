"""Tables, pages and files made from the rows of runs."""
