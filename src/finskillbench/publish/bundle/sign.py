"""Signatures by SSH keys, which most people who run models have: made and checked by OpenSSH's `ssh-keygen -Y`.

A signature holds for this purpose alone (its namespace), and is offline. Who a key belongs to is said by a file of
allowed signers, in the format of ssh-keygen(1); without one a key is known by its fingerprint.
"""

from __future__ import annotations

import base64
import re
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from finskillbench.errors import InputError

NAMESPACE = "finskillbench-submission"
PROGRAM = "ssh-keygen"
_KEYS = ("id_ed25519", "id_ecdsa", "id_rsa")
_GOOD = re.compile(r'^Good "[^"]*" signature (?:for (?P<whose>.*) )?with (?P<kind>\S+) key (?P<key>SHA256:\S+)$')
_SECONDS = 120
_MOST_LINES = 20


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
        tried = [_allowed(data, file, signers)]
        # A key may stand in several lines, of which ssh-keygen looks at the first; another may allow this purpose.
        for number, line in enumerate(_lines_of(signature, signers)[:_MOST_LINES]):
            if tried[-1] is not None and not tried[-1].returncode:
                break
            alone = Path(folder) / f"line{number}"
            alone.write_text(f"{line}\n")
            tried.append(_allowed(data, file, alone))
        known = [done for done in tried if done is not None]
        if not known:
            raise ValueError("its key is none of the allowed signers")
        return _verified(known[-1])


def _allowed(data: bytes, signature: Path, signers: Path) -> subprocess.CompletedProcess[bytes] | None:
    """The verification by the first line of some signers that has the key; None where none has."""
    found = _run(("-Y", "find-principals", "-s", str(signature), "-f", str(signers)), b"")
    names = found.stdout.decode("utf-8", "replace").splitlines()
    if found.returncode or not names:
        return None
    return _run(("-Y", "verify", "-f", str(signers), "-I", names[0], "-n", NAMESPACE, "-s", str(signature)), data)


def _lines_of(signature: bytes, signers: Path) -> list[str]:
    """The lines of the allowed signers with the key of a signature (PROTOCOL.sshsig); none of a broken one."""
    try:
        body = base64.b64decode(b"".join(signature.strip().splitlines()[1:-1]))
        size = int.from_bytes(body[10:14], "big")
        key = base64.b64encode(body[14 : 14 + size]).decode()
        lines = signers.read_text(encoding="utf-8").splitlines()
    except (ValueError, OSError):
        return []
    return [line for line in lines if key and key in line.split()]


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
