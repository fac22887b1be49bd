"""The desk suite in an edition: built, validated, and published without what only its holder can move on."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import date
from pathlib import Path

import orjson
import pytest
from tests.domains.shared.test_linear import test_twice_the_rows_take_twice_the_work  # noqa: F401 - each subtask here
from tests.edition.conftest import Workshop
from tests.edition.test_parameters import (  # noqa: F401 - each subtask here
    test_a_parameter_that_was_altered_is_found,
    test_the_build_writes_what_the_subtask_says,
)
from tests.editions import write_edition
from tests.harness.prompts.test_prompts import test_a_task_speaks_of_its_own_fields_and_of_no_skill  # noqa: F401
from tests.scoring.examples import truth

from finskillbench import load_edition, run
from finskillbench.edition import Edition
from finskillbench.edition.checks.catalog import CheckReport, checks_of
from finskillbench.edition.withheld import export_public, text_values
from finskillbench.episode import Episode, Prompt
from finskillbench.errors import EditionError
from finskillbench.findings import CheckState
from finskillbench.publish.bundle.judge import headline_tasks
from finskillbench.scoring.values import objects
from finskillbench_desk import allocate
from finskillbench_desk.committee_case import build as committee_case
from finskillbench_desk.domain import DOMAIN
from finskillbench_desk.forensic_screen import subtask as forensic_screen
from finskillbench_desk.trade_over_time import subtask as trade_over_time

from .conftest import CASES

SECRET = ("allocate", "trade_over_time", "forensic_screen")
"""Subtasks whose cases follow a law that they do not state."""


def test_every_subtask_has_the_cases_of_the_specification(synthetic_edition: Edition) -> None:
    assert [module.EPISODES for module in (allocate, trade_over_time, forensic_screen, committee_case)] == [40] * 4
    assert synthetic_edition.manifest["counts"] == {subtask.name: CASES for subtask in DOMAIN.subtasks}


def test_a_built_edition_passes_every_check(synthetic_report: CheckReport) -> None:
    found = {(check.domain, check.name) for check in synthetic_report.checks}
    assert found >= {(DOMAIN.name, name) for name in checks_of(DOMAIN)}
    assert [(f.where, f.message) for check in synthetic_report.checks for f in check.findings] == []
    assert synthetic_report.passed


def test_an_edition_that_states_its_laws_passes_every_check(full_report: CheckReport) -> None:
    assert [(f.where, f.message) for check in full_report.checks for f in check.findings] == []
    assert full_report.passed


def test_a_proof_that_was_taken_away_fails_its_label(synthetic_edition: Edition, tmp_path: Path) -> None:
    """Of each subtask that is derived again, its first label: these are found, and nothing else."""
    shutil.copytree(synthetic_edition.path, tmp_path / "edition")
    workshop, wanted = Workshop(tmp_path / "edition"), set[tuple[str, str]]()
    for name in [one.name for one in DOMAIN.subtasks if one.rederive is not None]:
        workshop.edit("truth", name, lambda row: row.update(proof={}))
        wanted.add((name, workshop.rows("truth", name)[0]["task_id"]))
    report = workshop.validated()
    assert {(c.name, f.where) for c in report.checks for f in c.findings if f.state is CheckState.FAIL} == wanted


def test_a_public_copy_of_what_is_built_names_no_trap(synthetic_edition: Edition, tmp_path: Path) -> None:
    public = export_public(synthetic_edition, tmp_path / "public")
    screens = public.episodes(["forensic_screen"])
    stated = [objects(synthetic_edition.truth(each.task_id).verification["traps"]) for each in screens]
    kinds = {trap["kind"] for traps in stated for trap in traps}
    assert len(kinds) > 3
    certificates = [each for name in SECRET for each in synthetic_edition.certificates(name).values()]
    structures = {each["structure"] for each in certificates}
    assert len(structures) >= min(CASES, 6) * len(SECRET)
    for episode in public.episodes():
        assert not structures & {episode.task_id, *text_values(episode.metadata), *text_values(episode.input)}
        assert not kinds & set(text_values(episode.metadata)), episode.task_id
        assert not {"traps", "controls", "orderly_archive"} & episode.metadata.keys(), episode.task_id
    (planted,) = {tuple(one["planted"]) for one in synthetic_edition.certificates("allocate").values()}
    assert planted == ("traps", "controls")


def test_what_only_the_holder_can_move_on_is_left_out_or_refused(tmp_path: Path) -> None:
    day, prompt = date(2025, 1, 15), Prompt("Do it.", "Answer as JSON.")
    domains = {"normalization": "fundamental_analysis", "trade_over_time": DOMAIN.name}
    tasks = [
        (Episode(f"{name}_0", domain, name, day, "easy", {}, prompt), replace(truth(name), task_id=f"{name}_0"))
        for name, domain in domains.items()
    ]
    whole = load_edition(write_edition(tmp_path / "whole", tasks))
    copy = export_public(whole, tmp_path / "copy")
    arguments = (["baseline/nop"], ["no_skill"])
    assert set(run(copy, *arguments, out=tmp_path / "run").rows["sub_task"]) == {"normalization"}
    with pytest.raises(EditionError, match="trade_over_time_0 is interactive"):
        run(copy, *arguments, subtasks=["trade_over_time"], out=tmp_path / "other")
    assert not (tmp_path / "other").exists()
    assert headline_tasks(whole.episodes()) == {"paper": ("normalization_0",)}


def test_paper_cases_are_offered_no_package_of_the_desk(tmp_path: Path) -> None:
    day, prompt = date(2025, 1, 15), Prompt("Do it.", "Answer as JSON.")
    tasks = [
        (Episode(f"{name}_0", domain, name, day, "easy", {}, prompt), replace(truth(name), task_id=f"{name}_0"))
        for name, domain in {"rebalancing": "portfolio_construction", "allocate": DOMAIN.name}.items()
    ]
    shutil.rmtree(write_edition(tmp_path / "edition", tasks) / "truth")  # what is played, not what it earns
    edition = load_edition(tmp_path / "edition")
    conditions = ["curated", "placebo"]
    for suite in ("paper", "all"):
        run(edition.part(suite), ["baseline/nop"], conditions, out=tmp_path / suite)
    own = {folder.name for folder in DOMAIN.skills}
    paper, every = (orjson.loads((tmp_path / suite / "run.json").read_bytes())["mounts"] for suite in ("paper", "all"))
    assert len(paper["curated"]["packages"]) == 3
    assert set(every["curated"]["packages"]) == own
    assert len(every["placebo"]["packages"]) == len(own)
    for condition in conditions:
        digests = every[condition]["digest"]
        assert digests["portfolio_construction"] == paper[condition]["digest"]["portfolio_construction"]
        assert digests["portfolio_construction"] != digests[DOMAIN.name]
