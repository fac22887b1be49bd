"""The built site in a browser: nothing is fetched, every page fits, can be read by all, and is found by the search."""

from __future__ import annotations

import html
import inspect
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect, sync_playwright
from tests.reports.page.test_in_browser import CHROMIUM, QUIET, QUIETER, THEMES, violations
from tests.sampling import thorough

import finskillbench

PAGES = ("index", "journeys/evaluate-a-skill", "commands/run", "api/run", "SECURITY", "running", "raw-data")

pytestmark = [pytest.mark.slow, thorough]
needs_browser = pytest.mark.skipif(
    CHROMIUM is None, reason="no browser: apt-get install chromium, or name one by CHROMIUM"
)


@pytest.fixture(scope="module")
def browser(site: Path) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*QUIET, *QUIETER])
        yield browser
        browser.close()


@pytest.mark.parametrize("name", finskillbench.__all__)
def test_every_public_name_is_told_in_the_words_of_its_docstring(site: Path, name: str) -> None:
    page = (site / "api" / f"{name}.html").read_text(encoding="utf-8").split("<article")[1].split("</article")[0]
    text = " ".join(html.unescape(re.sub(r"<[^>]+>", "", page)).split())
    first = (inspect.getdoc(getattr(finskillbench, name)) or "").split("\n\n")[0]
    assert " ".join(first.replace("`", "").split()) in text
    if inspect.isfunction(getattr(finskillbench, name)):
        for parameter in inspect.signature(getattr(finskillbench, name)).parameters:
            assert parameter in text


def test_no_page_names_what_would_be_fetched(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        asked = re.findall(r'<(?:script|img|link|iframe)\b[^>]*?(?:src|href)="(\w+:)?//[^"]*"', text)
        assert not asked, page


@needs_browser
@pytest.mark.parametrize(("page", "theme"), list(product(PAGES, THEMES)))
def test_a_page_is_accessible_and_fits(browser: Browser, site: Path, page: str, theme: str) -> None:
    for width in (390, 1280):
        window = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=theme)
        asked: list[str] = []
        wrong: list[str] = []
        window.on("request", lambda request, asked=asked: asked.append(request.url))
        window.on("console", lambda message, wrong=wrong: wrong.append(message.text))
        window.on("pageerror", lambda error, wrong=wrong: wrong.append(str(error)))
        window.goto((site / f"{page}.html").as_uri())
        window.wait_for_load_state("load")
        assert window.evaluate("document.documentElement.scrollWidth") <= width
        assert all(url.startswith(("file:", "data:", "blob:")) for url in asked), asked
        assert wrong == []  # before axe, which asks for the style sheets itself
        assert violations(window) == []
        window.close()


@needs_browser
def test_the_search_finds_a_command_from_disk(browser: Browser, site: Path) -> None:
    window = browser.new_page(viewport={"width": 1280, "height": 900})
    window.goto((site / "index.html").as_uri())
    window.locator("input.md-search__input").click()
    window.keyboard.type("skills eval")
    result = window.locator(".md-search-result__item").first
    expect(result).to_be_visible(timeout=20_000)
    expect(window.locator(".md-search-result__list")).to_contain_text("skills eval")
    window.close()
