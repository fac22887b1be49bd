"""The HTML page of a report: `write_page` makes a folder that works from disk without a network.

Jinja templates with autoescaping and a short script, without a build step.
"""

from finskillbench.reports.page.write import WrittenPage, write_page

__all__ = ["WrittenPage", "write_page"]
