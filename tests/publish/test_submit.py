"""What `submit` refuses, and what it never lets out."""

from __future__ import annotations

import gzip
import json
import subprocess
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.publish.conftest import Bundled, Player

from finskillbench import run
from finskillbench.cli import main
from finskillbench.edition import Edition
from finskillbench.errors import InputError
from finskillbench.harness.model import Message, ToolSpec, Turn
from finskillbench.publish.bundle import (
    ANSWERS,
    MANIFEST,
    NAMESPACE,
    ROWS,
    SIGNATURE,
    Submitter,
    default_key,
    sign,
    signer_of,
)
from finskillbench.publish.bundle.read import read_bundle
from finskillbench.publish.bundle.write import submit_run
from finskillbench.redaction import cleaner

SECRETS = {
    "of this process": "qX7-very-secret-value-91",
    "of OpenAI": "sk-proj-abcdefghijklmnopqrstuvwxyz012345",
    "of Amazon": "AKIAIOSFODNN7EXAMPLE",
    "of Groq": "gsk_abcdefghijklmnopqrstuvwxyz012345",
    "of xAI": "xai-abcdefghijklmnopqrstuvwxyz012345",
    "of Perplexity": "pplx-abcdefghijklmnopqrstuvwxyz012345",
    "of Replicate": "r8_abcdefghijklmnopqrstuvwxyz0123456789",
    "of an address": "https://user:hunter2@files.example/x",
    "of GitHub": "ghp_0123456789abcdefghijklmnopqrstuvwxyz",
    "of Hugging Face": "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH",
    "of Google": "AIzaSyA0123456789abcdefghijklmnopqrstuv",
    "of a header": "Authorization: Bearer abcdefghijklmnopqrstuvwxyz",
    "of SSH": "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk=\n-----END OPENSSH PRIVATE KEY-----",
    "a token of the web": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
}


class Talker(Player):
    """Says a text with every answer, one after another."""

    said: Sequence[str] = ()
    calls = 0

    async def generate(self, messages: Sequence[Message], tools: Sequence[ToolSpec], tool_choice: str) -> Turn:
        text = self.said[self.calls % len(self.said)]
        self.calls += 1
        return replace(await super().generate(messages, tools, tool_choice), text=text)


def everything(bundle: Path) -> str:
    """All that a bundle says, whatever is packed in it unpacked."""
    import io

    import polars as pl

    found: list[str] = []
    with zipfile.ZipFile(bundle) as archive:
        for name in archive.namelist():
            data = archive.read(name)
            if name == ROWS:
                found.append(pl.read_parquet(io.BytesIO(data)).write_ndjson())
            found.append((gzip.decompress(data) if name.endswith(".gz") else data).decode("utf-8", "replace"))
    return "\n".join(found)


def small_run(edition: Edition, out: Path, model: Player, **more) -> Path:
    run(edition, [model], ["no_skill"], out=out, **more)
    return out


def test_a_key_that_a_model_says_does_not_leave(
    small: Edition, keys: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In every episode one of another kind."""
    model = Talker("lab/talker", 1)
    model.said = [f"My key is {secret}, keep it." for secret in SECRETS.values()]
    folder = small_run(small, tmp_path / "run", model)
    # Known to the process that submits, not to the one that ran.
    monkeypatch.setenv("EXAMPLE_API_KEY", SECRETS["of this process"])
    submit_run(folder, small, tmp_path / "b.zip", Submitter(name="Ann"), key=keys["ann"], trajectories=True)
    said = everything(tmp_path / "b.zip")
    for secret in SECRETS.values():
        assert secret.removeprefix("Authorization: Bearer ").splitlines()[-1 if "\n" not in secret else 1] not in said
    assert said.count("My key is ") == said.count("[redacted]") == 36
    assert read_bundle(tmp_path / "b.zip").trajectories == 36


@pytest.mark.slow
@pytest.mark.parametrize("whose", SECRETS)
def test_a_key_in_an_answer_is_refused(whose: str, small: Edition, tmp_path: Path, monkeypatch) -> None:
    secret = SECRETS[whose]
    folder = small_run(small, tmp_path / "run", Player("lab/careless", 0, extra=secret), limit=1)
    if whose == "of this process":
        monkeypatch.setenv("EXAMPLE_API_KEY", secret)
    with pytest.raises(InputError, match="the answer contains what looks like a key") as refused:
        submit_run(folder, small, tmp_path / "b.zip", Submitter(name="Ann"), key=None, partial="a test")
    assert secret not in str(refused.value)
    assert not (tmp_path / "b.zip").exists()


def test_ordinary_words_are_no_keys() -> None:
    text = "sk-learn, a risk-free rate, AKIA, bearer of bonds, hf_ and eyJ are no keys; task-normalization_2024-12-31"
    text += ' {"url":"http://localhost:8080","mail":"me@lab.example"} https://lab.example:443/a@b'
    assert cleaner()(text) == text


def test_the_home_folder_and_the_edition_are_not_told(
    runs: dict[str, Path], bundled: Bundled, small: Edition, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(runs["strong"].parents[1]))
    said = everything(bundled(trajectories=True))
    assert str(small.path) not in said
    assert str(runs["strong"].parents[1]) not in said


def test_nothing_of_the_truth_is_in_a_bundle(small: Edition, runs: dict[str, Path], bundled: Bundled) -> None:
    import polars as pl

    rows = pl.read_parquet(runs["weak"] / ROWS)
    assert any(len(details) > 2 for details in rows["scoring_details"])
    bundle = read_bundle(bundled("weak"))
    assert {row.scoring_details for row in bundle.rows} == {"{}"}
    assert {(row.traps, row.signed) for row in bundle.rows} == {((), None)}


def test_a_run_that_is_not_whole_needs_a_reason(
    small: Edition, keys: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = small_run(small, tmp_path / "run", Player("lab/short", 9), limit=11)
    asked = ["submit", str(folder), "--out", str(tmp_path / "b.zip"), "--name", "Ann", "--key", str(keys["ann"])]
    assert main(asked) == 2
    assert "normalization_11 of lab/short under no_skill, repeat 0 is missing from a full run" in (
        capsys.readouterr().err
    )
    assert main([*asked, "--partial", "  "]) == 2
    assert not (tmp_path / "b.zip").exists()
    assert main([*asked, "--partial", "no money left"]) == 0
    site = tmp_path / "site"
    assert (
        main(["leaderboard", "build", str(tmp_path / "b.zip"), "--edition", str(small.path), "--out", str(site)]) == 0
    )
    page = (site / "index.html").read_text()
    assert "no money left" in page
    assert "Not ranked" in page
    assert not list(site.rglob("ranking_*.csv"))


def test_a_run_with_an_error_needs_a_reason(small: Edition, keys: dict[str, Path], tmp_path: Path) -> None:
    class Broken(Player):
        async def generate(self, messages, tools, tool_choice):
            if "normalization_3." in messages[1].content:
                raise RuntimeError("the provider is down")
            return await super().generate(messages, tools, tool_choice)

    folder = small_run(small, tmp_path / "run", Broken("lab/broken", 9))
    with pytest.raises(InputError, match="normalization_3 of lab/broken under no_skill, repeat 0 ended in an error"):
        submit_run(folder, small, tmp_path / "b.zip", Submitter(name="Ann"), key=keys["ann"])
    submit_run(folder, small, tmp_path / "b.zip", Submitter(name="Ann"), key=keys["ann"], partial="one was down")
    assert len(read_bundle(tmp_path / "b.zip").rows) == 36


def test_an_edition_that_is_another_is_refused(
    runs: dict[str, Path], small: Edition, public: Edition, tmp_path: Path, keys: dict[str, Path]
) -> None:
    from tests.editions import write_edition

    from finskillbench import load_edition

    tasks = [(episode, small.truth(episode.task_id)) for episode in small.episodes()][:3]
    other = load_edition(write_edition(tmp_path / "other", tasks))
    with pytest.raises(InputError, match="was run on another edition"):
        submit_run(runs["strong"], other, tmp_path / "b.zip", Submitter(name="Ann"), key=None)
    submit_run(runs["strong"], public, tmp_path / "b.zip", Submitter(name="Ann"), key=keys["ann"])


def test_an_answer_that_was_replaced_is_refused(small: Edition, tmp_path: Path) -> None:
    folder = small_run(small, tmp_path / "run", Player("lab/liar", 1), limit=1)
    path = next((folder / "trajectories").rglob("*.json.gz"))
    told = json.loads(gzip.decompress(path.read_bytes()))
    told["trace"]["answer"] = "{}"
    path.write_bytes(gzip.compress(json.dumps(told).encode()))
    with pytest.raises(InputError, match="does not belong to the judged episode"):
        submit_run(folder, small, tmp_path / "b.zip", Submitter(name="Ann"), key=None, partial="a test")


def test_the_signature_is_of_openssh_and_for_this_purpose(
    bundled: Bundled, keys: dict[str, Path], tmp_path: Path
) -> None:
    with zipfile.ZipFile(bundled()) as archive:
        manifest, signature = archive.read(MANIFEST), archive.read(SIGNATURE)
        assert set(archive.namelist()) == {MANIFEST, SIGNATURE, ROWS, ANSWERS}
    (tmp_path / "sig").write_bytes(signature)
    asked = ["ssh-keygen", "-Y", "check-novalidate", "-n", NAMESPACE, "-s", str(tmp_path / "sig")]
    done = subprocess.run(asked, input=manifest, capture_output=True, check=True)
    assert signer_of(manifest, signature).key in done.stdout.decode()
    file = tmp_path / "other"
    file.write_bytes(manifest)
    subprocess.run(["ssh-keygen", "-q", "-Y", "sign", "-f", str(keys["ann"]), "-n", "git", str(file)], check=True)
    with pytest.raises(ValueError, match="does not match the manifest"):
        signer_of(manifest, (tmp_path / "other.sig").read_bytes())
    with pytest.raises(ValueError, match="does not match the manifest"):
        signer_of(manifest + b" ", signature)
    allowed = tmp_path / "allowed"
    allowed.write_text(f"ann {keys['ann'].with_suffix('.pub').read_text()}")
    of_another_text = sign(b"else", keys["ann"])
    with pytest.raises(ValueError, match="does not match the manifest"):
        signer_of(manifest, of_another_text, allowed)


def test_a_signer_must_be_allowed_for_this_purpose(bundled: Bundled, keys: dict[str, Path], tmp_path: Path) -> None:
    key = keys["ann"].with_suffix(".pub").read_text()
    (tmp_path / "allowed").write_text(f"ann@x {key}")
    signer = read_bundle(bundled(), signers=tmp_path / "allowed").signer
    assert signer is not None
    assert signer.owner == "ann@x"
    (tmp_path / "allowed").write_text(f'git@x namespaces="git" {key}')
    with pytest.raises(InputError, match="the signature does not match the manifest"):
        read_bundle(tmp_path / "strong-ann.zip", signers=tmp_path / "allowed")


def test_who_has_no_key_is_told_so(
    runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys, keys: dict[str, Path]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    asked = ["submit", str(runs["strong"]), "--out", str(tmp_path / "b.zip"), "--name", "Ann"]
    assert default_key() is None
    assert main(asked) == 2
    assert "there is no SSH key in ~/.ssh; name one with --key, or give --unsigned" in capsys.readouterr().err
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "id_ed25519").write_bytes(keys["ann"].read_bytes())
    (tmp_path / ".ssh" / "id_ed25519").chmod(0o600)
    assert main(asked) == 0
    assert read_bundle(tmp_path / "b.zip").signer == signer_of(b"x", sign(b"x", keys["ann"]))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main([*asked[:3], str(tmp_path / "c.zip"), *asked[4:]]) == 2
    assert "ssh-keygen is not installed, but signs and checks bundles" in capsys.readouterr().err
    assert main([*asked[:3], str(tmp_path / "c.zip"), *asked[4:], "--unsigned"]) == 0


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--url", "javascript:alert(1)"], "url: "),
        (["--url", "http://"], "url: "),
        (["--contact", "a\u200bb"], "contact: "),
        (["--partial", "=SUM(1)"], "partial: "),
        (["--partial", "a" * 201], "partial: "),
        (["--cutoff", "none/such=2025-01-01"], "the run has no model none/such"),
        (["--cutoff", "soon"], "not DATE"),
        (["--unsigned", "--key", "x"], "give one of the two"),
        (["--key", "nowhere"], "no such key file"),
    ],
)
def test_what_cannot_be_shown_is_not_written(
    more: list[str], said: str, runs: dict[str, Path], tmp_path: Path, capsys, keys: dict[str, Path]
) -> None:
    asked = ["submit", str(runs["strong"]), "--out", str(tmp_path / "b.zip"), "--name", "Ann"]
    signed = [] if {"--key", "--unsigned"} & {*more} else ["--key", str(keys["ann"])]
    assert main([*asked, *more, *signed]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "b.zip").exists()


def test_a_file_that_is_there_is_kept(bundled: Bundled, runs: dict[str, Path], small: Edition) -> None:
    path = bundled()
    content = path.read_bytes()
    with pytest.raises(InputError, match="already exists"):
        bundled()
    assert path.read_bytes() == content
