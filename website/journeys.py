"""The tutorials, run as a reader runs them, and the figure that each of them ends in.

A tutorial is one page of docs/journeys/. Its blocks for the shell are run one after another in a folder of its own; a
comment `<!-- figure: PATH | words -->` names the file that they have made by then, which the site shows in its place.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from pathlib import Path

from website.blocks import Block, blocks_of, run_shell
from website.pages import ROOT

FOLDER = ROOT / "docs" / "journeys"
BUILT = ROOT / "build" / "journeys"
EDITION = Path("editions/seven")
_OF_TUTORIAL = re.compile(r"<!-- figure: ([\w-]+) -->")
_FIGURE = re.compile(r"<!-- figure: (\S+) \| (.+?) -->", re.DOTALL)


def tutorials() -> list[Path]:
    """The pages of the tutorials."""
    return sorted(FOLDER.glob("*.md"))


def play(page: Path, folder: Path, edition: Path | None = None) -> Path:
    """Run a tutorial in an empty folder and return the figure that it made.

    With `edition` that folder stands where the tutorial builds one, and the block that builds it is left out.

    Raises
    ------
    BlockError : a block ended with an error.
    FileNotFoundError : the figure that the page names was not made.
    """
    blocks = [block for block in _blocks(page) if block.language == "bash" and block.not_run is None]
    if edition is not None:
        (folder / EDITION).parent.mkdir(parents=True)
        (folder / EDITION).symlink_to(edition.absolute())
        blocks = [block for block in blocks if not builds_the_edition(block)]
    run_shell(blocks, folder)
    figure = folder / figure_of(page)[0]
    if not figure.is_file():
        raise FileNotFoundError(f"{page.name} names the figure {figure}, which its blocks do not make")
    return figure


def builds_the_edition(block: Block) -> bool:
    """Whether a block does nothing but build the edition that all tutorials play on."""
    return block.text.startswith("finskillbench data build") and block.text.endswith(f"--out {EDITION}")


def figure_of(page: Path) -> tuple[str, str]:
    """The path of a tutorial's figure in the reader's folder, and what it shows, in words."""
    (found,) = _FIGURE.findall(page.read_text(encoding="utf-8"))
    return found[0], " ".join(found[1].split())


def figures() -> dict[str, Path]:
    """The figure of every tutorial by its place in the site: what is not made yet, or of other code, is made now."""
    return {f"journeys/{page.stem}.svg": _made(page) for page in tutorials()}


def with_figure(markdown: str, place: str) -> str:
    """The page with figures in the place of the comments that name them: its own, or that of a tutorial."""
    markdown = _FIGURE.sub(lambda found: f"![{' '.join(found[2].split())}]({Path(place).stem}.svg)", markdown)
    return _OF_TUTORIAL.sub(
        lambda found: f"![{figure_of(FOLDER / f'{found[1]}.md')[1]}]({FOLDER.name}/{found[1]}.svg)", markdown
    )


def _made(page: Path) -> Path:
    """The figure of a tutorial, run anew where its page or the code has changed since; the edition is kept by code."""
    code = _code()
    edition = BUILT / f"edition-{code}"
    if not edition.exists():
        shutil.rmtree(BUILT, ignore_errors=True)
        BUILT.mkdir(parents=True)
        (block,) = {
            block.text: block for each in tutorials() for block in _blocks(each) if builds_the_edition(block)
        }.values()
        run_shell([block], BUILT)
        (BUILT / EDITION).rename(edition)
    figure = BUILT / f"{page.stem}-{hashlib.sha256(page.read_bytes()).hexdigest()[:12]}.svg"
    if not figure.exists():
        folder = BUILT / page.stem
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        shutil.copyfile(play(page, folder, edition), figure)
    return figure


def _code() -> str:
    """A digest of the library: an edition or a figure made by another one is not shown."""
    found = hashlib.sha256()
    for path in sorted((ROOT / "src" / "finskillbench").rglob("*.py")):
        found.update(path.read_bytes())
    return found.hexdigest()[:12]


def _blocks(page: Path) -> list[Block]:
    return blocks_of(page.read_text(encoding="utf-8"), page.relative_to(ROOT).as_posix())
