"""Every bundle that does not fit is refused in one line that says why, and changes nothing."""

from __future__ import annotations

import json
import stat
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.publish import hostile
from tests.publish.conftest import Bundled
from tests.publish.hostile import Forger
from tests.sampling import sampled

from finskillbench.cli import main
from finskillbench.edition import Edition
from finskillbench.errors import InputError
from finskillbench.publish.bundle import ANSWERS, MANIFEST, ROWS, SIGNATURE, archive
from finskillbench.publish.bundle.read import read_bundle

EVIL = "</script><script>window.broken=1</script><img src=x onerror=window.broken=2>"
PLAIN = stat.S_IFREG | 0o644
PLANTED: dict[str, tuple[Callable[[Forger], Path], str]] = {
    # The archive.
    "a zip bomb": (hostile.bomb, "declares 67,108,864 bytes"),
    "a size that is a lie": (hostile.lying_bomb, "cannot be read"),
    "a path upwards": (lambda f: f.members(("../../evil.txt", b"x", PLAIN)), "is not a file of a bundle"),
    "an absolute path": (lambda f: f.members(("/etc/cron.d/evil", b"x", PLAIN)), "is not a file of a bundle"),
    "a path upwards below a folder": (
        lambda f: f.members(("trajectories/../../evil", b"x", PLAIN)),
        "is not a file of a bundle",
    ),
    "a backslash": (lambda f: f.members(("trajectories\\..\\evil", b"x", PLAIN)), "is not a file of a bundle"),
    "a symbolic link": (hostile.link, "is not a regular file"),
    "a folder": (lambda f: f.members(("trajectories/", b"", stat.S_IFDIR | 0o755)), "is not a regular file"),
    "a file of two names": (hostile.second_name, "'rows.parquet' has a second name"),
    "a file twice": (lambda f: f.members((MANIFEST, b"{}", PLAIN)), "contains 'manifest.json' twice"),
    "a file that is not listed": (
        lambda f: f.members(("trajectories/a/b.json.gz", b"x", PLAIN)),
        "is not listed in the manifest",
    ),
    "no archive": (lambda f: _overwritten(f.path, b"hello"), "not a ZIP archive"),
    "half an archive": (lambda f: _overwritten(f.path, f.path.read_bytes()[:-2000]), "not a ZIP archive"),
    "no manifest": (lambda f: _dropped(f, MANIFEST), "has no manifest.json"),
    "a file that is missing": (lambda f: _dropped(f, ANSWERS), "is listed in the manifest, but missing"),
    # The signature and the manifest.
    "an altered table": (lambda f: hostile.altered(f, ROWS), "rows.parquet was altered after it was signed"),
    "an altered answer": (lambda f: hostile.altered(f, ANSWERS), "answers.jsonl was altered after it was signed"),
    "an altered manifest": (lambda f: hostile.altered(f, MANIFEST), "the signature does not match the manifest"),
    "a broken signature": (
        lambda f: f.write({**f.files(), SIGNATURE: b"x"}, signed=False),
        "the signature does not match",
    ),
    "no signature": (lambda f: _dropped(f, SIGNATURE), "is not signed"),
    "another format": (lambda f: f.manifest(format=2), "format 2, but this version reads"),
    "a field more": (lambda f: f.manifest(rank=1), "unknown field `rank`"),
    "another number of rows": (lambda f: f.manifest(rows=3), "the manifest lists 3 rows"),
    "an address that runs": (lambda f: f.submitter(url="javascript:alert(1)"), "not an address that begins with http"),
    "an address with a quote": (
        lambda f: f.submitter(url='https://a.example/"onclick=x'),
        "not an address that begins",
    ),
    "an address with a password": (lambda f: f.submitter(url="https://a:b@c.example"), "not an address that begins"),
    "a name that turns the line": (lambda f: f.submitter(name="Ann\u202egnp"), "invisible character"),
    "a name that is a formula": (lambda f: f.submitter(name="=HYPERLINK(1)"), "must begin with an alphanumeric"),
    "a name of a thousand letters": (lambda f: f.submitter(name="A" * 1000), "length <= 80"),
    "a key that is not allowed": (lambda f: f.manifest(), "its key is not among the allowed signers"),
    # The rows and the answers.
    "another edition": (hostile.of_another_edition, "is for edition ffffffffffff"),
    "a row of another edition": (lambda f: f.first_row(edition="f" * 64), "is of edition ffffffffffff, not that of"),
    "a better score": (hostile.better_score, "normalization_11 of 'lab/strong' under no_skill, repeat 0: claims 1.0"),
    "another profile": (lambda f: f.first_row(score_profile=None), "claims scored under no profile"),
    "an episode missing": (
        lambda f: f.without(lambda row: row.task_id != "stress_testing_3"),
        "stress_testing_3 of 'lab/strong' under no_skill is missing",
    ),
    "an episode twice": (hostile.twice, "is a duplicate"),
    "an unknown episode": (hostile.renamed_task, "'normalization_99' is not an episode of this edition"),
    "an error nobody had": (hostile.error_row, "ended in an error, but no reason is given"),
    "a better answer": (hostile.swapped_answers, "its answer is not the one that was judged"),
    "answers in another order": (lambda f: f.answers(lambda lines: lines[::-1]), "its answer is for"),
    "an answer missing": (lambda f: f.answers(lambda lines: lines[:-1]), "and 71 answers"),
    "an end that there is not": (
        lambda f: f.answers(lambda lines: [{**lines[0], "ended": "won"}, *lines[1:]]),
        "answers.jsonl, line 1: Invalid enum value 'won'",
    ),
    "an answer nested deeply": (hostile.deep, "answers.jsonl, line 1"),
    "another difficulty": (lambda f: f.first_row(difficulty="hard"), "difficulty is 'hard', but easy in the edition"),
    "another cluster": (lambda f: f.first_row(cluster="mine"), "cluster is 'mine'"),
    "other skills than ours": (hostile.other_skills, "the skills mounted under curated differ from those of this"),
    "other skills than it says": (lambda f: f.first_row(mount="a" * 64), "was run with other skills than"),
    "a score that is no number": (hostile.not_a_number, "rows.parquet: "),
    "a cost below nothing": (lambda f: f.first_row(cost_usd=-1.0), "cost_usd is -1.0"),
    "a cost that is no number": (lambda f: f.first_row(cost_usd=float("inf")), "cost_usd is inf"),
    "a text of a megabyte": (lambda f: f.first_row(error="x" * 2**20), "holds a text of more than"),
    "savings that are no number": (lambda f: f.first_row(saved_usd=float("nan")), "saved_usd is nan"),
    "calls below nothing": (lambda f: f.first_row(reused_calls=-5), "reused_calls is -5"),
    "a day before computers": (
        lambda f: f.first_row(ended=datetime(1900, 1, 1, tzinfo=UTC)),
        "ended is 1900-01-01, outside of 2020 to 2100",
    ),
    "a version that turns the line": (lambda f: f.first_row(code_version="1\u202e"), "version: '1\\u202e' contains"),
    "a commit of a thousand letters": (lambda f: f.first_row(commit="a" * 1000), "is longer than 200 characters"),
    "a reason that is a formula": (
        lambda f: f.manifest(partial="=HYPERLINK(1)"),
        "partial: '=HYPERLINK(1)' must begin",
    ),
    "a reason of two lines": (lambda f: f.manifest(partial="a\nb"), "partial: 'a\\nb' contains an invisible character"),
    "a package that is a formula": (hostile.odd_package, "a package under curated: '=SUM(1)' must begin"),
    "a record of a megabyte": (hostile.large_record, "its record is longer than 1,048,576 bytes"),
    "rows without end": (hostile.many_rows, "it declares 1,000 rows"),
    "no table": (lambda f: f.write(f.listed({**f.files(), ROWS: b"PAR1"})), "rows.parquet: "),
    "a model called a program": (lambda f: hostile.model_name(f, "baseline/reference"), "is the name of a program"),
    "a model of a formula": (lambda f: hostile.model_name(f, "@SUM(1)"), "must begin with an alphanumeric"),
    "a model that is not named": (lambda f: f.manifest(entrants=[]), "names no such model"),
}


def _overwritten(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def _dropped(forger: Forger, name: str) -> Path:
    files = forger.files()
    del files[name]
    return forger.write(files, signed=False)


def build(edition: Edition, site: Path, *bundles: Path, more: tuple[str, ...] = ()) -> int:
    return main(["leaderboard", "build", *map(str, bundles), "--edition", str(edition.path), "--out", str(site), *more])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("what", sampled(PLANTED, 2))
def test_each_planted_thing_is_refused_by_its_name(
    what: str, bundled: Bundled, keys: dict[str, Path], small: Edition, tmp_path: Path, capsys, monkeypatch
) -> None:
    monkeypatch.setattr(archive, "MOST_ROWS", 100)
    plant, said = PLANTED[what]
    bundle = plant(Forger(bundled(), keys["ann"]))
    more: tuple[str, ...] = ()
    if what == "a key that is not allowed":
        (tmp_path / "allowed").write_text(f"bob {keys['bob'].with_suffix('.pub').read_text()}")
        more = ("--signers", str(tmp_path / "allowed"))
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert build(small, tmp_path / "site", bundle, more=more) == 2
    (line,) = [each for each in capsys.readouterr().err.splitlines() if each.startswith("error: ")]
    assert said in line
    assert str(bundle) in line
    assert len(line) < 500
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


@pytest.mark.slow
def test_texts_are_counted_in_every_row_before_they_are_spelled_out(bundled: Bundled, keys: dict[str, Path]) -> None:
    with pytest.raises(InputError, match="its rows unpack to more than 268,435,456 bytes"):
        read_bundle(hostile.wide_rows(Forger(bundled(), keys["ann"])))


@pytest.mark.slow
def test_the_forger_alone_is_not_refused(bundled: Bundled, keys: dict[str, Path], small: Edition, tmp_path) -> None:
    """A bundle that is taken apart and put together again fits, so that what is refused above is what was planted."""
    forger = Forger(bundled(), keys["ann"])
    assert build(small, tmp_path / "a", forger.manifest()) == 0
    assert build(small, tmp_path / "b", forger.rows(lambda _, row: row)) == 0
    assert build(small, tmp_path / "c", forger.answers(lambda lines: lines)) == 0
    assert build(small, tmp_path / "d", forger.without(lambda _: True)) == 0


def test_what_is_refused_is_listed_and_the_rest_is_built(
    bundled: Bundled, keys: dict[str, Path], small: Edition, tmp_path: Path, capsys
) -> None:
    good = bundled("strong")
    bad = hostile.better_score(Forger(bundled("middle", "Bob", "bob"), keys["bob"]))
    broken = hostile.of_another_edition(Forger(bundled("weak", "Carl", "bob"), keys["bob"]))
    assert build(small, tmp_path / "site", bad, good, broken, more=("--keep-going",)) == 0
    said = capsys.readouterr()
    assert "1 entries, 2 bundles refused" in said.out
    assert f"refused: {bad.name}: normalization_11" in said.err
    page = (tmp_path / "site" / "index.html").read_text()
    assert "lab/strong" in page
    assert "other/middle" not in page.split("Refused</h2>")[0]
    assert "claims 1.0 under" in page
    assert str(tmp_path) not in page
    assert str(small.path) not in page
    told = json.loads((tmp_path / "site" / "leaderboard.json").read_bytes())
    assert [each["name"] for each in told["refused"]] == [bad.name, broken.name]


def test_none_that_fits_is_no_page(bundled: Bundled, keys: dict[str, Path], small: Edition, tmp_path: Path) -> None:
    bad = hostile.better_score(Forger(bundled(), keys["ann"]))
    assert build(small, tmp_path / "site", bad, more=("--keep-going",)) == 2
    assert not (tmp_path / "site").exists()


@pytest.mark.parametrize(
    ("first", "second", "refused"),
    [
        (("strong", "Ann", "ann"), ("weak", "Ann", "bob"), 0),
        (("strong", "Ann", "ann"), ("weak", "Ann", None), 1),
        (("weak", "Ann", None), ("strong", "Ann", "ann"), 0),
    ],
    ids=["one name, two keys", "unsigned under a signed name", "and the other way round"],
)
def test_names_belong_to_keys(first, second, refused: int, bundled: Bundled, small: Edition, tmp_path, capsys) -> None:
    paths = [bundled(*first).rename(tmp_path / "1.zip"), bundled(*second).rename(tmp_path / "2.zip")]
    assert build(small, tmp_path / "site", *paths, more=("--allow-unsigned",)) == 2
    assert f"error: {paths[refused]}: has the submitter 'Ann'" in capsys.readouterr().err


def test_the_same_bundle_twice_and_the_same_entry_twice(
    bundled: Bundled, small: Edition, tmp_path: Path, capsys
) -> None:
    first = bundled("strong")
    copy = first.with_name("copy.zip")
    copy.write_bytes(first.read_bytes())
    assert build(small, tmp_path / "site", first, copy) == 2
    assert "submit only one of the two" in capsys.readouterr().err
    copy.unlink()
    other = first.rename(tmp_path / "other.zip")
    again = bundled("strong", contact="by mail")
    assert build(small, tmp_path / "site", other, again) == 2
    assert "submit only one of the two" in capsys.readouterr().err


def test_an_unsigned_bundle_is_taken_where_that_is_said_and_shown_as_such(
    bundled: Bundled, small: Edition, tmp_path: Path
) -> None:
    bundle = bundled("strong", "Ann", None)
    assert build(small, tmp_path / "site", bundle) == 2
    assert build(small, tmp_path / "site", bundle, more=("--allow-unsigned",)) == 0
    page = (tmp_path / "site" / "index.html").read_text()
    assert "<dt>Signature</dt><dd>none</dd>" in page
    assert "unsigned" in page


def test_markup_in_names_is_shown_as_text(
    bundled: Bundled, keys: dict[str, Path], small: Edition, tmp_path: Path
) -> None:
    forger = Forger(bundled(), keys["ann"])
    forger.submitter(name=f"A{EVIL}"[:80], contact=f"a{EVIL}")
    bundle = hostile.model_name(forger, f"m{EVIL}")
    assert build(small, tmp_path / "site", bundle) == 0
    page = (tmp_path / "site" / "index.html").read_text()
    assert EVIL not in page
    assert "<img" not in page
    assert page.count("<script") == 1  # ours, for light and dark
    assert "m&lt;/script&gt;" in page


def test_a_folder_with_a_link_is_refused(bundled: Bundled, small: Edition, tmp_path: Path, capsys) -> None:
    folder = tmp_path / "folder"
    with zipfile.ZipFile(bundled()) as archive:
        archive.extractall(folder)
    assert build(small, tmp_path / "site", folder) == 0
    (folder / ROWS).rename(tmp_path / "rows")
    (folder / ROWS).symlink_to(tmp_path / "rows")
    assert build(small, tmp_path / "again", folder) == 2
    assert "is not a regular file" in capsys.readouterr().err


def test_whoever_lacks_the_truth_builds_nothing(bundled: Bundled, public: Edition, tmp_path: Path, capsys) -> None:
    assert build(public, tmp_path / "site", bundled()) == 2
    assert "has no truth/" in capsys.readouterr().err
