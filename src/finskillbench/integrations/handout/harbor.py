"""An episode as a task of Harbor: instruction, image, and a verifier that says no more than whether there is an answer.

Harbor copies `environment/` into the image, shows the agent `instruction.md`, runs `tests/test.sh` when the agent is
done, and keeps the files that `artifacts` names. Where that script runs, an agent may have been root: its processes may
still be there, and `python` may be its own. So no truth goes there. The reward of a trial is `answered`, which is no
score; `finskillbench score --jobs` judges the answers that Harbor kept, on the side of whoever holds the truth. For the
same reason there is no `solution/`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from finskillbench.edition.store import CANARY
from finskillbench.errors import InputError

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
