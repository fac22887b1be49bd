"""Which file of the repository is which page of the site, and where its links lead there."""

from __future__ import annotations

import json
import posixpath
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLACES = {
    "ARCHITECTURE.md": "ARCHITECTURE.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "SECURITY.md": "SECURITY.md",
    "DATASHEET.md": "DATASHEET.md",
    "MAINTENANCE.md": "MAINTENANCE.md",
    "CHANGELOG.md": "CHANGELOG.md",
    "LICENSE": "LICENSE.md",
    "CITATION.cff": "CITATION.md",
    "packages/finskillbench-desk/docs/desk.md": "desk.md",
    "examples/liquidity-ladder": "examples/liquidity-ladder.md",
    "examples/local-model": "examples/local-model.md",
    "examples/notebooks": "examples/notebooks.md",
    "examples/training": "examples/training.md",
}
"""What lies outside docs/ and is a page: a file as it stands, or a folder by what is in it."""
_LINK = re.compile(r"\[([^\]\[]*)\]\((?!https?:|#)([^)#\s]+)(#[^)\s]*)?\)")


def pages() -> dict[str, str]:
    """Markdown of every page that lies outside docs/, by its place in the site, with links as in the repository."""
    return {place: _markdown(ROOT / source) for source, place in PLACES.items()}


def source_of(place: str) -> str:
    """The path in the repository of what a page of the site is made of."""
    return {place: source for source, place in PLACES.items()}.get(place, f"docs/{place}")


def linked(markdown: str, place: str) -> str:
    """The Markdown of the page at `place` with every relative link leading to the page of what it names.

    Raises
    ------
    LookupError : a link leads to something that is no page.
    """
    source = source_of(place)
    folder = source if (ROOT / source).is_dir() else posixpath.dirname(source)

    def turned(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, found[2]))
        there = PLACES.get(target) or (target.removeprefix("docs/") if target.startswith("docs/") else None)
        if there is None:
            raise LookupError(f"{source}: {found[2]} is no page of the site; name it in PLACES of website/pages.py")
        text = Path(found[1]).stem if found[1].endswith(".md") else found[1]
        return f"[{text}]({posixpath.relpath(there, posixpath.dirname(place) or '.')}{found[3] or ''})"

    return _LINK.sub(turned, markdown)


def _markdown(path: Path) -> str:
    if path.suffix == ".md":
        return path.read_text(encoding="utf-8")
    if path.is_dir():
        readme = path / "README.md"
        return readme.read_text(encoding="utf-8") if readme.exists() else _notebooks(path)
    language = {".py": "python", ".cff": "yaml"}.get(path.suffix, "text")
    return f"# {path.name}\n\n```{language}\n{path.read_text(encoding='utf-8').rstrip()}\n```\n"


def _notebooks(folder: Path) -> str:
    """Every notebook of a folder, cell by cell; heads go one level down, below that of the page."""
    lines = ["# Notebooks", ""]
    for path in sorted(folder.glob("*.ipynb")):
        lines += [f"*{path.name}*", ""]
        for cell in json.loads(path.read_bytes())["cells"]:
            text = "".join(cell["source"])
            code = cell["cell_type"] == "code"
            lines += ["```python", text, "```", ""] if code else [re.sub("^#", "##", text, flags=re.MULTILINE), ""]
    return "\n".join(lines)
