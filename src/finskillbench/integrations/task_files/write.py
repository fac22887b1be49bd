"""Export episodes as folders: prompt, data at full precision, and the skills of a condition.

A plain folder holds no truth. A Harbor task adds images, a verifier with the truth and a solution: see `harbor`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import orjson

from finskillbench.csv_output import csv_text
from finskillbench.domains import subtask_named
from finskillbench.domains import subtasks as registered
from finskillbench.domains.base import Answer
from finskillbench.domains.tables import EpisodeTable
from finskillbench.edition import Edition
from finskillbench.edition.store import CANARY_FILE, new_folder
from finskillbench.edition.withheld import CANARY_TEXT
from finskillbench.episode import Episode
from finskillbench.errors import InputError
from finskillbench.harness.conditions import Condition, Mount, mount_all
from finskillbench.harness.prompts.compaction import refers_to_facts
from finskillbench.harness.prompts.compose import task_prompt
from finskillbench.harness.skills.loader import SKILL_FILE, SkillPackage
from finskillbench.harness.skills.user_skills import SkillFolder, read_user_skills
from finskillbench.integrations.task_files.harbor import MATERIAL, PLACE, HarborImages, write_dataset, write_task
from finskillbench.runs.config import EpisodeSelection
from finskillbench.runs.plan.items import choose_episodes
from finskillbench.runs.store.version import file_name

RECORD = "handout.json"
"""Record of an export of plain folders, at its top."""
FORMAT = 1

_DATA, _SKILLS, _WHEELS = "data", "skills", "_wheels"
_DUMP = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS | orjson.OPT_APPEND_NEWLINE
_INSTRUCTIONS = """\
You are an investment analyst taking part in a controlled benchmark. {place} is one task: financial data as it was \
known on one date, and one structured answer that is asked for.

Rules
- Work only with what is there. Do not use anything that became known after `as_of_date`.
- `data/` holds each field of the input at full precision, one JSON file a field, or a CSV file where the field is a \
table. Where the task speaks of `get_task_data(field)` or `read_table(field)`, read `data/<field>.json` or \
`data/<field>.csv`.
{skills}- Write your answer to `answer.json`: one JSON object that follows the answer schema, which `schema.json` says \
as a JSON schema. Give null for a value that cannot be determined. Do not decline the task.

"""
_WITH_DOCUMENTS = """\
- `skills/` holds documents of experts. Read the `SKILL.md` of one that fits the task and follow its guidance.
"""
_WITH_SCRIPTS = """\
- `skills/` holds documents and tested scripts of experts. Read the `SKILL.md` of one that fits the task and follow \
its guidance; `python skills/<name>/scripts/<script>.py --input FILE` runs a script on a JSON file.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRecord:
    """Record of an export: `edition` and `mounts` (by domain) are digests, `tasks` maps folders to task ids.

    An export of pages has `participants` and a time limit or None, and `tasks` maps the numbers on a page.
    """

    format: int = FORMAT
    edition: str
    condition: str
    mounts: Mapping[str, str]
    tasks: dict[str, str] = field(default_factory=dict[str, str])
    participants: tuple[str, ...] = ()
    minutes: int | None = None


def export_tasks(
    edition: Edition,
    out: Path,
    condition: str = Condition.NO_SKILL.value,
    *,
    chosen: EpisodeSelection = EpisodeSelection(),  # noqa: B008 - immutable
    skills: Mapping[str, SkillFolder | Path | str] = MappingProxyType({}),
    harbor: HarborImages | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> ExportRecord:
    """Write a folder for each episode: `prompt.md`, `schema.json`, `data/`, `skills/`, and a canary.

    A Harbor task holds the same at Harbor's paths, with the prompt in `instruction.md`, and truth elsewhere.

    Parameters
    ----------
    edition : with its truth for Harbor tasks; plain folders hold none.
    out : a new folder.
    condition : one that offers documents or scripts, or nothing.
    chosen : subtasks, limit and sample; without subtasks all but interactive ones. Other fields are not read.
    skills : skill folders by NAME, for the condition `skill:NAME`.
    harbor : images of Harbor tasks; None writes plain folders.
    progress : called with the number of written episodes and their total.

    Raises
    ------
    InputError : a condition, subtask, number or wheel does not fit, no episode is left, or `out` is not empty or not
        writable. Nothing is left half-written.
    EditionError : the panels cannot be read, or Harbor tasks lack their truth.
    """
    mounted = check_task_export(condition, skills)
    episodes, offered = exportable_episodes(edition, chosen, mounted)
    tasks = _folders(episodes)
    mounts = {domain: each.digest for domain, each in offered.items()}
    record = ExportRecord(edition=edition.digest, condition=condition, mounts=mounts, tasks=tasks)
    with new_folder(out) as folder:
        shared = folder / _SKILLS
        for name, package in mounted.packages.items():
            if any(name in each.packages for each in offered.values()):
                _copy(package, mounted, shared / name)
        if harbor is not None:
            harbor.check({episode.sub_task for episode in episodes})
            harbor = harbor.staged(shared / _WHEELS)
        prompts: dict[str, str] = {}
        for done, (name, episode) in enumerate(zip(record.tasks, episodes, strict=True), 1):
            prompts[name] = _write(folder / name, edition, episode, offered[episode.skill], shared, harbor)
            progress(done, len(episodes))
        if harbor is None:
            (folder / RECORD).write_bytes(orjson.dumps(record, option=orjson.OPT_INDENT_2))
        else:
            write_dataset(folder, edition, prompts, episodes)
        shutil.rmtree(shared, ignore_errors=True)
    return record


def exportable_episodes(
    edition: Edition, chosen: EpisodeSelection, mounted: Mount
) -> tuple[tuple[Episode, ...], dict[str, Mount]]:
    """Return the chosen episodes, and the mount of each of their domains; raises as `export_tasks`."""
    episodes = choose_episodes(edition.episodes(_foldable(edition, chosen.subtasks)), chosen.limit, chosen.sample)
    return episodes, {domain: mounted.for_domain(domain) for domain in sorted({episode.skill for episode in episodes})}


def _foldable(edition: Edition, subtasks: Sequence[str] | None) -> tuple[str, ...]:
    """Return the named subtasks, or all that are not interactive; refuse named interactive ones."""
    chosen = [subtask_named(name).name for name in subtasks] if subtasks is not None else list(edition.sub_tasks)
    staged = interactive_subtasks(edition)
    if subtasks is not None and (played := [name for name in chosen if name in staged]):
        raise InputError(
            f"{played[0]} is interactive and cannot be exported as a folder; use finskillbench run, drive or serve"
        )
    return tuple(name for name in chosen if name not in staged)


def interactive_subtasks(edition: Edition) -> list[str]:
    """Return the subtasks of an edition that a folder cannot hold, since their data change with the agent's actions."""
    staged = {each.name for each in registered() if each.open_interactive_state is not None}
    return [name for name in edition.sub_tasks if name in staged]


def _folders(episodes: Sequence[Episode]) -> dict[str, str]:
    tasks = {file_name(episode.task_id): episode.task_id for episode in episodes}
    # Compared without case, for file systems that ignore it.
    if len({name.lower() for name in tasks} | {_SKILLS}) <= len(episodes):
        raise InputError("two task ids of this export would share a folder; rename one of them")
    return tasks


def check_task_export(condition: str, skills: Mapping[str, SkillFolder | Path | str]) -> Mount:
    """Check the condition of an export before the edition is read; return its mount.

    Raises
    ------
    InputError : as for `export_tasks`.
    """
    mounted = mount_all([condition], read_user_skills(skills, run_locally=False))[condition]
    arm = mounted.arm
    if arm.own or arm.inline or arm.indexes_scripts or arm.code or arm.activation:
        raise InputError(
            f"condition {condition!r} needs tools of our loop, which a folder does not have; use no_skill, curated, "
            "docs_only, placebo or your own skills"
        )
    return mounted


def _write(
    folder: Path, edition: Edition, episode: Episode, mounted: Mount, skills: Path, harbor: HarborImages | None
) -> str:
    """Write one folder; return the instruction."""
    place = folder if harbor is None else folder / MATERIAL
    answer = answer_type(episode)
    (place / _DATA).mkdir(parents=True)
    if answer is not None:
        (place / "schema.json").write_bytes(orjson.dumps(answer.model_json_schema(), option=orjson.OPT_INDENT_2))
    for name, value in readable_input(edition, episode).items():
        if isinstance(value, EpisodeTable):
            (place / _DATA / f"{file_name(name)}.csv").write_bytes(csv_text(value.frame).encode())
        else:
            (place / _DATA / f"{file_name(name)}.json").write_bytes(orjson.dumps(value, option=_DUMP))
    for each in mounted.packages:  # hard links: the content takes its space once
        shutil.copytree(skills / each, place / _SKILLS / each, copy_function=os.link)
    where = "This folder" if harbor is None else f"The working directory `{PLACE}`"
    resources = (_WITH_SCRIPTS if mounted.arm.scripts else _WITH_DOCUMENTS) if mounted.packages else ""
    instruction = _INSTRUCTIONS.format(place=where, skills=resources) + task_prompt(episode, answer)
    if harbor is None:
        (place / "prompt.md").write_text(instruction + "\n", encoding="utf-8")
    else:
        write_task(
            folder,
            edition,
            episode,
            instruction,
            harbor,
            condition=mounted.arm.condition,
            skills=_SKILLS if mounted.packages else None,
            scripts=mounted.arm.scripts and bool(mounted.packages),
        )
    (folder / CANARY_FILE).write_text(CANARY_TEXT, encoding="utf-8")
    return instruction


def readable_input(edition: Edition, episode: Episode) -> dict[str, Any]:
    """Return all fields of an input at full precision, facts as filed."""
    filings = edition.filings
    return {
        name: filings.as_filed(value) if filings is not None and refers_to_facts(value) else edition.resolved(value)
        for name, value in episode.input.items()
    }


def answer_type(episode: Episode) -> type[Answer] | None:
    """Return the answer type of an episode; None for an imported one of an unknown subtask."""
    try:
        return subtask_named(episode.sub_task).answer
    except InputError:
        return None


def _copy(package: SkillPackage, mounted: Mount, folder: Path) -> None:
    names = [SKILL_FILE, *package.references, *(package.scripts if mounted.arm.scripts else ())]
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(package.root / name, folder / name)
