"""Bundle of a run, as submitted to a leaderboard: manifest, answer records and signatures.

    manifest.json        submitter, edition, models, mounts, settings, and the digest of every other file
    manifest.json.sig    SSH signature of the manifest, unless unsigned
    rows.parquet         one line per episode, with claimed scores
    answers.jsonl        submitted answers, from which every score is recomputed
    trajectories/        optional full trajectories

The same run gives the same bytes, without truth and without anything like a key. OpenSSH's `ssh-keygen -Y` makes and
checks signatures offline, in a separate namespace. A file of allowed signers (ssh-keygen(1)) maps keys to owners;
without one, a key is identified by its fingerprint.
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
from finskillbench.harness.trace import BUILTIN_HARNESS, Ended
from finskillbench.runs.plan.items import Item

FORMAT = 1
MANIFEST = "manifest.json"
SIGNATURE = "manifest.json.sig"
ROWS = "rows.parquet"
ANSWERS = "answers.jsonl"
TRAJECTORIES = "trajectories"
LARGEST_MANIFEST = 2**23
"""Maximum bytes of a manifest; a trajectory takes 150, so larger runs are submitted without them."""

Digest = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]
ShortText = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


_NOTHING_DONE = msgspec.Raw(b"null")


class _Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of manifest records, which refuse unknown fields."""


class Submitter(_Record, frozen=True, kw_only=True):
    """Submitter as displayed; `url` is a web address."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=80)]
    contact: ShortText | None = None
    url: ShortText | None = None


class Participant(_Record, frozen=True, kw_only=True):
    """A model with its arguments, and the training cut-off that its owner states."""

    model: ShortText
    arguments: Annotated[str, msgspec.Meta(max_length=1000)]
    cutoff: date | None = None


class Mounted(_Record, frozen=True, kw_only=True):
    """Skills mounted under a condition: digest of the mount by domain, and of each package."""

    digest: Mapping[str, Digest]
    packages: Mapping[str, Digest]


class File(_Record, frozen=True, kw_only=True):
    """A file of the bundle: SHA-256 and bytes."""

    sha256: Digest
    size: Annotated[int, msgspec.Meta(ge=0, le=2**33)]


class BundleManifest(_Record, frozen=True, kw_only=True):
    """Manifest of a bundle.

    `edition` is the digest of the edition; `partial` is the reason for missing episodes, else None. `prompts_digest`,
    `scorer_version` and `versions` are those of the run; `sandbox` lists the guards of scripts.
    """

    format: int
    submitter: Submitter
    edition: Digest
    entrants: tuple[Participant, ...]
    mounts: Mapping[ArmName, Mounted]
    partial: ShortText | None
    rows: int
    prompts_digest: Digest
    scorer_version: ShortText
    versions: Mapping[str, ShortText]
    sandbox: Mapping[str, bool]
    files: Mapping[str, File]


class AnswerRecord(_Record, frozen=True, kw_only=True):
    """Result of one episode: key of its row, answer, ending, and the record of an interactive one.

    `record` is decoded only when the episode is judged, because a small text can take much memory.
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
        """Return the item of the run that it belongs to."""
        return Item(self.model, self.arguments, self.condition, self.task_id, self.run_idx)


def interactive_record(answer: AnswerRecord) -> dict[str, Any] | None:
    """Decode the record of an interactive episode; ValueError if it is not a JSON object."""
    return msgspec.json.decode(answer.record, type=dict[str, Any] | None)


def encode_manifest(record: BundleManifest) -> bytes:
    """Encode a manifest for signing: the same bytes for the same content."""
    return msgspec.json.format(msgspec.json.encode(record, order="sorted"), indent=1) + b"\n"


def decode_manifest(data: bytes, where: str) -> BundleManifest:
    """Decode a manifest; InputError for missing, unknown or invalid fields, or another format."""
    try:
        found = msgspec.json.decode(data, type=BundleManifest)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: {MANIFEST}: {error}; make the bundle again with finskillbench submit") from None
    if found.format != FORMAT:
        raise InputError(f"{where}: {MANIFEST}: format {found.format}, but this version reads {FORMAT}; update it")
    return found


_HIDDEN = ("Cc", "Cf", "Co", "Cs", "Zl", "Zp", "Cn")
"""Categories of characters that are invisible or reverse the direction of a line."""
LONGEST = 200
"""Maximum number of displayed characters."""


class Arguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arguments that an entry may state and that are displayed: options of a model, limits, harness."""

    base_url: str | None = None
    seed: int | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    reasoning_effort: str | None = None
    model_args: Mapping[str, Any] | None = None
    turns: int | None = None
    token_budget: int | None = None
    harness: str = BUILTIN_HARNESS


def check_display_text(what: str, text: str) -> None:
    """Raise InputError for hidden characters, outer blanks, excessive length, and spreadsheet formulas."""
    if any(unicodedata.category(each) in _HIDDEN for each in text):
        raise InputError(f"{what}: {text[:60]!a} contains an invisible character; remove it")
    if text != text.strip() or not text:
        raise InputError(f"{what}: {text[:60]!a} begins or ends with a blank; remove it")
    if not text[0].isalnum():  # Spreadsheets take = + - @ for the beginning of a formula.
        raise InputError(f"{what}: {text[:60]!a} must begin with an alphanumeric character")
    if len(text) > LONGEST:
        raise InputError(f"{what}: {text[:60]!a}... is longer than {LONGEST} characters")


def check_manifest_texts(manifest: BundleManifest) -> None:
    """Raise InputError for displayed text that is not plain, or an address that is not a web address."""
    submitter = manifest.submitter
    texts = [("name", submitter.name), ("contact", submitter.contact), ("url", submitter.url)]
    texts += [("partial", manifest.partial)]
    texts += [(f"a package under {name}", each) for name, mount in manifest.mounts.items() for each in mount.packages]
    for what, text in texts:
        if text is not None:
            check_display_text(what, text)
    if submitter.url is not None:
        try:
            parts = urlsplit(submitter.url)
            plain = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.username is None
        except ValueError:
            plain = False
        if not plain or any(each.isspace() or each in "<>\"'\\`" for each in submitter.url):
            raise InputError(f"url: {submitter.url[:60]!a} is not an address that begins with http:// or https://")


def check_entry(where: Path, entry: ModelKey) -> Arguments:
    """Return the arguments of an entry; InputError if name or arguments are invalid or not canonical."""
    try:
        check_display_text("model", entry.model)
        arguments = msgspec.json.decode(entry.arguments, type=Arguments)
        if canonical(entry.named_arguments) != entry.arguments:
            raise ValueError("not as runs write them")
        for name, value in entry.named_arguments.items():
            check_display_text(name, value if isinstance(value, str) else f"a{value}")
    except InputError as error:
        raise InputError(f"{where}: {entry.model[:80]!a}: {error}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: the arguments of {entry.model[:80]!a}: {error}") from None
    return arguments


NAMESPACE = "finskillbench-submission"
PROGRAM = "ssh-keygen"
_KEYS = ("id_ed25519", "id_ecdsa", "id_rsa")
_GOOD = re.compile(r'^Good "[^"]*" signature (?:for (?P<whose>.*) )?with (?P<kind>\S+) key (?P<key>SHA256:\S+)$')
_SECONDS = 120


@dataclass(frozen=True, slots=True)
class Signer:
    """Signer of a bundle: fingerprint of the key, and its owner if signers were given."""

    key: str
    owner: str | None = None


def default_key() -> Path | None:
    """Return the first default SSH key of the user, or None."""
    folder = Path.home() / ".ssh"
    return next((folder / name for name in _KEYS if (folder / name).is_file()), None)


def sign(data: bytes, key: Path) -> bytes:
    """Sign bytes by a private key file, or an agent with the key of a .pub file; InputError if OpenSSH cannot."""
    if not key.is_file():
        raise InputError(f"{key}: no such key file; create one with ssh-keygen -t ed25519, or give --unsigned")
    done = _run(("-Y", "sign", "-q", "-f", str(key), "-n", NAMESPACE), data)
    if done.returncode:
        raise InputError(f"{key}: ssh-keygen cannot sign with it ({_first_line(done.stderr)}); name another --key")
    return done.stdout


def signer_of(data: bytes, signature: bytes, signers: Path | None = None) -> Signer:
    """Verify a signature and return its signer; without `signers`, a file of allowed ones, every key is accepted.

    Raises
    ------
    ValueError : other bytes, another namespace, or a key that is not allowed.
    InputError : OpenSSH is missing, or the file of signers is unreadable.
    """
    if signers is not None and not signers.is_file():
        raise InputError(f"{signers}: no such file; write allowed signers in the format of ssh-keygen(1)")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "signature"
        file.write_bytes(signature)
        if signers is None:
            return _verified(_run(("-Y", "check-novalidate", "-n", NAMESPACE, "-s", str(file)), data))
        found = _run(("-Y", "find-principals", "-s", str(file), "-f", str(signers)), b"")
        names = found.stdout.decode("utf-8", "replace").splitlines()
        if found.returncode or not names:
            raise ValueError("its key is not among the allowed signers")
        who = ("-I", names[0], "-n", NAMESPACE, "-s", str(file))
        return _verified(_run(("-Y", "verify", "-f", str(signers), *who), data))


def _verified(done: subprocess.CompletedProcess[bytes]) -> Signer:
    matched = _GOOD.match(done.stdout.decode("utf-8", "replace").strip())
    if done.returncode or matched is None:
        raise ValueError("the signature does not match the manifest")
    return Signer(matched["key"], matched["whose"])


def _run(arguments: Sequence[str], data: bytes) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run([PROGRAM, *arguments], input=data, capture_output=True, timeout=_SECONDS, check=False)
    except FileNotFoundError:
        raise InputError(
            f"{PROGRAM} is not installed, but signs and checks bundles; install OpenSSH 8.2 or later"
        ) from None
    except subprocess.TimeoutExpired:
        raise InputError(f"{PROGRAM} did not answer in {_SECONDS} s; name another --key") from None


def _first_line(text: bytes) -> str:
    return next(iter(text.decode("utf-8", "replace").splitlines()), "no reason given")
