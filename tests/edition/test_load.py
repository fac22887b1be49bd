"""Reading an edition: what was built comes back, what was altered is named."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.oracles.ceilings import published_ceiling

from finskillbench.domains import subtask_named
from finskillbench.edition import Edition, load_edition, references
from finskillbench.edition.store import digest_file, digest_of, episode_row, read_records, seal_of, write_lines
from finskillbench.episode import Episode, Profile, Submission, Truth
from finskillbench.errors import EditionError, InputError
from finskillbench.panels import read_panels
from finskillbench.runs.postprocess.scoring import score

KINDS = [
    "manifest.json",
    "panels/panels.json",
    "panels/prices.parquet",
    "panels/covariance/2025-01-31.npz",
    "episodes/rebalancing.jsonl",
    "truth/rebalancing.jsonl",
    "certificates/rebalancing.jsonl",
]


def test_episodes_and_truth_survive_the_disk(slim: Edition, tmp_path: Path) -> None:
    for episode in slim.episodes():
        truth = slim.truth(episode.task_id)
        write_lines(tmp_path / "one.jsonl", [episode_row(episode)])
        assert list(read_records(tmp_path / "one.jsonl", Episode)) == [episode]
        write_lines(tmp_path / "one.jsonl", [truth])
        assert list(read_records(tmp_path / "one.jsonl", Truth)) == [truth]


def test_every_label_scores_one_or_what_the_published_scorer_allows(slim: Edition) -> None:
    """But of subtasks that are played move by move, where a submission is not taken for what was played."""
    at_once = [episode for episode in slim.episodes() if subtask_named(episode.sub_task).open_interactive_state is None]
    labels = {episode.task_id: slim.truth(episode.task_id).expected_output for episode in at_once}
    for row in score(slim, [Submission(task_id, json.dumps(label)) for task_id, label in labels.items()]):
        most = published_ceiling(row["sub_task"], labels[row["task_id"]])
        # The published scorer of ranked lists is not clipped: repeated types lift even the right list over 1.
        scores = {profile: min(value, 1.0) for profile, value in row["scores"].items()}
        worth = {
            Profile.PAPER: pytest.approx(most),
            Profile.STRICT: pytest.approx(most),
            Profile.CERTIFIED: pytest.approx(1.0),
        }
        assert scores == {profile: worth[profile] for profile in subtask_named(row["sub_task"]).scorers}, row["task_id"]


@pytest.mark.parametrize("sub_task", ["constrained_optimization", "rebalancing"])
def test_full_input_resolves_the_covariance_exactly(slim: Edition, sub_task: str) -> None:
    """Of the whole universe, or of the names of a list: their rows and columns, in the order of the list."""
    universe: list[str] = slim.manifest["universe"]
    for episode in slim.episodes([sub_task]):
        table = slim.full_input(episode)["covariance_matrix"]
        named = episode.input["covariance_matrix"]["tickers"]
        assert table["tickers"] == named
        assert set(named) == set(episode.input["expected_returns"])
        with np.load(slim.path / episode.input["covariance_matrix"]["ref"]) as arrays:
            assert [str(symbol) for symbol in arrays["symbols"]] == universe
            places = [universe.index(ticker) for ticker in named]
            assert np.array_equal(np.array(table["matrix"]), arrays["cov"][np.ix_(places, places)])
        whole = sub_task == "constrained_optimization" and episode.input["objective"] != "risk_parity"
        assert (named == universe) is whole
        assert json.loads(json.dumps(table)) == table


def _asking(edition: Edition, **fields: Any) -> Episode:
    """An episode with a reference to returns."""
    tickers = list(reversed(edition.manifest["universe"][:4]))
    reference = {"tickers": tickers, "ref": "panels/returns.parquet", "end": "2025-01-31", "sessions": 252} | fields
    return replace(edition.episodes()[0], input={"returns": reference})


def test_full_input_resolves_returns_exactly(slim: Edition) -> None:
    table = slim.full_input(_asking(slim))["returns"]
    tickers = list(reversed(slim.manifest["universe"][:4]))
    prices = read_panels(slim.path / "panels").prices_of("adj_close")
    window = prices.filter(pl.col("date") <= date(2025, 1, 31)).tail(253)
    assert table["tickers"] == tickers
    assert table["dates"] == [str(day) for day in window["date"][1:]]
    assert table["dates"][-1] == "2025-01-31"
    levels = window.select(tickers).to_numpy()
    assert np.array_equal(np.array(table["matrix"]), (levels[1:] - levels[:-1]) / levels[:-1])
    assert json.loads(json.dumps(table)) == table
    assert slim.full_input(_asking(slim))["returns"] is table  # kept, not resolved again
    assert np.array(slim.full_input(_asking(slim, sessions=3))["returns"]["matrix"]).shape == (3, 4)


def test_what_was_resolved_is_kept_within_a_bound(slim: Edition, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(references, "_KEPT_NUMBERS", 4 * 252)
    edition = load_edition(slim.path)
    first = edition.full_input(_asking(edition))["returns"]
    assert edition.full_input(_asking(edition))["returns"] is first
    edition.full_input(_asking(edition, end="2025-01-30"))
    again = edition.full_input(_asking(edition))["returns"]
    assert again is not first
    assert again == first


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"end": "2025-02-01"}, "2025-02-01 is not a session"),
        ({"end": "1999-01-04"}, "1999-01-04 is not a session"),
        ({"end": "soon"}, "'soon' is not a date"),
        ({"sessions": 10**6}, "1000000 sessions up to"),
        ({"sessions": 0}, "0 sessions up to"),
        ({"sessions": None}, "lacks tickers or a number of sessions"),
        ({"tickers": ["NOBODY"]}, "no returns of NOBODY"),
    ],
)
def test_a_window_that_the_returns_do_not_hold(fields: dict[str, Any], told: str, slim: Edition) -> None:
    with pytest.raises(EditionError, match=rf"returns\.parquet: .*{told}.*; rebuild the edition$"):
        slim.full_input(_asking(slim, **fields))


def test_a_return_that_is_absent_is_named(workshop: Any) -> None:
    path = workshop.folder / "panels" / "returns.parquet"
    table = pl.read_parquet(path)
    symbol = table["symbol"][0]
    here = (pl.col("symbol") == symbol) & (pl.col("date") == date(2025, 1, 30))
    table.with_columns(pl.when(here).then(None).otherwise("simple").alias("simple")).write_parquet(path)
    edition = workshop.reload()
    with pytest.raises(EditionError, match=rf"no return of {symbol} on 2025-01-30"):
        edition.full_input(_asking(edition, tickers=[symbol]))
    path.write_bytes(b"PAR1")
    edition = workshop.reload()
    with pytest.raises(EditionError, match=r"returns\.parquet: cannot be read \("):
        edition.full_input(_asking(edition))


def test_a_reference_to_a_file_elsewhere_stays_as_it_is(slim: Edition) -> None:
    episode = _asking(slim, ref="../returns.parquet")
    assert slim.full_input(episode) == episode.input


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("place", [0.1, 0.5, 0.9])
def test_an_altered_byte_is_named(name: str, place: float, workshop: Any) -> None:
    file: Path = workshop.folder / name
    content = bytearray(file.read_bytes())
    content[int(place * len(content))] ^= 1
    file.write_bytes(content)
    with pytest.raises(EditionError, match=rf"{name.rsplit('/', 1)[-1]}\b"):
        load_edition(workshop.folder)


@pytest.mark.parametrize("name", KINDS)
def test_a_missing_file_is_named(name: str, workshop: Any) -> None:
    (workshop.folder / name).unlink()
    with pytest.raises(EditionError, match=name.rsplit("/", 1)[-1]):
        load_edition(workshop.folder)


def test_a_file_that_was_added_is_named(workshop: Any) -> None:
    (workshop.folder / "episodes" / "hints.txt").write_text("buy")
    with pytest.raises(EditionError, match=r"hints\.txt is not part of the edition"):
        load_edition(workshop.folder)


def test_a_field_of_the_manifest_cannot_be_altered(workshop: Any) -> None:
    workshop.edit_json("manifest.json", lambda manifest: manifest.update(seed=2))
    with pytest.raises(EditionError, match=r"manifest\.json was altered"):
        load_edition(workshop.folder)


def _drop(name: str):
    return lambda manifest: manifest.pop(name)


def _set(**fields: Any):
    return lambda manifest: manifest.update(fields)


@pytest.mark.parametrize(
    ("change", "told"),
    [(_drop(name), name) for name in ("source", "seed", "universe", "as_of_dates", "counts", "parameters", "notes")]
    + [
        (_drop("versions"), "versions"),
        (_set(as_of_dates=5), "as_of_dates"),
        (_set(as_of_dates=["May"]), r"as_of_dates\.0"),
        (_set(source=[]), "source"),
        (_set(source={"names": 30}), r"source\.kind"),
        (_set(counts={}), "counts"),
        (_set(counts={"rebalancing": "5"}), r"counts\.rebalancing"),
        (_set(counts={"../../secret": 1}), r"counts\.\.\./\.\./secret.*should match pattern"),
        (_set(parameters={"portfolio": 1}), r"parameters\.portfolio"),
        (_set(seed="1"), "seed"),
    ],
)
def test_a_sealed_manifest_with_a_wrong_field_is_one_line(change: Any, told: str, workshop: Any) -> None:
    workshop.edit_json("manifest.json", change)
    with pytest.raises(EditionError, match=rf"manifest\.json: {told}.*; rebuild the edition$") as caught:
        workshop.reload()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["../secret.txt", "panels/../../secret.txt", "/etc/hostname", "./manifest.json", "."])
def test_a_manifest_that_lists_a_file_elsewhere_is_refused(name: str, workshop: Any) -> None:
    secret = workshop.folder.parent / "secret.txt"
    secret.write_text("x")

    def reseal(manifest: dict[str, Any]) -> None:
        manifest["files"][name] = digest_file(secret)
        manifest["digest"] = digest_of(manifest["files"])
        manifest["seal"] = seal_of(manifest)

    workshop.edit_json("manifest.json", reseal)
    with pytest.raises(EditionError, match="the path leads out of the edition's folder"):
        load_edition(workshop.folder)


def test_without_truth_an_edition_loads_and_refuses_truth(workshop: Any) -> None:
    whole = load_edition(workshop.folder)
    for part in ("truth", "certificates"):
        shutil.rmtree(workshop.folder / part)
    handed_out = load_edition(workshop.folder)
    assert handed_out.digest == whole.digest
    assert len(handed_out.episodes()) == sum(whole.manifest["counts"].values())
    assert not handed_out.has_truth
    with pytest.raises(EditionError, match="has no truth"):
        handed_out.truth(handed_out.episodes()[0].task_id)


def test_what_an_edition_does_not_hold(slim: Edition, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no subtask alchemy; it holds unconstrained_optimization"):
        slim.episodes(["alchemy"])
    with pytest.raises(InputError, match="has no episode pc_uncon_x"):
        slim.truth("pc_uncon_x")
    with pytest.raises(EditionError, match=r"is not an edition: it has no manifest\.json"):
        load_edition(tmp_path)
    (tmp_path / "manifest.json").write_text('{"format": 99}')
    with pytest.raises(EditionError, match="not of format 1"):
        load_edition(tmp_path)
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(EditionError, match="not JSON"):
        load_edition(tmp_path)


@pytest.mark.parametrize(
    ("part", "change", "expected"),
    [
        ("episodes", _drop("metadata"), "the episode lacks 'metadata'"),
        ("episodes", _set(as_of_date="May"), r"invalid episode \(.*as_of_date"),
        ("episodes", _set(prompt={"task_description": "x"}), r"invalid episode \(.*output_instructions"),
        ("truth", _drop("proof"), "the truth lacks 'proof'"),
        ("truth", _set(expected_output=5), r"invalid truth \(.*expected_output"),
    ],
)
def test_a_sealed_line_with_a_wrong_field_is_named(part: str, change: Any, expected: str, workshop: Any) -> None:
    workshop.edit(part, "rebalancing", change, index=2)
    edition = workshop.reload()
    with pytest.raises(EditionError, match=rf"rebalancing\.jsonl, line 3: {expected}.*; rebuild the edition$"):
        edition.truth(edition.episodes()[0].task_id)
