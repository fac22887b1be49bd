"""The pages of the site that are made of code: one for every command, one for every name of the public API."""

from __future__ import annotations

import posixpath
import re

import pytest
import yaml
from typer.testing import CliRunner

import finskillbench
from finskillbench.cli import app
from website import api, commands, pages

COMMANDS = dict(commands.walk())
MADE = commands.pages()


def _listed(*path: str) -> list[str]:
    """The commands that the help page of the program, or of a group, lists."""
    shown = CliRunner().invoke(app, [*path, "--help"]).output.split("-h, --help")[1]
    return re.findall(r"^  ([a-z][a-z-]+)  ", shown, re.MULTILINE)


def test_every_command_has_its_page() -> None:
    groups = {path[0] for path in COMMANDS if len(path) == 2}
    listed = [(name,) for name in _listed() if name not in groups]
    listed += [(group, name) for group in _listed() if group in groups for name in _listed(group)]
    assert {"data", "skills"} <= groups
    assert set(COMMANDS) == set(listed)
    assert set(MADE) == {"commands/index.md", *(f"commands/{'-'.join(path)}.md" for path in listed)}


@pytest.mark.slow
@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_a_page_has_every_option_with_its_words_and_bounds(path: tuple[str, ...]) -> None:
    """What the help page prints, apart from line breaks and what Markdown needs escaped."""
    page = re.sub(r"\\(.)", r"\1", MADE[f"commands/{'-'.join(path)}.md"])
    shown = CliRunner().invoke(app, [*path, "--help"], terminal_width=10_000).output
    options = re.findall(r"^  (?:-\w, )?(--[\w-]+)[^\n]*?  +(\S[^\n]*)$", shown, re.MULTILINE)
    assert ("--help", "Show this message and exit.") in options
    for name, words in options:
        text, _, bounds = words.removesuffix("]").rpartition("  [") if words.endswith("]") else (words, "", "")
        assert f"`{name}" in page or f", {name}" in page, name
        assert " ".join(text.split()) in page, name
        for bound in bounds.split("; "):
            assert "922337" in bound or bound in page, (name, bound)
    assert f"```bash\nfinskillbench {' '.join(path)} [OPTIONS]" in page
    assert re.search(r"^## Examples?$", page, re.MULTILINE)


def test_every_public_name_has_its_page_and_is_linked() -> None:
    made = api.pages()
    assert set(made) == {"api/index.md", *(f"api/{name}.md" for name in finskillbench.__all__)}
    for name in finskillbench.__all__:
        assert f"({name}.md)" in made["api/index.md"], name
        assert f"::: finskillbench.{'arun' if name == 'run' else name}\n" in made[f"api/{name}.md"]


def test_files_outside_docs_are_pages_as_they_stand() -> None:
    made = pages.pages()
    for source, place in pages.PLACES.items():
        path = pages.ROOT / source
        if path.suffix == ".md":
            assert made[place] == path.read_text(encoding="utf-8")
        elif path.is_file():
            assert path.read_text(encoding="utf-8").rstrip() in made[place]
    assert "from pathlib import Path" in made["examples/notebooks.md"]


def test_links_of_the_repository_lead_to_pages() -> None:
    assert pages.linked("[docs/skills.md](docs/skills.md#a)", "CONTRIBUTING.md") == "[skills](skills.md#a)"
    assert pages.linked("[x](../SECURITY.md)", "skills.md") == "[x](SECURITY.md)"
    assert pages.linked("[x](../../SECURITY.md)", "journeys/run-a-model.md") == "[x](../SECURITY.md)"
    assert pages.linked("[x](#here) [y](https://a.b/c)", "skills.md") == "[x](#here) [y](https://a.b/c)"
    with pytest.raises(LookupError, match=r"ARCHITECTURE\.md: src/finskillbench is no page"):
        pages.linked("[x](src/finskillbench)", "ARCHITECTURE.md")


def test_every_page_of_docs_is_in_the_navigation() -> None:
    text = re.sub(r"!!python/\S+ \{.*\}", "null", (pages.ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    sections = yaml.safe_load(text)["nav"]
    named = {
        posixpath.normpath(item if isinstance(item, str) else next(iter(item.values())))
        for section in sections
        for items in section.values()
        for item in items
    }
    written = {path.relative_to(pages.ROOT / "docs").as_posix() for path in (pages.ROOT / "docs").rglob("*.md")}
    assert named == written | set(pages.PLACES.values())
