"""The page of a report: `write_page` makes a folder that opens from disk without a network.

Templates are Jinja's with everything escaped, the script is a few hundred lines of our own, and nothing is built: what
is in the folder `templates` is what a reader finds in the page.
"""

from finskillbench.reports.page.write import WrittenPage, write_page

__all__ = ["WrittenPage", "write_page"]
