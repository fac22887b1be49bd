"""Episodes as folders: the words of the task, its data at full precision, the skills of an arm, and nothing later."""

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
from finskillbench.domains import by_name
from finskillbench.domains import subtasks as registered
from finskillbench.domains.base import Answer
from finskillbench.domains.tables import Table
from finskillbench.edition import Edition
from finskillbench.edition.publish import CANARY_TEXT
from finskillbench.edition.store import CANARY_FILE, new_folder
from finskillbench.episode import Episode
from finskillbench.errors import InputError
from finskillbench.harness.conditions import Condition, Mount, mount_all, package_names
from finskillbench.harness.skills.given import SkillFolder, read_given
from finskillbench.harness.skills.loader import SKILL_FILE, SkillPackage
from finskillbench.harness.words.compaction import refers_to_facts
from finskillbench.harness.words.prompts import task_prompt
from finskillbench.integrations.handout import Layout, harbor
from finskillbench.runs.plan.choice import choose_episodes
from finskillbench.runs.store.files import file_name

RECORD, ANSWER = "handout.json", "answer.json"
"""What was handed out, at the top; and what an agent leaves in the folder of an episode."""
FORMAT = 1

_DATA, _SKILLS = "data", "skills"
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
class Record:
    """What was handed out: `edition` and, by domain, `mounts` are digests, `tasks` maps folders to task ids."""

    format: int = FORMAT
    layout: Layout = Layout.FOLDERS
    edition: str
    condition: str
    mounts: Mapping[str, str]
    tasks: dict[str, str] = field(default_factory=dict[str, str])


def hand_out(
    edition: Edition,
    out: Path,
    condition: str = Condition.NO_SKILL.value,
    subtasks: Sequence[str] | None = None,
    *,
    skills: Mapping[str, SkillFolder | Path | str] = MappingProxyType({}),
    limit: int | None = None,
    sample: int | None = None,
    layout: Layout = Layout.FOLDERS,
    image: str | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Record:
    """Write a folder for each episode: `prompt.md`, `schema.json`, `data/`, `skills/` of the arm, and a canary.

    A task of Harbor holds the same in the places that Harbor knows, and the prompt as `instruction.md`.

    Parameters
    ----------
    edition : with or without its truth, of which nothing is handed out.
    out : a new folder.
    condition : an arm that gives an agent documents or scripts, or nothing.
    subtasks : names; None takes every subtask of the edition but those that are played move by move.
    skills : folders of skills by NAME, for a `condition` of `skill:NAME`.
    limit, sample : as of `finskillbench.runs.plan.choice.choose_episodes`.
    layout : the shape of a folder.
    image : what the images of Harbor's tasks start from; with scripts of skills one that has finskillbench.
    progress : called with the episodes that are written, and all of them.

    Raises
    ------
    InputError : no such arm or subtask, an arm that no folder can give, a number that does not fit, no episode, an
        image that does not fit, or an `out` that is not empty or cannot be written. Nothing is left half-written.
    EditionError : the panels cannot be read.
    """
    mounted, image = check_hand_out(condition, skills, layout, image)
    episodes = choose_episodes(edition.episodes(_foldable(edition, subtasks)), limit, sample)
    tasks = _folders(episodes)
    offered = {domain: mounted.of(domain) for domain in sorted({episode.skill for episode in episodes})}
    mounts = {domain: each.digest for domain, each in offered.items()}
    record = Record(layout=layout, edition=edition.digest, condition=condition, mounts=mounts, tasks=tasks)
    with new_folder(out) as folder:
        shared = folder / _SKILLS
        for name, package in mounted.packages.items():
            if any(name in each.packages for each in offered.values()):
                _copy(package, mounted, shared / name)
        cases: list[dict[str, str]] = []
        for done, (name, episode) in enumerate(zip(record.tasks, episodes, strict=True), 1):
            words = _write(folder / name, edition, episode, offered[episode.skill], shared, image)
            cases.append({"id": name, "prompt": words, "expected_skill": _skill_of(episode)})
            progress(done, len(episodes))
        if layout is Layout.HARBOR:
            harbor.write_dataset(folder, cases)
        shutil.rmtree(shared, ignore_errors=True)
        (folder / RECORD).write_bytes(orjson.dumps(record, option=orjson.OPT_INDENT_2))
    return record


def _foldable(edition: Edition, subtasks: Sequence[str] | None) -> tuple[str, ...]:
    """The subtasks to hand out: those named, or all that a folder can hold.

    Raises
    ------
    InputError : one that is named is played move by move, which no folder can do.
    """
    chosen = [by_name(name).name for name in subtasks] if subtasks is not None else list(edition.sub_tasks)
    staged = {each.name for each in registered() if each.stage is not None}
    if subtasks is not None and (played := [name for name in chosen if name in staged]):
        raise InputError(
            f"{played[0]} is played move by move, which a folder cannot do; play it with `finskillbench run`, `drive` "
            "or `serve`"
        )
    return tuple(name for name in chosen if name not in staged)


def _folders(episodes: Sequence[Episode]) -> dict[str, str]:
    """The task id of each folder, in the order of the episodes."""
    tasks = {file_name(episode.task_id): episode.task_id for episode in episodes}
    # Compared without case: some file systems do not tell Task-1 from task-1.
    if len({name.lower() for name in tasks} | {_SKILLS}) <= len(episodes):
        raise InputError("two task ids of this hand-out would share a folder; rename one of them")
    return tasks


def check_hand_out(
    condition: str, skills: Mapping[str, SkillFolder | Path | str], layout: Layout, image: str | None
) -> tuple[Mount, str | None]:
    """The packages and the image of a hand-out, checked before an edition is read.

    Raises
    ------
    InputError : as of `hand_out`.
    """
    mounted = mount_all([condition], read_given(skills, run_here=False))[condition]
    if mounted.arm.own or mounted.arm.inline or mounted.arm.indexes_scripts or mounted.arm.code:
        raise InputError(
            f"condition {condition!r} takes tools of our loop, which a folder does not have; hand out no_skill, "
            "curated, docs_only, placebo or skills of your own"
        )
    if layout is Layout.HARBOR:
        run = mounted.arm.scripts and any(package.scripts for package in mounted.packages.values())
        return mounted, harbor.check_image(image, scripts=run)
    if image is not None:
        raise InputError("--image is of Harbor's tasks; add --format harbor")
    return mounted, None


def _write(folder: Path, edition: Edition, episode: Episode, mounted: Mount, skills: Path, image: str | None) -> str:
    """One folder; with an `image` a task of Harbor. Returns the words of the task."""
    place = folder if image is None else folder / harbor.MATERIAL
    answer = _answer(episode)
    (place / _DATA).mkdir(parents=True)
    if answer is not None:
        (place / "schema.json").write_bytes(orjson.dumps(answer.model_json_schema(), option=orjson.OPT_INDENT_2))
    for name, value in readable(edition, episode).items():
        if isinstance(value, Table):
            (place / _DATA / f"{file_name(name)}.csv").write_bytes(csv_text(value.frame).encode())
        else:
            (place / _DATA / f"{file_name(name)}.json").write_bytes(orjson.dumps(value, option=_DUMP))
    for each in mounted.packages:  # the same bytes in every folder take their room once
        shutil.copytree(skills / each, place / _SKILLS / each, copy_function=os.link)
    where = "This folder" if image is None else f"The working directory `{harbor.PLACE}`"
    resources = (_WITH_SCRIPTS if mounted.arm.scripts else _WITH_DOCUMENTS) if mounted.packages else ""
    words = _INSTRUCTIONS.format(place=where, skills=resources) + task_prompt(episode, answer)
    if image is None:
        (place / "prompt.md").write_text(words + "\n", encoding="utf-8")
    else:
        told = {
            "task_id": episode.task_id,
            "sub_task": episode.sub_task,
            "condition": mounted.arm.condition,
            "edition": edition.digest,
        }
        shown = _SKILLS if mounted.packages else None
        harbor.write_task(folder, words, told, image=image, answer=ANSWER, skills=shown)
    (folder / CANARY_FILE).write_text(CANARY_TEXT, encoding="utf-8")
    return words


def _skill_of(episode: Episode) -> str:
    """The package that is of use for an episode; where its domain has none, the name of the domain."""
    return next(iter(package_names(episode.skill)), episode.skill)


def readable(edition: Edition, episode: Episode) -> dict[str, Any]:
    """Every field of an input as an agent may read it: at full precision, facts as they were filed."""
    filings = edition.filings
    return {
        name: filings.as_filed(value) if filings is not None and refers_to_facts(value) else edition.resolved(value)
        for name, value in episode.input.items()
    }


def _answer(episode: Episode) -> type[Answer] | None:
    try:
        return by_name(episode.sub_task).answer
    except InputError:
        return None


def _copy(package: SkillPackage, mounted: Mount, folder: Path) -> None:
    names = [SKILL_FILE, *package.references, *(package.scripts if mounted.arm.scripts else ())]
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(package.root / name, folder / name)
