"""Resolving the inputs of published episodes: files copied, definitions inlined, and what is not there reported."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from finskillbench.edition.references import read_covariance
from finskillbench.edition.release.read import Published
from finskillbench.edition.release.report import EpisodeImport, Problem, Reason
from finskillbench.edition.store import digest_file
from finskillbench.episode import Episode
from finskillbench.errors import EditionError, InputError
from finskillbench.scoring.values import mapping

INPUTS = "inputs"
"""Folder of the edition that holds files copied from the release, under their path below `data`."""

_DEFINITIONS = {"mandate": ("mandate_id", "mandates"), "stress_scenario": ("scenario_id", "stress_scenarios")}
"""Input field: the id it is given by, and the folder below the domain's `constructed` that defines it."""
_OPTIMISATION = ("covariance_matrix", "objective")
_REQUIRED = {
    "unconstrained_optimization": _OPTIMISATION,
    "constrained_optimization": (*_OPTIMISATION, "constraints"),
    "rebalancing": (*_OPTIMISATION, "current_portfolio"),
    "black_litterman": ("covariance_matrix", "market_cap_weights", "analyst_views"),
    "tool_use_parameterization": ("scenario_description", "tool_documentation"),
    "constraint_monitoring": ("portfolio", "mandate", "market_data"),
    "risk_identification": ("portfolio", "market_data"),
    "stress_testing": ("portfolio", "stress_scenario", "market_data"),
    "risk_remediation": ("portfolio", "mandate", "market_data"),
    "normalization": ("symbol", "period_end", "xbrl_ref"),
    "earnings_quality": ("symbol", "period_end", "xbrl_ref"),
    "driver_decomposition": ("symbol", "current_period_end", "prior_period_end", "xbrl_ref"),
}
"""What the answer depends on, whatever the episode; `_required` adds what its objective and limits refer to."""
_NEEDS_RETURNS = ("max_sharpe", "max_return")


@dataclass(frozen=True, slots=True)
class Resolved:
    """An episode as it goes into the edition, and what became of its inputs."""

    episode: Episode
    report: EpisodeImport


class Resolver:
    """Resolves the inputs of one release into one edition, copying each file once.

    `digests` are the files read besides the episodes, `symbols` every ticker met.
    """

    def __init__(self, release: Path, edition: Path) -> None:
        self._release = release
        self._edition = edition
        self._copies: dict[str, str | Problem] = {}
        self.digests: dict[str, str] = {}
        self.symbols: set[str] = set()

    def resolve(self, item: Published) -> Resolved:
        """The episode with what the release can resolve, and a report of the rest."""
        given = dict(item.episode.input)
        needed = _required(item.subtask.name, given)
        problems: list[Problem] = []
        inlined = [field for field in _DEFINITIONS if self._define(item.domain, field, given, problems)]
        copied = []
        for field, value in given.items():
            ref = value.get("ref") if isinstance(value, Mapping) else None
            if isinstance(ref, str):
                copy = self._copy(ref)
                if isinstance(copy, str):
                    given[field] = {**value, "ref": copy}
                    copied.append(copy)
                elif field in needed:
                    problems.append(replace(copy, field=field))
            elif field in needed:
                problems += self._paths(field, value)
        problems += _lacking(given, needed)
        self.symbols |= set(_symbols(given))
        report = EpisodeImport(
            task_id=item.episode.task_id,
            sub_task=item.subtask.name,
            file=item.file,
            problems=tuple(problems),
            copied=tuple(copied),
            inlined=tuple(inlined),
            prompt_written=item.prompt_written,
            nulls=item.nulls,
        )
        return Resolved(replace(item.episode, input=given), report)

    def _define(self, domain: str, field: str, given: dict[str, Any], problems: list[Problem]) -> bool:
        """Fill a field given by its id alone from the release's definitions; what the episode states is kept."""
        key, folder = _DEFINITIONS[field]
        value = given.get(field)
        if not isinstance(value, Mapping) or set(value) != {key}:
            return False
        name = str(value[key])
        file = f"data/{domain}/constructed/{folder}/{name}.json"
        path = self._inside(file)
        if path is None or not path.is_file():
            problems.append(Problem(Reason.NO_DEFINITION, field, f"{name}: the release has no {file}"))
            return False
        try:
            defined = json.loads(path.read_bytes())
        except (OSError, ValueError) as error:
            raise InputError(f"{path}: not JSON ({error}); restore the file from the release") from None
        if not isinstance(defined, dict) or defined.get(key) != name:
            raise InputError(f"{path}: does not define {key} {name!r}; restore the file from the release")
        given[field] = {**defined, **value}
        self.digests[file] = digest_file(path)
        return True

    def _copy(self, ref: str) -> str | Problem:
        """The reference to a copy inside the edition, or why there is none; the problem's field is filled in later."""
        if ref not in self._copies:
            path = self._inside(ref)
            if path is None or not path.is_file():
                self._copies[ref] = Problem(Reason.MISSING_FILE, "", f"the release has no {ref}")
            else:
                self._copies[ref] = self._copy_file(ref, path)
        return self._copies[ref]

    def _copy_file(self, ref: str, path: Path) -> str | Problem:
        try:
            read_covariance(path)
        except EditionError as error:
            return Problem(Reason.UNREADABLE_FILE, "", f"{ref}: {str(error).removeprefix(f'{path}: ')}")
        copy = f"{INPUTS}/{ref.removeprefix('data/')}"
        (self._edition / copy).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, self._edition / copy)
        self.digests[ref] = digest_file(path)
        return copy

    def _paths(self, field: str, value: Any) -> Iterator[Problem]:
        """Paths of the release in a field that no tool reads: missing, or there in a form nobody can be handed."""
        for name, text in _texts(field, value):
            if text.startswith("data/"):
                path = self._inside(text)
                if path is None or not path.exists():
                    yield Problem(Reason.MISSING_FILE, name, f"the release has no {text}")
                else:
                    yield Problem(Reason.UNREADABLE_FILE, name, f"{text} is there, but an edition cannot serve it")

    def _inside(self, ref: str) -> Path | None:
        """The path of a reference; None if it leads out of the release."""
        path = (self._release / ref).resolve()
        return path if path.is_relative_to(self._release.resolve()) else None


def _required(sub_task: str, given: Mapping[str, Any]) -> tuple[str, ...]:
    fields = list(_REQUIRED[sub_task])
    if given.get("objective") in _NEEDS_RETURNS:
        fields.append("expected_returns")
    limits = mapping(given.get("constraints"))
    neutral = bool(limits.get("factor_neutrality"))
    for needed, field in (
        (limits.get("sector_limits"), "sector_mapping"),
        (limits.get("max_turnover") is not None, "current_portfolio"),
        (limits.get("max_tracking_error") is not None or neutral, "benchmark_weights"),
        (neutral, "factor_exposures"),
    ):
        if needed and field not in fields:
            fields.append(field)
    return tuple(fields)


def _lacking(given: Mapping[str, Any], needed: tuple[str, ...]) -> Iterator[Problem]:
    for field in needed:
        if given.get(field) is None:
            yield Problem(Reason.ABSENT_INPUT, field, "is not given")
        elif given[field] in ({}, [], ""):
            yield Problem(Reason.EMPTY_INPUT, field, "is empty")


def _texts(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """Every text in a field with its dotted name."""
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _texts(f"{name}.{key}", item)


def _symbols(given: Mapping[str, Any]) -> Iterator[str]:
    """Tickers named by the fields that list names."""
    if isinstance(given.get("symbol"), str):
        yield given["symbol"]
    for field in ("expected_returns", "current_portfolio", "market_cap_weights", "benchmark_weights"):
        yield from mapping(given.get(field))
    for holding in mapping(given.get("portfolio")).get("holdings") or []:
        if isinstance(holding, Mapping) and isinstance(holding.get("symbol"), str):
            yield holding["symbol"]
    tickers = mapping(given.get("covariance_matrix")).get("tickers")
    yield from (ticker for ticker in tickers or [] if isinstance(ticker, str))
