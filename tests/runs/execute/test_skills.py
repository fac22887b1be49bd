"""Skills that somebody brings, in a run: arms beside the others, and a folder that has changed is another run."""

from pathlib import Path

import orjson
import pytest

from finskillbench.errors import InputError
from finskillbench.harness.conditions import mount_all
from finskillbench.harness.model import ToolCall, Turn
from finskillbench.harness.skills.template import package_files
from finskillbench.harness.skills.user_skills import SkillFolder, read_user_skills
from finskillbench.runs.execute.run import run
from finskillbench.runs.plan.streams import parse_shard
from finskillbench.runs.postprocess.merge import merge_runs
from finskillbench.runs.postprocess.show import find_trajectory


class Obedient:
    """Loads every skill in the index, runs the template's script where it is there, and submits."""

    name = "test/obedient"

    async def generate(self, messages, tools, tool_choice):
        index = next((tool.description for tool in tools if tool.name == "load_skill"), "")
        steps = [ToolCall("0", "submit_answer", '{"answer": "{}"}')]
        if "- my-notes:" in index and messages[-1].role != "tool":
            values = {"script_path": "scripts/total.py", "input_data": {"values": {"a": 1, "b": 2}}}
            steps = [ToolCall("1", "load_skill", '{"skill_name": "my-notes"}')]
            steps.append(ToolCall("2", "run_skill_script", orjson.dumps(values).decode()))
        return Turn(tool_calls=tuple(steps))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for path, text in package_files("my-notes").items():
        (tmp_path / "my-notes" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "my-notes" / path).write_text(text)
    return tmp_path / "my-notes"


@pytest.mark.slow
def test_skills_of_somebodys_own_are_an_arm_of_a_run(edition, folder: Path, tmp_path: Path) -> None:
    skills = {"mine": folder, "both": SkillFolder(folder, keep_curated=True)}
    out = tmp_path / "run"
    rows = run(edition, [Obedient()], ["no_skill"], skills=skills, limit=1, out=out).rows
    arms = list(dict.fromkeys(rows["condition"]))
    assert arms == ["no_skill", "skill:both", "skill:mine"]
    given = read_user_skills(skills)
    mounts = mount_all(arms, given)
    for row in rows.iter_rows(named=True):
        brought = row["condition"] != "no_skill"
        assert row["mount"] == mounts[row["condition"]].for_domain(row["domain"]).digest
        assert row["skills_loaded"] == ["my-notes"] * brought
        assert row["scripts_run"] == ["my-notes/scripts/total.py"] * brought
        assert row["incidents"] == []
    record = orjson.loads((out / "run.json").read_bytes())
    assert [each["conditions"] for each in record["asked"]] == [arms]
    assert {*record["interpreters"]} == {"skill:mine", "skill:both"}
    task_id = rows["task_id"][0]
    assert find_trajectory(out, task_id, condition="skill:mine") != find_trajectory(
        out, task_id, condition="skill:both"
    )


def test_a_resumed_run_refuses_another_folder_under_the_same_name(edition, folder: Path, tmp_path: Path) -> None:
    arguments = {"conditions": ["no_skill"], "limit": 1, "out": tmp_path / "run"}
    run(edition, [Obedient()], skills={"mine": folder}, **arguments)
    again = run(edition, [Obedient()], skills={"mine": folder}, **arguments)
    assert (again.ran, again.kept) == (0, 4)
    (folder / "references" / "conventions.md").write_text("Other conventions.")
    with pytest.raises(InputError, match=r"was run with another mounts.skill:mine.digest\..*; choose another --out"):
        run(edition, [Obedient()], skills={"mine": folder}, **arguments)
    other = run(edition, [Obedient()], skills={"other": folder}, **arguments)
    assert (other.ran, other.kept, other.other_rows) == (2, 2, 2)
    with pytest.raises(InputError, match=r"'skill:mine' has no folder of skills; name it: --skills mine=DIR"):
        run(edition, [Obedient()], ["no_skill", "skill:mine"], limit=1, out=tmp_path / "run")


def test_shards_of_such_a_run_are_merged(edition, folder: Path, tmp_path: Path) -> None:
    parts = [tmp_path / f"part{number}" for number in (1, 2)]
    for number, part in enumerate(parts, 1):
        shard = parse_shard(f"{number}/2")
        run(edition, [Obedient()], ["no_skill"], skills={"mine": folder}, limit=1, shard=shard, out=part)
    merged = merge_runs(tmp_path / "whole", parts)
    assert (merged.rows.height, merged.missing) == (4, ())
    assert {*merged.rows["condition"]} == {"no_skill", "skill:mine"}
