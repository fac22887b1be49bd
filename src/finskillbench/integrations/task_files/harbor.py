"""Tasks of Harbor (schema 1.4), whose reward is a score.

Harbor builds the agent's image from `environment/` and that of a separate verifier from `tests/`. It uploads
`solution/` for its oracle alone, and copies the artifact `answer.json` to the verifier. So only `tests/` and
`solution/` hold truth.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import entry_points, version
from pathlib import Path

import orjson

from finskillbench.domains import subtask_named
from finskillbench.edition import Edition
from finskillbench.edition.store import CANARY, CANARY_FILE, digest_file, digest_files
from finskillbench.episode import Episode
from finskillbench.errors import InputError
from finskillbench.extensions import DOMAINS
from finskillbench.harness.conditions import package_names
from finskillbench.integrations.task_files import ANSWER, IMAGE
from finskillbench.integrations.task_files.verify import write_case

NUMERIC = ("numpy==2.4.6", "scipy==1.17.1")
"""Packages of both images, as in `requirements/run.txt`."""
PLACE = "/workspace"
"""Working directory of the agent."""
MATERIAL = Path("environment") / "workspace"
"""Content of the working directory, below the folder of a task."""
SECONDS = 1800.0
"""Same as the default of `Agent.seconds`."""

_NAME = "finskillbench"
_AUTHORS = '[{ name = "The FinSkillBench authors" }]'
_IMAGE_NAME = re.compile(r"[a-z0-9][\w./:@-]{0,254}", re.ASCII)
_TASK = """\
schema_version = "1.4"
artifacts = [{{ source = "{place}/{answer}", destination = "{answer}" }}]

[task]
{task}
authors = {authors}

[metadata]
{metadata}

[agent]
timeout_sec = {seconds}
network_mode = "no-network"

[verifier]
timeout_sec = 300.0
environment_mode = "separate"

[verifier.environment]
network_mode = "no-network"

[environment]
build_timeout_sec = 1800.0
{skills}"""
_DOCKERFILE = """\
FROM {image}
{wheels}RUN pip install --no-cache-dir {packages}
WORKDIR {place}
COPY {content} {place}/
"""
_TEST = f"""\
#!/bin/sh
exec python -I -m {_NAME}.integrations.task_files.verify /tests {PLACE}/{ANSWER} /logs/verifier/reward.json
"""
_SOLVE = f"""\
#!/bin/sh
cp /solution/{ANSWER} {PLACE}/{ANSWER}
"""
_EXPECTED = "answer.json in the working directory holds one JSON object that follows schema.json."
"""Expectation for external evaluators of skills."""


@dataclass(frozen=True, slots=True)
class HarborImages:
    """Images of Harbor tasks; raises `InputError` for an invalid name or wheel.

    base : Python image to which those of agent and verifier add packages.
    wheels : of finskillbench and the packages of the tasks' subtasks; without them, versions are installed by name.
    """

    base: str = IMAGE
    wheels: tuple[Path, ...] = ()

    def __post_init__(self) -> None:
        if not _IMAGE_NAME.fullmatch(self.base):
            raise InputError(f"--image {self.base!r} is not an image name")
        for wheel in self.wheels:
            if wheel.suffix != ".whl" or not wheel.is_file():
                raise InputError(f"--wheel {wheel} is not a wheel; build one with make package")

    def staged(self, folder: Path) -> HarborImages:
        """Return the same with copies of the wheels in a new folder, to which tasks link."""
        folder.mkdir(parents=True)
        return replace(self, wheels=tuple(Path(shutil.copy(wheel, folder)) for wheel in self.wheels))

    def check(self, sub_tasks: Iterable[str]) -> None:
        """Raise `InputError` if a wheel of these subtasks is missing."""
        given = {wheel.name.partition("-")[0].replace("_", "-").lower() for wheel in self.wheels}
        if given and (missing := sorted(_distributions(sub_tasks) - given)):
            raise InputError(f"--wheel: there is none of {missing[0]}, which the tasks need; add it")

    def write(self, context: Path, sub_task: str, *, content: str, place: str, ours: bool) -> None:
        """Write the Dockerfile of a build context, with `ours` for an image that has finskillbench."""
        packages = [*NUMERIC]
        if ours and self.wheels:
            packages.append("/wheels/*.whl")
            for wheel in self.wheels:
                os.link(wheel, context / wheel.name)
        elif ours:
            packages += [f"{name}=={version(name)}" for name in sorted(_distributions([sub_task]))]
        text = _DOCKERFILE.format(
            image=self.base,
            wheels="COPY *.whl /wheels/\n" if ours and self.wheels else "",
            packages=" ".join(packages),
            place=place,
            content=content,
        )
        (context / "Dockerfile").write_text(text, encoding="utf-8")


def _distributions(sub_tasks: Iterable[str]) -> set[str]:
    """Return the names of finskillbench and of the distributions that register these subtasks."""
    modules = {subtask_named(name).answer.__module__.partition(".")[0] for name in sub_tasks}
    entries = [entry for entry in entry_points(group=DOMAINS) if entry.module.partition(".")[0] in modules]
    return {_NAME, *(entry.dist.name for entry in entries if entry.dist is not None)}


def write_task(
    folder: Path,
    edition: Edition,
    episode: Episode,
    instruction: str,
    images: HarborImages,
    *,
    condition: str,
    skills: str | None,
    scripts: bool,
) -> None:
    """Write the Harbor files of a task; `MATERIAL` is there already.

    Parameters
    ----------
    instruction : text for the agent.
    skills : name of the skills folder there, which Harbor shows to agents that support skills; None without skills.
    scripts : whether skills have scripts, which need finskillbench.

    Raises
    ------
    EditionError : there is no truth of the episode.
    InputError : its label carries no proof, so that `certified` does not apply.
    """
    truth = edition.truth(episode.task_id)
    if not truth.proof:
        raise InputError(f"{episode.task_id}: the label carries no proof, so it has no reward; build an edition")
    task = {
        "name": f"{_NAME}/{folder.name}",
        "version": version(_NAME),
        "description": f"{episode.sub_task.replace('_', ' ')} as of {episode.as_of_date}, {episode.difficulty}",
        "keywords": ["finance", episode.skill, episode.sub_task],
    }
    metadata = {
        "task_id": episode.task_id,
        "sub_task": episode.sub_task,
        "condition": condition,
        "edition": edition.digest,
        "license": "Apache-2.0",
        "canary": CANARY,
    }
    text = _TASK.format(
        place=PLACE,
        answer=ANSWER,
        task=_toml(task),
        authors=_AUTHORS,
        metadata=_toml(metadata),
        seconds=SECONDS,
        skills="" if skills is None else f'skills_dir = "{PLACE}/{skills}"\n',
    )
    (folder / "task.toml").write_text(text, encoding="utf-8")
    # Harbor removes such a first line before an agent sees the rest.
    (folder / "instruction.md").write_text(f"<!-- {CANARY} -->\n{instruction}\n", encoding="utf-8")
    tests, solution = folder / "tests", folder / "solution"
    write_case(tests, edition, episode)
    solution.mkdir()
    (solution / ANSWER).write_bytes(orjson.dumps(truth.expected_output))
    for script, lines in ((tests / "test.sh", _TEST), (solution / "solve.sh", _SOLVE)):
        script.write_text(lines, encoding="utf-8")
        script.chmod(0o755)
    images.write(folder / "environment", episode.sub_task, content="workspace/", place=PLACE, ours=scripts)
    images.write(tests, episode.sub_task, content=".", place="/tests", ours=True)


def _toml(values: Mapping[str, str | list[str]]) -> str:
    # Every JSON string of ASCII is a TOML string.
    return "\n".join(f"{name} = {json.dumps(value)}" for name, value in values.items())


def write_dataset(folder: Path, edition: Edition, prompts: Mapping[str, str], episodes: Sequence[Episode]) -> None:
    """Write `dataset.toml`, its `metric.py`, an entry of a registry, and `evals.json` for evaluators of skills.

    `prompts` is by task folder. Paths in `registry.json` are relative to the folder, at the root of a repository.
    """
    metric = Path(shutil.copy(Path(__file__).with_name("metric.py"), folder))
    dataset = {"name": f"{_NAME}/edition-{edition.digest[:12]}", "version": version(_NAME), "description": CANARY}
    parts = [f"[dataset]\n{_toml(dataset)}\nauthors = {_AUTHORS}\n"]
    parts += [
        f"[[tasks]]\n{_toml({'name': f'{_NAME}/{name}', 'digest': _content_digest(folder / name)})}\n"
        for name in prompts
    ]
    parts.append(f"[[files]]\n{_toml({'path': metric.name, 'digest': f'sha256:{digest_file(metric)}'})}\n")
    (folder / "dataset.toml").write_text("\n".join(parts), encoding="utf-8")
    entry = {
        **dataset,
        "name": _NAME,
        "version": f"{version(_NAME)}+{edition.digest[:12]}",
        "tasks": [{"name": name, "path": name} for name in prompts],
    }
    (folder / "registry.json").write_text(json.dumps([entry], indent=2) + "\n", encoding="utf-8")
    skills = [next(iter(package_names(episode.skill)), episode.skill) for episode in episodes]
    cases = [
        {"id": name, "prompt": prompt, "expected_skill": skill, "expected_output": _EXPECTED, "assertions": [_EXPECTED]}
        for (name, prompt), skill in zip(prompts.items(), skills, strict=True)
    ]
    data = {"skill_name": skills[0] if len(set(skills)) == 1 else _NAME, "evals": cases}
    (folder / "evals.json").write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")


def _content_digest(task: Path) -> str:
    """Return Harbor's digest of a task, which covers all files that it publishes."""
    files = {name: digest for name, digest in digest_files(task).items() if name != CANARY_FILE}
    listing = "".join(f"{name}\0{digest}\n" for name, digest in sorted(files.items()))
    return f"sha256:{hashlib.sha256(listing.encode()).hexdigest()}"
