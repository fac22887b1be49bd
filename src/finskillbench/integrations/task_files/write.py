"""Episodes as folders: the words of the task, its data at full precision, the skills of an arm, and nothing later.

As a task of Harbor a folder has an instruction, an image, and a verifier that says no more than whether there is an
answer. Harbor copies `environment/` into the image, shows the agent `instruction.md`, runs `tests/test.sh` when the
agent is done, and keeps the files that `artifacts` names. Where that script runs, an agent may have been root: its
processes may still be there, and `python` may be its own. So no truth goes there. The reward of a trial is `answered`,
which is no score; `finskillbench score --jobs` judges the answers that Harbor kept, on the side of whoever holds the
truth. For the same reason there is no `solution/`.
"""

from __future__ import annotations

import json
import os
import re
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
from finskillbench.edition.store import CANARY, CANARY_FILE, new_folder
from finskillbench.edition.withheld import CANARY_TEXT
from finskillbench.episode import Episode
from finskillbench.errors import InputError
from finskillbench.harness.conditions import Condition, Mount, mount_all, package_names
from finskillbench.harness.prompts.compaction import refers_to_facts
from finskillbench.harness.prompts.compose import task_prompt
from finskillbench.harness.skills.loader import SKILL_FILE, SkillPackage
from finskillbench.harness.skills.user_skills import SkillFolder, read_user_skills
from finskillbench.integrations.task_files import Layout
from finskillbench.runs.plan.items import choose_episodes
from finskillbench.runs.store.version import file_name

IMAGE = "python:3.12-slim"
"""The image of tasks whose skills run no scripts of ours."""
PLACE = "/workspace"
"""Where an agent works."""
MATERIAL = Path("environment") / "workspace"
"""What is copied there, below the folder of a task."""
SECONDS = 1800.0
"""As long as an agent in Python has, `Agent.seconds`."""

_IMAGE_NAME = re.compile(r"[a-z0-9][\w./:@-]{0,254}", re.ASCII)
_TASK = """\
schema_version = "1.3"
artifacts = [{{ source = {answer}, destination = {kept} }}]

[metadata]
{metadata}

[agent]
timeout_sec = {seconds}

[verifier]
timeout_sec = 60.0

[environment]
build_timeout_sec = 1800.0
{skills}"""
_DOCKERFILE = """\
FROM {image}
WORKDIR {place}
COPY workspace/ {place}/
"""
_EXPECTED = "answer.json in the working directory holds one JSON object that follows schema.json."
"""All that an outside evaluator of skills is told: the answer itself is judged by `finskillbench score`."""
_VERIFIER = """\
#!/bin/sh
# Says whether there is an answer, and no more: no truth is here. `finskillbench score --jobs` judges it.
mkdir -p /logs/verifier
if [ -s {answer} ]; then answered=1; else answered=0; fi
echo "{{\\"answered\\": $answered}}" > /logs/verifier/reward.json
"""


def check_image(image: str | None, *, scripts: bool) -> str:
    """The image that tasks start from.

    Raises
    ------
    InputError : the name is no name, or there is none although scripts of skills are to run in it.
    """
    if image is None:
        if scripts:
            raise InputError(
                "scripts of skills need an image that can run them, ours one with finskillbench; name it: --image"
            )
        return IMAGE
    if not _IMAGE_NAME.fullmatch(image):
        raise InputError(f"--image {image!r} is no name of an image")
    return image


def write_task(
    folder: Path, words: str, metadata: Mapping[str, str], *, image: str, answer: str, skills: str | None
) -> None:
    """Write what makes a folder a task; its material is in `MATERIAL` already.

    Parameters
    ----------
    folder : of the task.
    words : what the agent is told.
    metadata : what is known of the episode, which Harbor shows no agent.
    image : to start from.
    answer : name of the file that the agent leaves in its working directory.
    skills : name of the folder of skills there, which Harbor shows to agents that look for them; None where none is.
    """
    place = f"{PLACE}/{answer}"
    # Every JSON string of ASCII is a TOML string.
    told = "\n".join(f"{name} = {json.dumps(value)}" for name, value in {**metadata, "canary": CANARY}.items())
    task = _TASK.format(
        answer=json.dumps(place),
        kept=json.dumps(answer),
        metadata=told,
        seconds=SECONDS,
        skills="" if skills is None else f'skills_dir = "{PLACE}/{skills}"\n',
    )
    (folder / "task.toml").write_text(task, encoding="utf-8")
    # Harbor takes a first line like this one off before an agent sees the rest.
    (folder / "instruction.md").write_text(f"<!-- {CANARY} -->\n{words}\n", encoding="utf-8")
    (folder / "environment" / "Dockerfile").write_text(_DOCKERFILE.format(image=image, place=PLACE), encoding="utf-8")
    verifier = folder / "tests" / "test.sh"
    verifier.parent.mkdir()
    verifier.write_text(_VERIFIER.format(answer=place), encoding="utf-8")
    verifier.chmod(0o755)


def write_dataset(folder: Path, cases: Sequence[Mapping[str, str]]) -> None:
    """Write what names the tasks of a folder for tools around Harbor: `dataset.toml`, and `evals.json`.

    Parameters
    ----------
    folder : of the hand-out.
    cases : of each task its `id`, which is its folder, the `prompt` and the `expected_skill` of its domain.
    """
    tasks = "".join(f"\n[[tasks]]\nname = {json.dumps('finskillbench/' + case['id'])}\n" for case in cases)
    text = f'[dataset]\nname = "finskillbench/handout"\ndescription = "{CANARY}"\n{tasks}'
    (folder / "dataset.toml").write_text(text, encoding="utf-8")
    skills = {case["expected_skill"] for case in cases}
    told = {"expected_output": _EXPECTED, "assertions": [_EXPECTED]}
    data = {
        "skill_name": skills.pop() if len(skills) == 1 else "finskillbench",
        "evals": [{**case, **told} for case in cases],
    }
    (folder / "evals.json").write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")


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
    limit, sample : as of `finskillbench.runs.plan.items.choose_episodes`.
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
    offered = {domain: mounted.for_domain(domain) for domain in sorted({episode.skill for episode in episodes})}
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
            write_dataset(folder, cases)
        shutil.rmtree(shared, ignore_errors=True)
        (folder / RECORD).write_bytes(orjson.dumps(record, option=orjson.OPT_INDENT_2))
    return record


def _foldable(edition: Edition, subtasks: Sequence[str] | None) -> tuple[str, ...]:
    """The subtasks to hand out: those named, or all that a folder can hold.

    Raises
    ------
    InputError : one that is named is played move by move, which no folder can do.
    """
    chosen = [subtask_named(name).name for name in subtasks] if subtasks is not None else list(edition.sub_tasks)
    staged = {each.name for each in registered() if each.open_interactive_state is not None}
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
    mounted = mount_all([condition], read_user_skills(skills, run_locally=False))[condition]
    if mounted.arm.own or mounted.arm.inline or mounted.arm.indexes_scripts or mounted.arm.code:
        raise InputError(
            f"condition {condition!r} takes tools of our loop, which a folder does not have; hand out no_skill, "
            "curated, docs_only, placebo or skills of your own"
        )
    if layout is Layout.HARBOR:
        run = mounted.arm.scripts and any(package.scripts for package in mounted.packages.values())
        return mounted, check_image(image, scripts=run)
    if image is not None:
        raise InputError("--image is of Harbor's tasks; add --format harbor")
    return mounted, None


def _write(folder: Path, edition: Edition, episode: Episode, mounted: Mount, skills: Path, image: str | None) -> str:
    """One folder; with an `image` a task of Harbor. Returns the words of the task."""
    place = folder if image is None else folder / MATERIAL
    answer = _answer(episode)
    (place / _DATA).mkdir(parents=True)
    if answer is not None:
        (place / "schema.json").write_bytes(orjson.dumps(answer.model_json_schema(), option=orjson.OPT_INDENT_2))
    for name, value in _readable(edition, episode).items():
        if isinstance(value, EpisodeTable):
            (place / _DATA / f"{file_name(name)}.csv").write_bytes(csv_text(value.frame).encode())
        else:
            (place / _DATA / f"{file_name(name)}.json").write_bytes(orjson.dumps(value, option=_DUMP))
    for each in mounted.packages:  # the same bytes in every folder take their room once
        shutil.copytree(skills / each, place / _SKILLS / each, copy_function=os.link)
    where = "This folder" if image is None else f"The working directory `{PLACE}`"
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
        write_task(folder, words, told, image=image, answer=ANSWER, skills=shown)
    (folder / CANARY_FILE).write_text(CANARY_TEXT, encoding="utf-8")
    return words


def _skill_of(episode: Episode) -> str:
    """The package that is of use for an episode; where its domain has none, the name of the domain."""
    return next(iter(package_names(episode.skill)), episode.skill)


def _readable(edition: Edition, episode: Episode) -> dict[str, Any]:
    """Every field of an input as an agent may read it: at full precision, facts as they were filed."""
    filings = edition.filings
    return {
        name: filings.as_filed(value) if filings is not None and refers_to_facts(value) else edition.resolved(value)
        for name, value in episode.input.items()
    }


def _answer(episode: Episode) -> type[Answer] | None:
    try:
        return subtask_named(episode.sub_task).answer
    except InputError:
        return None


def _copy(package: SkillPackage, mounted: Mount, folder: Path) -> None:
    names = [SKILL_FILE, *package.references, *(package.scripts if mounted.arm.scripts else ())]
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(package.root / name, folder / name)
