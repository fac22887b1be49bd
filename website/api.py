"""A page for every name of the public API, in the order and under the heads of the package's own docstring."""

from __future__ import annotations

import re

import finskillbench


def pages() -> dict[str, str]:
    """Markdown of each page by its place in the site; the docstrings are put in by mkdocstrings, which reads the source."""
    doc = finskillbench.__doc__ or ""
    lead, _, rest = doc.partition("What is done with an edition:")
    text = "What is done with an edition:" + rest
    linked = re.sub(r"`(\w+)(\([^`]*\))?`", _linked, text)
    index = f"# Python\n\n{_fenced(lead)}\n\n{linked}"
    return {"api/index.md": index, **{f"api/{name}.md": _page(name) for name in finskillbench.__all__}}


def _linked(found: re.Match[str]) -> str:
    return f"[{found[0]}]({found[1]}.md)" if found[1] in finskillbench.__all__ else found[0]


def _fenced(lead: str) -> str:
    """The lead of the docstring with its example as a block of Python."""
    first, *paragraphs = lead.strip().split("\n\n")
    told = [part for part in paragraphs if not part.startswith("    ")]
    code = [re.sub("^    ", "", part, flags=re.MULTILINE) for part in paragraphs if part.startswith("    ")]
    return "\n\n".join([first.partition(": ")[2].capitalize(), *told, "```python", "\n\n".join(code), "```"]).replace(
        "```python\n\n", "```python\n"
    )


def _page(name: str) -> str:
    return f"# {name}\n\n```python\nfrom finskillbench import {name}\n```\n\n::: finskillbench.{name}\n"
