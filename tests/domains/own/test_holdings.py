"""Books of a user's own: what a spreadsheet writes is read, every mistake is told with file, line and remedy."""

from __future__ import annotations

from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from tests.domains.own.mistakes import OF_QUANTITIES, OF_WEIGHTS, QUANTITIES, WEIGHTS, Mistake

from finskillbench.domains import catalog_files
from finskillbench.domains.catalog import Catalog, examine_catalog, read_catalog_folder
from finskillbench.domains.risk.user_catalogs.books import BOOKS, tasks_of_book
from finskillbench.edition import Edition
from finskillbench.errors import CatalogError, InputError
from finskillbench.panels import Panels, read_panels
from finskillbench.sources.catalog.holdings import HoldingsBook


def read(tmp_path: Path, text: str | bytes, name: str = "fund", **more: str) -> Catalog:
    """A catalog of one book, and JSON files named without their ending."""
    folder = tmp_path / "mine"
    (folder / "holdings").mkdir(parents=True, exist_ok=True)
    (folder / "holdings" / f"{name}.csv").write_bytes(text.encode() if isinstance(text, str) else text)
    for file, content in more.items():
        (folder / f"{file}.json").write_text(content)
    return read_catalog_folder(folder, catalog_files())


def books(catalog: Catalog) -> tuple[HoldingsBook, ...]:
    return catalog.of(BOOKS) or ()


@pytest.mark.parametrize(
    ("text", "mistake"),
    [(WEIGHTS, one) for one in OF_WEIGHTS] + [(QUANTITIES, one) for one in OF_QUANTITIES],
    ids=[one.told[:60] for one in (*OF_WEIGHTS, *OF_QUANTITIES)],
)
def test_a_mistake_in_a_book_is_told(text: str, mistake: Mistake, tmp_path: Path) -> None:
    assert mistake.old in text
    with pytest.raises(CatalogError) as caught:
        read(tmp_path, text.replace(mistake.old, mistake.new, 1))
    told = [one for one in caught.value.mistakes if mistake.told in one]
    assert len(told) == 1, caught.value.mistakes
    assert told[0].startswith("holdings/fund.csv, line ")
    assert "\n" not in told[0]


def test_weights_and_quantities_are_read(tmp_path: Path) -> None:
    (fund,) = books(read(tmp_path, WEIGHTS))
    assert (fund.name, fund.as_of, fund.quantities) == ("fund", date(2024, 3, 28), False)
    assert [(row.line, row.symbol, row.amount) for row in fund.rows] == [
        (2, "AAA", 0.5),
        (3, "BBB", 0.3),
        (4, "CCC", 0.15),
    ]
    assert (fund.cash, fund.nav, fund.mandate) == (0.05, 2.5e6, "core")
    (held,) = books(read(tmp_path, QUANTITIES))
    assert [row.amount for row in held.rows] == [1000, -250.5, 40000]
    assert (held.quantities, held.cash, held.nav, held.mandate) == (True, 125000, None, None)


@pytest.mark.parametrize(
    "written",
    [
        b"\xef\xbb\xbf" + WEIGHTS.encode(),
        WEIGHTS.replace("\n", "\r\n").encode(),
        WEIGHTS.replace("\n", "\r").encode(),
        WEIGHTS.replace("date,symbol", 'Date, "Symbol"').replace("AAA", " aaa ").encode(),
        (WEIGHTS + "\n,,,,\n2024-03-28,DDD,0,,\n").encode(),
    ],
    ids=["byte-order mark", "Windows", "carriage returns", "capitals and blanks", "empty rows and zeros"],
)
def test_what_spreadsheets_write_is_read(written: bytes, tmp_path: Path) -> None:
    (fund,) = books(read(tmp_path, written))
    assert [(row.symbol, row.amount) for row in fund.rows] == [("AAA", 0.5), ("BBB", 0.3), ("CCC", 0.15)]


def test_each_date_of_a_file_is_a_book_and_share_classes_are_spelt_as_prices_are(tmp_path: Path) -> None:
    later = WEIGHTS.replace("2024-03-28", "2024-06-28").replace("BBB", "BRK.B").split("\n", 1)[1]
    first, second = books(read(tmp_path, WEIGHTS + later))
    assert (first.as_of, second.as_of) == (date(2024, 3, 28), date(2024, 6, 28))
    assert second.rows[1].symbol == "BRK-B"
    assert read(tmp_path, WEIGHTS + later).dates == (date(2024, 3, 28), date(2024, 6, 28))


def test_files_are_named_as_books_are(tmp_path: Path) -> None:
    with pytest.raises(
        CatalogError, match=r"holdings/my fund.csv: 'my fund' is not a valid name of a book; rename the file"
    ):
        read(tmp_path, WEIGHTS, "my fund")
    (tmp_path / "mine" / "holdings" / "my fund.csv").unlink()
    read(tmp_path, WEIGHTS)
    with pytest.raises(CatalogError, match=r"holdings/fund.csv: has the name of holdings/FUND.csv; rename one of them"):
        read(tmp_path, WEIGHTS, "FUND")


def test_mistakes_of_several_rows_are_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(CatalogError) as caught:
        read(tmp_path, WEIGHTS.replace("0.3", "30%").replace("0.15", "x").replace("2500000", "1"))
    lines = [one.partition(":")[0].rpartition(" ")[2] for one in caught.value.mistakes]
    assert lines == ["2", "3", "4"]


@pytest.fixture(scope="module")
def panels(synthetic_edition: Edition) -> Panels:
    return read_panels(synthetic_edition.path / "panels")


CORE = """{"extends": true, "mandates": [{"mandate_id": "core", "name": "Core", "tier": "easy", "constraints": [
{"type": "long_only", "value": true}, {"type": "position_limit_max", "value": %s},
{"type": "beta_range", "min": %s, "max": 1.5}, {"type": "tracking_error_max", "value": %s}]}]}"""


def examined(catalog: Catalog, panels: Panels) -> tuple[str, ...]:
    try:
        examine_catalog(catalog, catalog_files(), panels)
    except CatalogError as error:
        return error.mistakes
    return ()


def a_book(panels: Panels, text: str = WEIGHTS) -> str:
    """The book in names of the market, at one of its risk dates."""
    names = dict(zip(("AAA", "BBB", "CCC"), panels.symbols_at(panels.risk_dates[-1]), strict=False))
    for name, symbol in names.items():
        text = text.replace(name, symbol)
    return text.replace("2024-03-28", str(panels.risk_dates[-1]))


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("{symbol}", "ZZZ", "line 3: symbol: ZZZ is not in the universe; add it to the raw files"),
        ("{date}", "2031-01-31", "line 2: date: 2031-01-31 is outside the prices; they run from "),
        ("{date}", "1999-12-31", "line 2: date: 1999-12-31 is outside the prices"),
        ("{date}", "2016-03-31", "line 2: date: too few names of the universe have a year of prices"),
        (",core", ",coer", "line 2: mandate: there is no 'coer'; choose one of simple_long_only"),
        ("0.3,,\n", "-0.3,,\n", "is short, and the mandate core is long-only; correct the sign, or leave mandate"),
    ],
)
def test_a_book_is_held_against_the_market(old: str, new: str, told: str, panels: Panels, tmp_path: Path) -> None:
    text = a_book(panels)
    places = {"symbol": text.splitlines()[2].split(",")[1], "date": str(panels.risk_dates[-1])}
    text = text.replace(old.format(**places), new).replace("0.05,,", "0.65,," if new.startswith("-") else "0.05,,")
    mistakes = examined(read(tmp_path, text, mandates=CORE % (0.1, 0.5, 0.3)), panels)
    assert [one for one in mistakes if told in one], mistakes
    assert all(one.startswith("holdings/fund.csv, line ") for one in mistakes)


def test_quantities_without_worth_are_told(panels: Panels, tmp_path: Path) -> None:
    tiny = a_book(panels, QUANTITIES).replace("1000\n", "1\n").replace("40000", "2").replace("-250.5", "1")
    (told,) = examined(read(tmp_path, tiny.replace("125000", "5")), panels)
    assert "quantity: the book of" in told
    assert told.endswith("it must be worth 10,000")
    assert examined(read(tmp_path, a_book(panels, QUANTITIES)), panels) == ()


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        ((0.02, 1.3, 0.3), "keeps the mandate core; loosen position_limit_max or beta_range, or add names"),
        ((0.1, 1.45, 0.01), "keeps the mandate core; loosen "),
    ],
)
def test_a_mandate_that_no_portfolio_keeps_is_told_by_its_line(
    limits: tuple[float, ...], told: str, panels: Panels, tmp_path: Path
) -> None:
    (mistake,) = examined(read(tmp_path, a_book(panels), mandates=CORE % limits), panels)
    assert mistake.startswith("mandates.json, line 1: mandates[0]: no portfolio of the ")
    assert told in mistake
    assert examined(read(tmp_path, a_book(panels), mandates=CORE % (0.1, 0.5, 0.3)), panels) == ()


def test_the_tasks_of_a_book_are_found_by_its_name() -> None:
    manifest = {"parameters": {"books": {"core-20240328": {}, "core-20240628": {}, "my_core-20240328": {}}}}
    tasks = [
        f"{prefix}_2024-03-28_{book}-20240328{end}"
        for prefix in ("rm_cm", "rm_ri")
        for book in ("core", "my_core")
        for end in ("", "_pension")
    ]
    patterns = tasks_of_book(manifest, "core")
    found = [task for task in tasks if any(fnmatchcase(task, pattern) for pattern in patterns)]
    assert found == [task for task in tasks if "my_core" not in task]
    assert tasks_of_book(manifest, "core-20240628") == ["*_????-??-??_core-20240628", "*_????-??-??_core-20240628_*"]
    with pytest.raises(InputError, match="no portfolio 'fund'; there are core, my_core"):
        tasks_of_book(manifest, "fund")
    with pytest.raises(InputError, match="it has no user holdings"):
        tasks_of_book({}, "fund")
