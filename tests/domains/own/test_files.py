"""A user's own catalog files: what is right is read, every mistake is told with file, line, field and remedy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.domains.own.mistakes import (
    MANDATE,
    OF_MANDATES,
    OF_SCENARIOS,
    OF_TEXTS,
    OF_TIERS,
    SCENARIO,
    TEXTS,
    TIERS,
    Mistake,
)

from finskillbench.domains import catalog_files
from finskillbench.domains.catalog import Catalog, read_catalog_folder
from finskillbench.domains.portfolio.mandate_texts import built_in_sentences
from finskillbench.domains.portfolio.objects.settings import read_settings
from finskillbench.domains.portfolio.user_catalogs import sentences_for, settings_in
from finskillbench.domains.risk.catalogs import mandate_catalog, scenario_catalog
from finskillbench.domains.risk.user_catalogs.mandates import MANDATES, mandates_in
from finskillbench.domains.risk.user_catalogs.scenarios import SCENARIOS, scenarios_in
from finskillbench.errors import CatalogError, InputError


def read(tmp_path: Path, **files: str) -> Catalog:
    """A catalog of JSON files, named without their ending."""
    for name, text in files.items():
        (tmp_path / f"{name}.json").write_text(text, encoding="utf-8")
    return read_catalog_folder(tmp_path, catalog_files())


def refused(tmp_path: Path, name: str, text: str, mistake: Mistake) -> None:
    """One mistake in a file is told in one line, and nothing else is."""
    assert text.count(mistake.old) >= 1
    with pytest.raises(CatalogError) as caught:
        read(tmp_path, **{name: text.replace(mistake.old, mistake.new, 1)})
    told = [one for one in caught.value.mistakes if mistake.told in one]
    assert len(told) == 1, caught.value.mistakes
    assert told[0].startswith(f"{name}.json, line ")
    assert "; " in told[0]
    assert "\n" not in told[0]
    assert "catalog/" not in told[0]


@pytest.mark.parametrize("mistake", OF_MANDATES, ids=lambda one: one.told[:60])
def test_a_mistake_in_mandates_is_told(mistake: Mistake, tmp_path: Path) -> None:
    refused(tmp_path, "mandates", MANDATE, mistake)


@pytest.mark.parametrize("mistake", OF_TIERS, ids=lambda one: one.told[:60])
def test_a_mistake_in_tiers_is_told(mistake: Mistake, tmp_path: Path) -> None:
    refused(tmp_path, "tiers", TIERS, mistake)


@pytest.mark.parametrize("mistake", OF_TEXTS, ids=lambda one: one.told[:60])
def test_a_mistake_in_texts_is_told(mistake: Mistake, tmp_path: Path) -> None:
    refused(tmp_path, "texts", TEXTS, mistake)


def test_tiers_and_texts_are_added_or_replaced(tmp_path: Path) -> None:
    catalog = read(tmp_path, tiers=TIERS, texts=TEXTS)
    settings, built_in = settings_in(catalog), read_settings()
    assert settings["tiers"]["hard"]["sector_room"] == 0.02
    assert (settings["tiers"]["easy"], list(settings)) == (built_in["tiers"]["easy"], list(built_in))
    said, before = sentences_for(catalog), built_in_sentences()
    assert said["limits"]["max_weight"] == [
        *before["limits"]["max_weight"],
        json.loads(TEXTS)["limits"]["max_weight"][0],
    ]
    assert said["limits"]["min_names"] == before["limits"]["min_names"]
    assert len(said["openings"]) == len(before["openings"]) + 1
    short = {**before, "asides": ["The account holds USD {n} million."]}
    assert sentences_for(read(tmp_path, texts=json.dumps(short)))["asides"] == short["asides"]


@pytest.mark.parametrize("mistake", OF_SCENARIOS, ids=lambda one: one.told[:60])
def test_a_mistake_in_scenarios_is_told(mistake: Mistake, tmp_path: Path) -> None:
    refused(tmp_path, "scenarios", SCENARIO, mistake)


def test_all_mistakes_of_all_files_are_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(CatalogError) as caught:
        read(
            tmp_path,
            mandates=MANDATE.replace("0.08", "8").replace("easy", "simple"),
            scenarios=SCENARIO.replace("-0.03", "-3"),
            mandate="{}",
        )
    assert [one.partition(":")[0] for one in caught.value.mistakes] == [
        "mandate.json",
        "mandates.json, line 3",
        "mandates.json, line 5",
        "scenarios.json, line 11",
    ]
    assert caught.value.mistakes[0] == "mandate.json: not a catalog file; rename it to mandates.json, or remove it"


def test_a_file_of_nothing_but_mistakes_is_not_told_in_full(tmp_path: Path) -> None:
    with pytest.raises(CatalogError) as caught:
        read(tmp_path, mandates=json.dumps({f"field_{number}": 1 for number in range(200)}))
    assert len(caught.value.mistakes) == 51
    assert caught.value.mistakes[-1].endswith("more mistakes; correct these first")


@pytest.mark.parametrize("bytes_", [b"\xef\xbb\xbf" + MANDATE.encode(), MANDATE.replace("\n", "\r\n").encode()])
def test_what_editors_and_spreadsheets_add_is_read(bytes_: bytes, tmp_path: Path) -> None:
    (tmp_path / "mandates.json").write_bytes(bytes_)
    own = read_catalog_folder(tmp_path, catalog_files()).of(MANDATES)
    assert own is not None
    assert own.places == {"core": "mandates.json, line 3: mandates[0]"}


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (MANDATE.encode("utf-16"), "bytes that are not UTF-8; save the file as UTF-8"),
        (MANDATE.replace("Core", "Cör").encode("latin-1"), "line 3: bytes that are not UTF-8"),
        (MANDATE.encode().replace(b"Core", b"C\0re"), "line 3: a NUL byte; save the file as plain text"),
    ],
)
def test_a_file_that_is_no_text_is_refused(data: bytes, told: str, tmp_path: Path) -> None:
    (tmp_path / "mandates.json").write_bytes(data)
    with pytest.raises(CatalogError, match=told):
        read_catalog_folder(tmp_path, catalog_files())


def test_a_file_takes_the_place_of_the_built_in_one_or_extends_it(tmp_path: Path) -> None:
    ids = [one["mandate_id"] for one in mandate_catalog()["mandates"]]
    alone = mandates_in(read(tmp_path, mandates=MANDATE))
    assert [one["mandate_id"] for one in alone["mandates"]] == ["core"]
    beside = MANDATE.replace("{\n", '{\n  "extends": true,\n', 1)
    both = mandates_in(read(tmp_path, mandates=beside))
    assert [one["mandate_id"] for one in both["mandates"]] == [*ids, "core"]
    replaced = mandates_in(read(tmp_path, mandates=beside.replace('"core"', f'"{ids[0]}"')))
    assert [one["mandate_id"] for one in replaced["mandates"]] == [*ids[1:], ids[0]]
    assert replaced["mandates"][-1]["name"] == "Core Equity"
    assert mandates_in(Catalog()) == mandate_catalog()


def test_a_mandate_is_held_as_stated_unless_it_says_how_much_room_there_is(tmp_path: Path) -> None:
    (stated,) = mandates_in(read(tmp_path, mandates=MANDATE))["mandates"]
    assert stated.get("as_stated")
    roomy = MANDATE.replace('  "mandates"', '  "room": {"hhi_max": 0.02},\n  "mandates"')
    (fitted,) = mandates_in(read(tmp_path, mandates=roomy))["mandates"]
    assert "as_stated" not in fitted
    assert fitted.get("room") == {**mandate_catalog()["room"], "hhi_max": 0.02}


def test_what_the_command_writes_as_an_example_is_what_is_built_in(tmp_path: Path) -> None:
    for kind in catalog_files():
        for name, text in kind.example().items():
            path = tmp_path / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
    catalog = read_catalog_folder(tmp_path, catalog_files())
    usual = mandate_catalog()["room"]
    assert [{**one, "room": {**usual, **one.get("room", {})}} for one in mandate_catalog()["mandates"]] == mandates_in(
        catalog
    )["mandates"]
    assert scenarios_in(catalog) == scenario_catalog()
    assert set(catalog.contents) == {kind.name for kind in catalog_files() if kind.example()}
    assert sentences_for(catalog) == built_in_sentences()
    assert settings_in(catalog) == read_settings()


def test_scenarios_are_added_or_replaced_by_their_ids(tmp_path: Path) -> None:
    built_in = scenario_catalog()
    both = scenarios_in(read(tmp_path, scenarios=SCENARIO))
    assert [one["scenario_id"] for one in both["replays"]][-1] == "replay_own"
    assert len(both["hypothetical"]) == len(built_in["hypothetical"]) + 1
    alone = scenarios_in(read(tmp_path, scenarios=SCENARIO.replace('  "extends": true,\n', "")))
    assert [one["scenario_id"] for one in alone["hypothetical"]] == ["bank_run"]
    assert (both["severity"], both["replay_description"]) == (built_in["severity"], built_in["replay_description"])
    assert read(tmp_path, scenarios=SCENARIO).of(SCENARIOS) is not None


def test_a_folder_that_is_none_or_empty_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"--catalog must name a folder of catalog files, not .*nowhere"):
        read_catalog_folder(tmp_path / "nowhere", catalog_files())
    (tmp_path / ".DS_Store").write_text("x")
    with pytest.raises(InputError, match=r"is empty; it may hold .*mandates.json, scenarios.json"):
        read_catalog_folder(tmp_path, catalog_files())
