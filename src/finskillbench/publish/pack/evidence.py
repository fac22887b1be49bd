"""Files that accompany a pack: the JSON of `data validate --json` and of `audit --json`, read back within bounds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from finskillbench.audit.report import AuditReport
from finskillbench.edition.validation.report import ValidationReport
from finskillbench.errors import InputError
from finskillbench.findings import Check, Finding, State

Kind = TypeVar("Kind")
_LARGEST = 64 * 2**20
"""Bytes of a report: a finding for each of 100,000 episodes takes about 20 MiB."""


class _Checks(Struct):
    digest: str
    checks: tuple[Check, ...]


class _AuditFinding(Struct):
    episode: str
    field: str
    evidence: str
    severity: State


class _AuditCheck(Struct):
    check: str
    domain: str
    state: State
    figures: Mapping[str, Any]
    findings: tuple[_AuditFinding, ...] = ()
    reason: str = ""


class _Audit(Struct):
    digest: str
    episodes: int
    seconds: float
    checks: tuple[_AuditCheck, ...]


def read_checks(path: Path) -> ValidationReport:
    """Read what `finskillbench data validate EDITION --json` printed.

    Raises
    ------
    InputError : the file cannot be read, or is something else.
    """
    found = _read(path, _Checks, "finskillbench data validate EDITION --json")
    return ValidationReport(found.digest, found.checks)


def read_audit(path: Path) -> AuditReport:
    """Read what `finskillbench audit EDITION --json FILE` wrote.

    Raises
    ------
    InputError : the file cannot be read, or is something else.
    """
    found = _read(path, _Audit, "finskillbench audit EDITION --json FILE")
    checks = tuple(
        Check(
            each.domain,
            each.check,
            each.state,
            each.figures,
            tuple(Finding(one.severity, one.episode, one.evidence, one.field) for one in each.findings),
            each.reason,
        )
        for each in found.checks
    )
    return AuditReport(found.digest, found.episodes, found.seconds, checks)


def read_bounded(path: Path, most: int, remedy: str) -> bytes:
    """Read a file of at most so many bytes.

    Raises
    ------
    InputError : the file cannot be read or is larger; the message ends in the remedy.
    """
    try:
        with path.open("rb") as file:
            content = file.read(most + 1)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); {remedy}") from error
    if len(content) > most:
        raise InputError(f"{path}: larger than {most:,} bytes; {remedy}")
    return content


def _read(path: Path, kind: type[Kind], command: str) -> Kind:
    content = read_bounded(path, _LARGEST, f"{command} makes it")
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not what {command} writes ({error})") from None
