"""Files that accompany a report: JSON of `data validate` and `audit`, and acceptance criteria in TOML."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, TypeAlias, TypeVar

import msgspec
from msgspec import Meta, Struct

from finskillbench.domains.base import HEADLINE
from finskillbench.edition.checks.catalog import CheckReport, Level
from finskillbench.errors import InputError
from finskillbench.findings import Check
from finskillbench.reports.compare.gates import Threshold, ThresholdMeasure

Kind = TypeVar("Kind")
_Share: TypeAlias = Annotated[float, Meta(ge=0.0, le=1.0)]
_LARGEST_CRITERIA = 2**18
_REMEDY = "docs/validation-pack.md has an example"
_LARGEST = 64 * 2**20
"""Maximum bytes of a report; one finding for each of 100,000 episodes takes about 20 MiB."""


class _Report(Struct):
    digest: str
    levels: tuple[Level, ...]
    episodes: int
    checks: tuple[Check, ...]


def read_checks(path: Path) -> CheckReport:
    """Read the output of `finskillbench data validate EDITION --json`; raises `InputError` for any other file."""
    return _read_report(path, "finskillbench data validate EDITION --json", audit=False)


def read_audit(path: Path) -> CheckReport:
    """Read the output of `finskillbench audit EDITION --json FILE`; raises `InputError` for any other file."""
    return _read_report(path, "finskillbench audit EDITION --json FILE", audit=True)


def _read_report(path: Path, command: str, *, audit: bool) -> CheckReport:
    found = _read(path, _Report, command)
    if (Level.AUDIT in found.levels) is not audit:
        levels = ", ".join(found.levels)
        raise InputError(f"{path}: not the output of {command}: its checks have the levels {levels}")
    return CheckReport(found.digest, found.levels, found.episodes, found.checks)


class _Criterion(Struct, forbid_unknown_fields=True):
    part: str = HEADLINE
    condition: str | None = None
    model: str | None = None
    mean: _Share | None = None
    lower_bound: _Share | None = None
    coverage: _Share | None = None
    incidents: _Share | None = None


class _File(Struct, forbid_unknown_fields=True):
    criterion: Annotated[tuple[_Criterion, ...], Meta(min_length=1)]


def read_criteria(path: Path) -> list[Threshold]:
    """Read a TOML file with one `[[criterion]]` per acceptance criterion.

    Raises
    ------
    InputError : the file cannot be read, or a field is missing, unknown or out of range; in one line.
    """
    content = _read_bounded(path, _LARGEST_CRITERIA, _REMEDY)
    try:
        file = msgspec.convert(tomllib.loads(content.decode()), _File)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path}: not TOML ({error}); {_REMEDY}") from None
    except msgspec.ValidationError as error:
        raise InputError(f"{path}: {error}; {_REMEDY}") from None
    return [
        threshold
        for number, each in enumerate(file.criterion, start=1)
        for threshold in _thresholds(each, f"{path}, criterion {number}")
    ]


def _thresholds(criterion: _Criterion, where: str) -> list[Threshold]:
    limits = {measure: getattr(criterion, measure.value) for measure in ThresholdMeasure}
    found = [
        Threshold(criterion.part, criterion.condition, limit, measure, criterion.model, where)
        for measure, limit in limits.items()
        if limit is not None
    ]
    if not found:
        raise InputError(f"{where}: has no limit; set one of {', '.join(ThresholdMeasure)}")
    return found


def _read_bounded(path: Path, most: int, remedy: str) -> bytes:
    """Read a file of at most `most` bytes; an `InputError` ends in the remedy."""
    try:
        with path.open("rb") as file:
            content = file.read(most + 1)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); {remedy}") from error
    if len(content) > most:
        raise InputError(f"{path}: larger than {most:,} bytes; {remedy}")
    return content


def _read(path: Path, kind: type[Kind], command: str) -> Kind:
    content = _read_bounded(path, _LARGEST, f"create it with {command}")
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not the output of {command} ({error})") from None
