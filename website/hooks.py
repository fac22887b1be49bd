"""What MkDocs calls while it builds the site: generated pages, links, languages of blocks, figures of tutorials."""

from __future__ import annotations

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import Abort
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from website import api, commands, journeys, pages
from website.blocks import blocks_of

_SEARCH = '<div class="md-search" data-md-component="search" role="dialog"'
GENERATED = {**commands.pages(), **api.pages()}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the generated pages into the navigation, under Reference."""
    (reference,) = [section for section in config.nav or [] if "Reference" in section]
    reference["Reference"] = [
        {"Commands": [place for place in GENERATED if place.startswith("commands/")]},
        {"Python": [place for place in GENERATED if place.startswith("api/")]},
    ]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made of code and of files outside docs/, and the figures that the tutorials make."""
    for place, markdown in {**GENERATED, **pages.pages()}.items():
        files.append(File.generated(config, place, content=markdown))
    for place, figure in journeys.figures().items():
        files.append(File.generated(config, place, content=figure.read_bytes()))
    for path in sorted((pages.ROOT / "website" / "assets").iterdir()):
        files.append(File.generated(config, f"assets/{path.name}", abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn what is written for the repository into what the site needs."""
    place = page.file.src_uri
    if place in GENERATED:
        return markdown
    try:
        return journeys.with_figure(_prepared(markdown, place), place)
    except LookupError as error:
        raise Abort(str(error)) from error


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Give the search of the theme the name that a screen reader says."""
    return output.replace(_SEARCH, f'{_SEARCH} aria-label="Search"')


def _prepared(markdown: str, place: str) -> str:
    """Links lead to pages outside of blocks; indented blocks for the shell become fenced ones, to be coloured."""
    lines = markdown.splitlines()
    made: list[str] = []
    done = 0
    for block in blocks_of(markdown, place):
        made.append(pages.linked("\n".join(lines[done : block.first - 1]), place))
        fenced = lines[block.first - 1].lstrip().startswith("```")
        kept = lines[block.first - 1 : block.last]
        made.append("\n".join(kept if fenced else [f"```{block.language}", block.text, "```"]))
        done = block.last
    return "\n".join([*made, pages.linked("\n".join(lines[done:]), place)])
