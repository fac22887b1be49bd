"""Pages in a real browser: nothing is fetched, nothing fails, everything can be reached and is described.

They need Chromium (Debian's package, or any by CHROMIUM) and are skipped where there is none.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import polars as pl
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect, sync_playwright
from tests.sampling import sampled

from finskillbench.reports.page import WrittenPage

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
QUIET = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync")
QUIETER = ("--disable-component-update", "--disable-quic")
THEMES = ("light", "dark")
VIEWPORTS = ((390, "light"), (820, "dark"), (1280, "light"))
"""Widths in pixels, each with a theme: a theme changes no layout."""

pytestmark = [
    pytest.mark.slow,  # a browser starts
    pytest.mark.skipif(CHROMIUM is None, reason="no browser: apt-get install chromium, or name one by CHROMIUM"),
]


FAULTS = """() => {
  const faults = [];
  for (const each of document.querySelectorAll("figure details")) each.open = true;
  const seen = (e) => e.getClientRects().length && !e.closest(".hidden");
  for (const e of document.querySelectorAll(".scroll, td, th, p, h1, h2, h3, nav, dd, .tile"))
    if (seen(e) && !e.closest("details:not([open])") && e.scrollWidth > e.clientWidth + 1)
      faults.push(`${e.tagName} wider than its room: ${e.textContent.trim().slice(0, 60)}`);
  for (const svg of document.querySelectorAll("figure svg")) {
    if (!seen(svg)) continue;
    const room = svg.getBoundingClientRect();
    const texts = [...svg.querySelectorAll("text")];
    if (!texts.length) faults.push(`${svg.closest("figure").id}: empty`);
    for (const text of texts) {
      const box = text.getBoundingClientRect();
      const out = Math.max(room.left - box.left, box.right - room.right, room.top - box.top, box.bottom - room.bottom);
      if (out > 1 || text.lastChild.textContent.endsWith("…")) faults.push(`cut off: ${text.textContent}`);
      if (parseFloat(getComputedStyle(text).fontSize) * room.width / svg.viewBox.baseVal.width < 9)
        faults.push(`too small: ${text.textContent}`);
    }
  }
  for (const figure of document.querySelectorAll("figure")) {
    const rows = [...figure.querySelectorAll("tbody tr")].map((row) =>
      [...row.querySelectorAll(".number")].map((cell) => cell.textContent).join());
    if (new Set(rows).size < 2) faults.push(`${figure.id}: constant`);
    if (!figure.querySelector(".note").textContent.startsWith("Over ")) faults.push(`${figure.id}: no population`);
  }
  return faults;
}"""
"""Parts of a page that are cut off, too small to read, empty, constant, or of an unnamed population."""


@pytest.fixture(scope="module")
def browser(hostile_page: WrittenPage, pages: dict[str, WrittenPage]) -> Iterator[Browser]:
    """One browser for all; the pages are made before, since it keeps an event loop running in this thread."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*QUIET, *QUIETER])
        yield browser
        browser.close()


class Watched:
    """A page that remembers what went wrong in it and what it asked for."""

    def __init__(self, browser: Browser, file: Path, theme: str = "light", width: int = 1280) -> None:
        self.wrong: list[str] = []
        self.asked: list[str] = []
        self.page: Page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=theme)
        self.page.on("console", lambda message: self.wrong.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(file.as_uri())

    def check(self) -> None:
        assert self.wrong == []
        assert all(url.startswith("file://") and url.split("#")[0].endswith(".html") for url in self.asked), self.asked
        assert self.page.evaluate("window.broken") is None


def violations(page: Page) -> list[str]:
    found = Axe().run(page).response["violations"]
    return [
        f"{each['id']} ({each['impact']}): {each['nodes'][0]['html'][:120]}"
        for each in found
        if each["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize(
    ("case", "viewport"), sampled(product(("programs", "one", "second", "both", "nine"), VIEWPORTS), 3)
)
def test_a_page_is_accessible_and_everything_in_it_can_be_seen(
    browser: Browser, pages: dict[str, WrittenPage], case: str, viewport: tuple[int, str]
) -> None:
    width, theme = viewport
    watched = Watched(browser, pages[case].index, theme, width)
    assert watched.page.evaluate("document.documentElement.scrollWidth") <= width
    assert watched.page.evaluate(FAULTS) == []
    assert violations(watched.page) == []
    watched.check()
    watched.page.close()


@pytest.mark.parametrize("theme", sampled(THEMES[::-1], 2))
def test_hostile_pages_do_nothing_and_are_accessible(browser: Browser, hostile_page: WrittenPage, theme: str) -> None:
    for file in (hostile_page.index, *sorted(hostile_page.index.parent.glob("episodes/*.html"))[:3]):
        watched = Watched(browser, file, theme, 390)
        assert watched.page.evaluate("document.documentElement.scrollWidth") <= 390
        assert violations(watched.page) == []
        watched.check()
        watched.page.close()


def test_a_table_is_sorted_by_its_heads(browser: Browser, whole_page: WrittenPage) -> None:
    watched = Watched(browser, whole_page.index)
    table = watched.page.locator("table.heat").first

    def column() -> list[float]:
        return [float(text) for text in table.locator("tbody").first.locator("tr td:nth-child(3)").all_inner_texts()]

    before = column()
    head = table.locator("thead th").nth(2)
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    assert column() == sorted(before, reverse=True) != before
    head.locator("button").click()
    assert column() == sorted(before)
    watched.check()
    watched.page.close()


def test_filters_and_the_order_of_the_episodes(
    browser: Browser, whole_rows: pl.DataFrame, whole_page: WrittenPage
) -> None:
    def shows(*chosen: pl.Expr) -> str:
        return f"{whole_rows.filter(*chosen).height:,} of {whole_rows.height:,} rows"

    watched = Watched(browser, whole_page.index)
    page = watched.page
    count = page.locator("#count")
    assert count.inner_text().startswith(f"{shows()}, mean score 0.")
    model = pl.col("model") == "provider/model-2"
    page.locator("select[name=m]").select_option(label="provider/model-2")
    assert count.inner_text().startswith(shows(model))
    page.locator("select[name=c]").select_option(label="curated")
    page.locator("select[name=s]").select_option(label="rebalancing")
    chosen = (model, pl.col("condition") == "curated", pl.col("sub_task") == "rebalancing")
    assert count.inner_text().startswith(shows(*chosen))
    page.get_by_label("Score at most").fill("0.5")
    page.locator("#list").get_by_role("button", name="Score").click()
    head = page.locator("#list thead th").filter(has_text="Score")
    place = page.locator("#list thead th").all_inner_texts().index("Score")
    shown = [float(text) for text in page.locator(f"#list tbody td:nth-child({place + 1})").all_inner_texts()]
    assert head.get_attribute("aria-sort") == "descending"
    assert shown == sorted(shown, reverse=True)
    assert max(shown) <= 0.5
    page.get_by_role("button", name="Clear").click()
    expect(count).to_have_text(re.compile(f"^{shows()}"))
    page.get_by_label("Episode name").fill("REBALANCING_007")
    assert count.inner_text().startswith(shows(pl.col("task_id") == "rebalancing_007"))
    page.get_by_role("button", name="Clear").click()
    expect(page.locator("#where")).to_have_text("1 to 50")
    page.get_by_role("button", name="Next").click()
    assert page.locator("#where").inner_text() == "51 to 100"
    watched.check()
    page.close()


def test_from_a_cell_to_a_trajectory_with_the_keyboard_alone(browser: Browser, hostile_page: WrittenPage) -> None:
    watched = Watched(browser, hostile_page.index)
    page = watched.page
    cell = page.locator("table.heat td a").first
    cell.focus()
    page.keyboard.press("Enter")
    page.wait_for_function("document.activeElement.id === 'episodes-title'")
    assert re.match(r"1 of 12 rows", page.locator("#count").inner_text())
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent") == "read":
            break
    page.keyboard.press("Enter")
    page.wait_for_url("**/episodes/*.html")
    text = page.locator("main").inner_text()
    assert "Do it. </script><script>window.broken=1</script>" in text
    assert "expected and submitted" in text
    assert "PLANTED-TRUTH" in text
    watched.check()
    page.close()


def test_every_control_is_reached_by_the_tab_key(browser: Browser, hostile_page: WrittenPage) -> None:
    watched = Watched(browser, hostile_page.index)
    page = watched.page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    reached = set()
    for _ in range(400):
        page.keyboard.press("Tab")
        name = page.evaluate("(e => e.id || e.name || e.textContent.trim())(document.activeElement)")
        if name == "":
            break
        reached.add(name)
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none" or page.evaluate("document.activeElement.matches('.tabs input, body')"), name
    assert {"theme", "m", "c", "s", "st", "most", "text", "read"} <= reached
    page.close()


def test_dark_and_light_are_chosen_by_the_button(browser: Browser, hostile_page: WrittenPage) -> None:
    watched = Watched(browser, hostile_page.index, "light")
    page = watched.page
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.get_by_role("button", name="Dark").click()
    assert page.evaluate(ground) != light
    page.get_by_role("button", name="Light").click()
    assert page.evaluate(ground) == light
    watched.check()
    page.close()


def test_what_is_printed_is_light_and_has_no_controls(browser: Browser, whole_page: WrittenPage) -> None:
    watched = Watched(browser, whole_page.index, "dark")
    page = watched.page
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.querySelector('section')).color") == "rgb(29, 39, 51)"
    assert not page.locator("nav").is_visible()
    assert not page.locator("#filters").is_visible()
    assert page.locator("figure svg").first.is_visible()
    page.close()


def test_without_scripts_figures_tables_and_switches_are_there(browser: Browser, whole_page: WrittenPage) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(whole_page.index.as_uri())
    assert page.locator("figure svg").first.is_visible()
    tables = page.locator("table.heat")
    assert [tables.nth(place).is_visible() for place in range(tables.count())] == [True, False, False, False, False]
    page.locator(".tabs label").nth(2).click()
    assert tables.nth(2).is_visible()
    assert not tables.nth(0).is_visible()
    assert page.get_by_text("needs JavaScript").is_visible()
    context.close()
