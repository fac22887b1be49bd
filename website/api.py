"""A page for every name of the public API, in the order and under the heads of the package's own docstring."""

from __future__ import annotations

import re

import finskillbench


def pages() -> dict[str, str]:
    """Markdown of each page by its place in the site; mkdocstrings reads the docstrings from the source."""
    doc = finskillbench.__doc__ or ""
    lead, _, rest = doc.partition("Functions:")
    text = "Functions:" + rest
    linked = re.sub(r"`(\w+)(\([^`]*\))?`", _linked, text)
    index = f"# Python\n\n{_fenced(lead)}\n\n{linked}"
    return {"api/index.md": index, **{f"api/{name}.md": _page(name) for name in finskillbench.__all__}}


def _linked(found: re.Match[str]) -> str:
    return f"[{found[0]}]({found[1]}.md)" if found[1] in finskillbench.__all__ else found[0]


def _fenced(lead: str) -> str:
    """The lead of the docstring with its example as a block of Python."""
    first, *paragraphs = lead.strip().split("\n\n")
    prose = [part for part in paragraphs if not part.startswith("    ")]
    code = [re.sub("^    ", "", part, flags=re.MULTILINE) for part in paragraphs if part.startswith("    ")]
    return "\n\n".join([first.partition(": ")[2].capitalize(), *prose, "```python", "\n\n".join(code), "```"]).replace(
        "```python\n\n", "```python\n"
    )


def _page(name: str) -> str:
    """The page of a name; one that is made of another function, as `run` of `arun`, shows the docstring of that."""
    head = [f"# {name}", "", "```python", f"from finskillbench import {name}", "```", ""]
    made_of = getattr(getattr(finskillbench, name), "__wrapped__", None)
    if made_of is None:
        return "\n".join([*head, f"::: finskillbench.{name}", ""])
    intro = f"`{name}` takes what [`{made_of.__name__}`]({made_of.__name__}.md) takes, and waits for it:"
    return "\n".join([*head, intro, "", f"::: finskillbench.{made_of.__name__}", ""])
