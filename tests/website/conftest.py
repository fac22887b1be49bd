"""The site, built once for the tests that look at it, with a blank in place of each tutorial's figure."""

from __future__ import annotations

from pathlib import Path

import pytest

BLANK = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 600 200"><title>a figure</title></svg>'


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site. A warning of MkDocs, such as a link that leads nowhere, fails the build."""
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    from website import journeys

    folder = tmp_path_factory.mktemp("site")
    blank = folder / "blank.svg"
    blank.write_text(BLANK)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            journeys, "figures", lambda: {f"journeys/{page.stem}.svg": blank for page in journeys.tutorials()}
        )
        patch.chdir(journeys.ROOT)
        build(load_config("mkdocs.yml", site_dir=str(folder / "site"), strict=True))
    return folder / "site"
