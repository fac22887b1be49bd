"""The board in a real browser: from a file, in both themes, on a narrow screen; accessible, and asking nobody.

It needs Chromium (Debian's package, or any by CHROMIUM) and is skipped where there is none.
"""

from __future__ import annotations

import os
import shutil
from datetime import date
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright
from tests.publish import hostile
from tests.publish.conftest import Bundled
from tests.publish.hostile import Forger
from tests.publish.test_hostile import EVIL

from finskillbench.edition import Edition
from finskillbench.publish.leaderboard import gather_bundles, write_site

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
QUIET = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync")

pytestmark = [
    pytest.mark.slow,  # a browser starts
    pytest.mark.skipif(CHROMIUM is None, reason="no browser: apt-get install chromium, or name one by CHROMIUM"),
]


@pytest.fixture
def site(bundled: Bundled, small: Edition, keys: dict[str, Path], tmp_path: Path) -> Path:
    """A board with three entries, one of which is markup throughout, a part of one, programs, and a refusal."""
    good = bundled("strong", url="https://lab.example")
    evil = Forger(bundled("middle", "Bob", "bob"), keys["bob"])
    evil.submitter(name=f"B{EVIL}"[:80], contact=f"b{EVIL}")
    hostile.model_name(evil, f"m{EVIL}")
    weak = bundled("weak", "Carl", None, partial=f"Because {EVIL}")
    broken = tmp_path / "broken.zip"
    broken.write_bytes(b"x")
    paths = [good, evil.path, weak, broken]
    programs = bundled("baselines", "House", None)
    gathered = gather_bundles(paths, small, programs=programs, unsigned=True, keep_going=True)
    write_site(gathered, small, tmp_path / "site", today=date(2026, 1, 2))
    return tmp_path / "site" / "index.html"


def test_the_board_is_accessible_and_fits(site: Path) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*QUIET])
        for theme, width in (("dark", 390), ("light", 1280)):
            wrong: list[str] = []
            asked: list[str] = []
            page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=theme)
            page.on("console", lambda message, wrong=wrong: wrong.append(message.text))
            page.on("pageerror", lambda error, wrong=wrong: wrong.append(str(error)))
            page.on("request", lambda request, asked=asked: asked.append(request.url))
            page.goto(site.as_uri())
            for each in page.locator("details").all():
                each.locator("summary").click()
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            found = Axe().run(page).response["violations"]
            assert [each["id"] for each in found if each["impact"] in ("serious", "critical")] == []
            assert (wrong, asked) == ([], [site.as_uri()])
            assert page.evaluate("window.broken") is None
            assert page.locator("img, iframe, form").count() == 0
            assert [each.get_attribute("href") for each in page.locator("#entries a").all()] == ["https://lab.example"]
            for each in page.locator("a[href$='.csv'], a[href$='.json']").all():
                assert (site.parent / str(each.get_attribute("href"))).is_file()
            page.close()
        browser.close()
