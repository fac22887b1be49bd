"""A run as somebody submits it to a leaderboard: written by its owner, read and judged by whoever holds the truth.

    manifest.json        whose it is, of which edition, models, mounts, settings, and the digest of every other file
    manifest.json.sig    an SSH signature of it, unless the bundle is unsigned
    rows.parquet         one line per episode, with the scores that are claimed
    answers.jsonl        what was submitted for each, so that every score can be computed again
    trajectories/        everything said and done, where the owner added it

The same run makes the same bytes. Nothing of the truth is in it, and nothing that looks like a key. This module has the
manifest, a line of answers, and signatures: made and checked by OpenSSH's `ssh-keygen -Y`, for this purpose alone (its
namespace) and offline. Who a key belongs to is said by a file of allowed signers, in the format of ssh-keygen(1);
without one a key is known by its fingerprint.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import msgspec

from finskillbench.errors import InputError
from finskillbench.harness.conditions import ArmName
from finskillbench.harness.models import ModelKey, canonical
from finskillbench.harness.trace import OURS, Ended
from finskillbench.runs.plan.items import Item

FORMAT = 1
MANIFEST = "manifest.json"
SIGNATURE = "manifest.json.sig"
ROWS = "rows.parquet"
ANSWERS = "answers.jsonl"
TRAJECTORIES = "trajectories"
LARGEST_MANIFEST = 2**23
"""Bytes of a manifest at most; each trajectory takes 150 of them, and who has more adds none."""

Digest = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]
Said = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


_NOTHING_DONE = msgspec.Raw(b"null")


class _Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What may stand in a manifest and nothing else."""


class Submitter(_Record, frozen=True, kw_only=True):
    """Who submits, in own words; `url` is an address of the web."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=80)]
    contact: Said | None = None
    url: Said | None = None


class Participant(_Record, frozen=True, kw_only=True):
    """A model with its arguments, and the day after which it has learnt nothing, where its owner states one."""

    model: Said
    arguments: Annotated[str, msgspec.Meta(max_length=1000)]
    cutoff: date | None = None


class Mounted(_Record, frozen=True, kw_only=True):
    """What was mounted under a condition: the digest of the mount in each domain and of each package."""

    digest: Mapping[str, Digest]
    packages: Mapping[str, Digest]


class File(_Record, frozen=True, kw_only=True):
    """A file of the bundle: SHA-256 and bytes."""

    sha256: Digest
    size: Annotated[int, msgspec.Meta(ge=0, le=2**33)]


class Manifest(_Record, frozen=True, kw_only=True):
    """What a bundle says of itself.

    `edition` is the digest of the edition. `partial` is the reason why episodes are missing, None where none are.
    `prompts_digest`, `scorer_version` and `versions` are those of the run, `sandbox` the guards that scripts ran under.
    """

    format: int
    submitter: Submitter
    edition: Digest
    entrants: tuple[Participant, ...]
    mounts: Mapping[ArmName, Mounted]
    partial: Said | None
    rows: int
    prompts_digest: Digest
    scorer_version: Said
    versions: Mapping[str, Said]
    sandbox: Mapping[str, bool]
    files: Mapping[str, File]


class Answer(_Record, frozen=True, kw_only=True):
    """What came back for one episode: the key of its row, the text, how the episode ended, and what was done in it.

    `record` stays the text that it is until the episode is judged: a small one can be large in memory.
    """

    model: str
    arguments: str
    condition: ArmName
    task_id: str
    run_idx: int
    ended: Ended
    answer: str | None
    record: msgspec.Raw = _NOTHING_DONE

    @property
    def item(self) -> Item:
        """The piece of work that it belongs to."""
        return Item(self.model, self.arguments, self.condition, self.task_id, self.run_idx)


def done(answer: Answer) -> dict[str, Any] | None:
    """What was done in an episode.

    Raises
    ------
    ValueError : it is no JSON object.
    """
    return msgspec.json.decode(answer.record, type=dict[str, Any] | None)


def encode(record: Manifest) -> bytes:
    """A manifest as it is signed: the same bytes for the same content."""
    return msgspec.json.format(msgspec.json.encode(record, order="sorted"), indent=1) + b"\n"


def decode(data: bytes, where: str) -> Manifest:
    """The manifest of a bundle.

    Raises
    ------
    InputError : it is none, names a field that is missing, unknown or wrong, or is of another format.
    """
    try:
        found = msgspec.json.decode(data, type=Manifest)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: {MANIFEST}: {error}; make the bundle again with finskillbench submit") from None
    if found.format != FORMAT:
        raise InputError(f"{where}: {MANIFEST}: of format {found.format}, this version reads {FORMAT}; update it")
    return found


_HIDDEN = ("Cc", "Cf", "Co", "Cs", "Zl", "Zp", "Cn")
"""Categories of characters that are not visible, or that reverse the direction of a line."""
LONGEST = 200
"""Characters of anything that is shown."""


class Arguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments that an entry may state: options of a model, its allowance, its harness; no others are shown."""

    base_url: str | None = None
    seed: int | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    reasoning_effort: str | None = None
    model_args: Mapping[str, Any] | None = None
    turns: int | None = None
    token_budget: int | None = None
    harness: str = OURS


def refuse_words(what: str, text: str) -> None:
    """Refuse hidden characters, blanks at the ends, too many words, and what a spreadsheet takes for a formula.

    Raises
    ------
    InputError : naming what it is.
    """
    if any(unicodedata.category(each) in _HIDDEN for each in text):
        raise InputError(f"{what}: {text[:60]!a} holds a character that cannot be seen; leave it out")
    if text != text.strip() or not text:
        raise InputError(f"{what}: {text[:60]!a} begins or ends with a blank; leave it out")
    if not text[0].isalnum():  # a spreadsheet takes = + - @ for the beginning of a formula
        raise InputError(f"{what}: {text[:60]!a} must begin with a letter or a digit")
    if len(text) > LONGEST:
        raise InputError(f"{what}: {text[:60]!a}... is longer than {LONGEST} characters")


def check_shown(manifest: Manifest) -> None:
    """Refuse a manifest of which anything that is shown is no plain text, or whose address is none of the web.

    Raises
    ------
    InputError : naming the field.
    """
    submitter = manifest.submitter
    words = [("name", submitter.name), ("contact", submitter.contact), ("url", submitter.url)]
    words += [("partial", manifest.partial)]
    words += [(f"a package under {name}", each) for name, mount in manifest.mounts.items() for each in mount.packages]
    for what, text in words:
        if text is not None:
            refuse_words(what, text)
    if submitter.url is not None:
        try:
            parts = urlsplit(submitter.url)
            plain = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.username is None
        except ValueError:
            plain = False
        if not plain or any(each.isspace() or each in "<>\"'\\`" for each in submitter.url):
            raise InputError(f"url: {submitter.url[:60]!a} is no address that begins with http:// or https://")


def check_entry(where: Path, entry: ModelKey) -> Arguments:
    """The arguments of an entry that tables can show.

    Raises
    ------
    InputError : its name cannot be shown; its arguments are none, not as runs write them, or not of a known name.
    """
    try:
        refuse_words("model", entry.model)
        said = msgspec.json.decode(entry.arguments, type=Arguments)
        if canonical(entry.by_name) != entry.arguments:
            raise ValueError("not as runs write them")
        for name, value in entry.by_name.items():
            refuse_words(name, value if isinstance(value, str) else f"a{value}")
    except InputError as error:
        raise InputError(f"{where}: {entry.model[:80]!a}: {error}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: the arguments of {entry.model[:80]!a}: {error}") from None
    return said


NAMESPACE = "finskillbench-submission"
PROGRAM = "ssh-keygen"
_KEYS = ("id_ed25519", "id_ecdsa", "id_rsa")
_GOOD = re.compile(r'^Good "[^"]*" signature (?:for (?P<whose>.*) )?with (?P<kind>\S+) key (?P<key>SHA256:\S+)$')
_SECONDS = 120


@dataclass(frozen=True, slots=True)
class Signer:
    """Whose signature it is: the fingerprint of the key, and the name of its owner where signers were named."""

    key: str
    owner: str | None = None


def default_key() -> Path | None:
    """The SSH key that most people have; None where there is none."""
    folder = Path.home() / ".ssh"
    return next((folder / name for name in _KEYS if (folder / name).is_file()), None)


def sign(data: bytes, key: Path) -> bytes:
    """The signature of some bytes by the private key in a file, or by an agent that holds the key of a .pub file.

    Raises
    ------
    InputError : OpenSSH is not there, or refuses the key.
    """
    if not key.is_file():
        raise InputError(f"{key}: there is no such key; make one with ssh-keygen -t ed25519, or give --unsigned")
    done = _run(("-Y", "sign", "-q", "-f", str(key), "-n", NAMESPACE), data)
    if done.returncode:
        raise InputError(f"{key}: ssh-keygen cannot sign with it ({_first_line(done.stderr)}); name another --key")
    return done.stdout


def signer_of(data: bytes, signature: bytes, signers: Path | None = None) -> Signer:
    """Who signed some bytes.

    Parameters
    ----------
    signers : a file of allowed signers; None takes every key.

    Raises
    ------
    ValueError : the signature is not of these bytes, was made for another purpose, or its key is not allowed.
    InputError : OpenSSH is not there, or the file of signers cannot be read.
    """
    if signers is not None and not signers.is_file():
        raise InputError(f"{signers}: there is no such file; write allowed signers in the format of ssh-keygen(1)")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "signature"
        file.write_bytes(signature)
        if signers is None:
            return _verified(_run(("-Y", "check-novalidate", "-n", NAMESPACE, "-s", str(file)), data))
        found = _run(("-Y", "find-principals", "-s", str(file), "-f", str(signers)), b"")
        names = found.stdout.decode("utf-8", "replace").splitlines()
        if found.returncode or not names:
            raise ValueError("its key is none of the allowed signers")
        who = ("-I", names[0], "-n", NAMESPACE, "-s", str(file))
        return _verified(_run(("-Y", "verify", "-f", str(signers), *who), data))


def _verified(done: subprocess.CompletedProcess[bytes]) -> Signer:
    told = _GOOD.match(done.stdout.decode("utf-8", "replace").strip())
    if done.returncode or told is None:
        raise ValueError("the signature is not of this manifest")
    return Signer(told["key"], told["whose"])


def _run(arguments: Sequence[str], data: bytes) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run([PROGRAM, *arguments], input=data, capture_output=True, timeout=_SECONDS, check=False)
    except FileNotFoundError:
        raise InputError(
            f"{PROGRAM} is not there, which signs and checks bundles; install OpenSSH 8.2 or later"
        ) from None
    except subprocess.TimeoutExpired:
        raise InputError(f"{PROGRAM} did not answer in {_SECONDS} s; name another --key") from None


def _first_line(text: bytes) -> str:
    return next(iter(text.decode("utf-8", "replace").splitlines()), "no reason given")
