"""What people look at: tables, pages and files made of the rows of any runs."""
