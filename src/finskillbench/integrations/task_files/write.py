"""Export episodes as folders: prompt, data at full precision, the skills of a condition, and no truth.

A Harbor task adds an image and a verifier. Harbor copies `environment/` into the image, shows the agent
`instruction.md`, runs `tests/test.sh` after the agent, and keeps the files of `artifacts`. That script runs in a
container in which the agent may be root, so it holds no truth and only reports `answered`, which is not a score.
`finskillbench score --jobs` judges the kept answers elsewhere. There is no `solution/` for the same reason.
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
from finskillbench.runs.config import EpisodeSelection
from finskillbench.runs.plan.items import choose_episodes
from finskillbench.runs.store.version import file_name

IMAGE = "python:3.12-slim"
"""Base image of tasks without scripts of ours."""
PLACE = "/workspace"
"""Working directory of the agent."""
MATERIAL = Path("environment") / "workspace"
"""Content of the working directory, below the folder of a task."""
SECONDS = 1800.0
"""Same as the default of `Agent.seconds`."""

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
"""Expectation for external evaluators of skills; `finskillbench score` judges the answer."""
_VERIFIER = """\
#!/bin/sh
# Says whether there is an answer, and no more: no truth is here. `finskillbench score --jobs` judges it.
mkdir -p /logs/verifier
if [ -s {answer} ]; then answered=1; else answered=0; fi
echo "{{\\"answered\\": $answered}}" > /logs/verifier/reward.json
"""


def check_image(image: str | None, *, scripts: bool) -> str:
    """Return the base image of tasks.

    Raises
    ------
    InputError : the name is invalid, or missing although skills have scripts.
    """
    if image is None:
        if scripts:
            raise InputError(
                "scripts of skills need an image that can run them (ours: with finskillbench installed); add --image"
            )
        return IMAGE
    if not _IMAGE_NAME.fullmatch(image):
        raise InputError(f"--image {image!r} is not an image name")
    return image


def write_task(
    folder: Path, instruction: str, metadata: Mapping[str, str], *, image: str, answer: str, skills: str | None
) -> None:
    """Write the Harbor files of a task; `MATERIAL` is there already.

    Parameters
    ----------
    instruction : text for the agent.
    metadata : fields of the episode, which Harbor does not show to agents.
    answer : name of the answer file in the working directory.
    skills : name of the skills folder there, which Harbor shows to agents that support skills; None without skills.
    """
    place = f"{PLACE}/{answer}"
    # Every JSON string of ASCII is a TOML string.
    metadata_lines = "\n".join(
        f"{name} = {json.dumps(value)}" for name, value in {**metadata, "canary": CANARY}.items()
    )
    task = _TASK.format(
        answer=json.dumps(place),
        kept=json.dumps(answer),
        metadata=metadata_lines,
        seconds=SECONDS,
        skills="" if skills is None else f'skills_dir = "{PLACE}/{skills}"\n',
    )
    (folder / "task.toml").write_text(task, encoding="utf-8")
    # Harbor removes such a first line before an agent sees the rest.
    (folder / "instruction.md").write_text(f"<!-- {CANARY} -->\n{instruction}\n", encoding="utf-8")
    (folder / "environment" / "Dockerfile").write_text(_DOCKERFILE.format(image=image, place=PLACE), encoding="utf-8")
    verifier = folder / "tests" / "test.sh"
    verifier.parent.mkdir()
    verifier.write_text(_VERIFIER.format(answer=place), encoding="utf-8")
    verifier.chmod(0o755)


def write_dataset(folder: Path, cases: Sequence[Mapping[str, str]]) -> None:
    """Write `dataset.toml` and `evals.json`, which list the tasks for tools around Harbor.

    `cases` holds for each task `id` (its folder), `prompt` and `expected_skill`.
    """
    tasks = "".join(f"\n[[tasks]]\nname = {json.dumps('finskillbench/' + case['id'])}\n" for case in cases)
    text = f'[dataset]\nname = "finskillbench/handout"\ndescription = "{CANARY}"\n{tasks}'
    (folder / "dataset.toml").write_text(text, encoding="utf-8")
    skills = {case["expected_skill"] for case in cases}
    expectation = {"expected_output": _EXPECTED, "assertions": [_EXPECTED]}
    data = {
        "skill_name": skills.pop() if len(skills) == 1 else "finskillbench",
        "evals": [{**case, **expectation} for case in cases],
    }
    (folder / "evals.json").write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")


RECORD, ANSWER = "handout.json", "answer.json"
"""Record of an export at its top; answer of an agent in the folder of an episode."""
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
class ExportRecord:
    """Record of an export: `edition` and `mounts` (by domain) are digests, `tasks` maps folders to task ids."""

    format: int = FORMAT
    layout: Layout = Layout.FOLDERS
    edition: str
    condition: str
    mounts: Mapping[str, str]
    tasks: dict[str, str] = field(default_factory=dict[str, str])


def export_tasks(
    edition: Edition,
    out: Path,
    condition: str = Condition.NO_SKILL.value,
    *,
    chosen: EpisodeSelection = EpisodeSelection(),  # noqa: B008 - immutable
    skills: Mapping[str, SkillFolder | Path | str] = MappingProxyType({}),
    layout: Layout = Layout.FOLDERS,
    image: str | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> ExportRecord:
    """Write a folder for each episode: `prompt.md`, `schema.json`, `data/`, `skills/`, and a canary.

    A Harbor task holds the same at Harbor's paths, with the prompt in `instruction.md`.

    Parameters
    ----------
    edition : with or without its truth, which is not exported.
    out : a new folder.
    condition : one that offers documents or scripts, or nothing.
    chosen : subtasks, limit and sample; without subtasks all but interactive ones. Other fields are not read.
    skills : skill folders by NAME, for the condition `skill:NAME`.
    layout : layout of a folder.
    image : base image of Harbor tasks; with scripts of skills one that has finskillbench.
    progress : called with the number of written episodes and their total.

    Raises
    ------
    InputError : a condition, subtask, number or image does not fit, no episode is left, or `out` is not empty or not
        writable. Nothing is left half-written.
    EditionError : the panels cannot be read.
    """
    mounted, image = check_task_export(condition, skills, layout, image)
    episodes = choose_episodes(edition.episodes(_foldable(edition, chosen.subtasks)), chosen.limit, chosen.sample)
    tasks = _folders(episodes)
    offered = {domain: mounted.for_domain(domain) for domain in sorted({episode.skill for episode in episodes})}
    mounts = {domain: each.digest for domain, each in offered.items()}
    record = ExportRecord(layout=layout, edition=edition.digest, condition=condition, mounts=mounts, tasks=tasks)
    with new_folder(out) as folder:
        shared = folder / _SKILLS
        for name, package in mounted.packages.items():
            if any(name in each.packages for each in offered.values()):
                _copy(package, mounted, shared / name)
        cases: list[dict[str, str]] = []
        for done, (name, episode) in enumerate(zip(record.tasks, episodes, strict=True), 1):
            instruction = _write(folder / name, edition, episode, offered[episode.skill], shared, image)
            cases.append({"id": name, "prompt": instruction, "expected_skill": _skill_of(episode)})
            progress(done, len(episodes))
        if layout is Layout.HARBOR:
            write_dataset(folder, cases)
        shutil.rmtree(shared, ignore_errors=True)
        (folder / RECORD).write_bytes(orjson.dumps(record, option=orjson.OPT_INDENT_2))
    return record


def _foldable(edition: Edition, subtasks: Sequence[str] | None) -> tuple[str, ...]:
    """Return the named subtasks, or all that are not interactive; refuse named interactive ones."""
    chosen = [subtask_named(name).name for name in subtasks] if subtasks is not None else list(edition.sub_tasks)
    staged = {each.name for each in registered() if each.open_interactive_state is not None}
    if subtasks is not None and (played := [name for name in chosen if name in staged]):
        raise InputError(
            f"{played[0]} is interactive and cannot be exported as a folder; use finskillbench run, drive or serve"
        )
    return tuple(name for name in chosen if name not in staged)


def _folders(episodes: Sequence[Episode]) -> dict[str, str]:
    tasks = {file_name(episode.task_id): episode.task_id for episode in episodes}
    # Compared without case, for file systems that ignore it.
    if len({name.lower() for name in tasks} | {_SKILLS}) <= len(episodes):
        raise InputError("two task ids of this export would share a folder; rename one of them")
    return tasks


def check_task_export(
    condition: str, skills: Mapping[str, SkillFolder | Path | str], layout: Layout, image: str | None
) -> tuple[Mount, str | None]:
    """Check condition and image of an export before the edition is read; return mount and image.

    Raises
    ------
    InputError : as for `export_tasks`.
    """
    mounted = mount_all([condition], read_user_skills(skills, run_locally=False))[condition]
    if mounted.arm.own or mounted.arm.inline or mounted.arm.indexes_scripts or mounted.arm.code:
        raise InputError(
            f"condition {condition!r} needs tools of our loop, which a folder does not have; use no_skill, curated, "
            "docs_only, placebo or your own skills"
        )
    if layout is Layout.HARBOR:
        run = mounted.arm.scripts and any(package.scripts for package in mounted.packages.values())
        return mounted, check_image(image, scripts=run)
    if image is not None:
        raise InputError("--image is for Harbor tasks; add --format harbor")
    return mounted, None


def _write(folder: Path, edition: Edition, episode: Episode, mounted: Mount, skills: Path, image: str | None) -> str:
    """Write one folder, with an `image` as a Harbor task; return the instruction."""
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
    for each in mounted.packages:  # hard links: the content takes its space once
        shutil.copytree(skills / each, place / _SKILLS / each, copy_function=os.link)
    where = "This folder" if image is None else f"The working directory `{PLACE}`"
    resources = (_WITH_SCRIPTS if mounted.arm.scripts else _WITH_DOCUMENTS) if mounted.packages else ""
    instruction = _INSTRUCTIONS.format(place=where, skills=resources) + task_prompt(episode, answer)
    if image is None:
        (place / "prompt.md").write_text(instruction + "\n", encoding="utf-8")
    else:
        metadata = {
            "task_id": episode.task_id,
            "sub_task": episode.sub_task,
            "condition": mounted.arm.condition,
            "edition": edition.digest,
        }
        shown = _SKILLS if mounted.packages else None
        write_task(folder, instruction, metadata, image=image, answer=ANSWER, skills=shown)
    (folder / CANARY_FILE).write_text(CANARY_TEXT, encoding="utf-8")
    return instruction


def _skill_of(episode: Episode) -> str:
    return next(iter(package_names(episode.skill)), episode.skill)


def _readable(edition: Edition, episode: Episode) -> dict[str, Any]:
    """Return all fields of an input at full precision, facts as filed."""
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
