"""Skills that an agent wrote: kept to their rules wherever they come from, and never read through a link."""

import asyncio
import os
from pathlib import Path

import orjson
import pytest

from finskillbench.errors import InputError, SkillError
from finskillbench.harness.conditions import Condition
from finskillbench.harness.model import ToolCall
from finskillbench.harness.skills.loader import WrittenSkills
from finskillbench.harness.skills.user_skills import MAX_SAVED_SKILLS, MAX_SKILL_CHARS, Feedback, Memory, skill_problem
from finskillbench.harness.tools.contracts import tool_specs
from finskillbench.harness.tools.toolbox import Toolbox, ToolServices

BAD_NAMES = ("", "A", "a--b", "-a", "a-", "a/b", "../a", "/etc/x", "a.md", "a\n", "ä", "٣", "a" * 65, ".", "a\x00")


@pytest.fixture
def own(tmp_path):
    skills = WrittenSkills(tmp_path, {})
    skills.save("mine", "words")
    yield skills
    skills.close()


@pytest.fixture
def folder(own: WrittenSkills, tmp_path: Path) -> Path:
    (space,) = tmp_path.glob("skills-*")
    return space / "mine"


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    (tmp_path / "secret").mkdir()
    file = tmp_path / "secret" / "SKILL.md"
    file.write_text("the truth")
    return file


def test_what_was_saved_is_read_back_replaced_and_removed(own: WrittenSkills, folder: Path) -> None:
    own.save("a", "é\r\n")
    own.save("mine", "w")
    assert (own.names, own.texts) == (["a", "mine"], {"a": "é\r\n", "mine": "w"})
    assert folder.stat().st_mode & 0o077 == 0
    own.close()
    assert not folder.parent.exists()
    own.close()


def test_a_link_in_a_skills_place_is_neither_read_nor_written_through(own: WrittenSkills, folder: Path, secret) -> None:
    (folder / "SKILL.md").unlink()
    (folder / "SKILL.md").symlink_to(secret)
    for attempt in (lambda: own.read("mine"), lambda: own.save("mine", "x"), lambda: own.texts):
        with pytest.raises(SkillError, match="skill 'mine' is not the file it should be"):
            attempt()
    assert secret.read_text() == "the truth"


def test_a_link_in_its_folders_place_is_not_followed(own: WrittenSkills, folder: Path, secret: Path) -> None:
    (folder / "SKILL.md").unlink()
    folder.rmdir()
    folder.symlink_to(secret.parent)
    for attempt in (lambda: own.read("mine"), lambda: own.save("mine", "x")):
        with pytest.raises(SkillError, match="skill 'mine' is not the file it should be"):
            attempt()
    own.close()
    assert secret.read_text() == "the truth"


def test_a_pipe_holds_nothing_up(own: WrittenSkills, folder: Path) -> None:
    (folder / "SKILL.md").unlink()
    os.mkfifo(folder / "SKILL.md")
    for attempt in (lambda: own.read("mine"), lambda: own.save("mine", "x")):
        with pytest.raises(SkillError, match="skill 'mine' is not the file it should be"):
            attempt()


def test_what_others_put_into_the_space_is_no_skill(episode, mounts, tmp_path: Path, secret: Path) -> None:
    mounted = mounts[Condition.SELF_GENERATED]
    box = Toolbox(episode, dict, mounted, ToolServices(scratch_root=tmp_path))

    def use(name: str, **arguments: str) -> dict:
        call = ToolCall("id", name, orjson.dumps(arguments).decode())
        return orjson.loads(asyncio.run(box.call(call, tool_specs(mounted, episode.skill)))[0])

    use("save_skill", skill_name="mine", content="x")
    (space,) = tmp_path.glob("skills-*")
    (space / "planted").symlink_to(secret.parent)
    assert use("load_skill", skill_name="planted") == {"error": "skill 'planted' not found", "available": ["mine"]}
    assert "error" in use("save_skill", skill_name="planted", content="y")
    assert box.saved_skills == {"mine": "x"}
    assert secret.read_text() == "the truth"
    box.close()


def test_an_error_of_the_system_names_no_path(episode, mounts, tmp_path: Path) -> None:
    mounted = mounts[Condition.SELF_GENERATED]
    box = Toolbox(episode, dict, mounted, ToolServices(scratch_root=tmp_path / "gone"))
    call = ToolCall("id", "save_skill", '{"skill_name": "mine", "content": "x"}')
    text, outcome = asyncio.run(box.call(call, tool_specs(mounted, episode.skill)))
    assert (orjson.loads(text), outcome) == ({"error": "FileNotFoundError: No such file or directory"}, "tool_failed")


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_remembered_name_that_could_not_have_been_saved_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"remembered skill .*: skill_name takes lower-case letters"):
        Memory({name: "x"})


@pytest.mark.parametrize(
    ("skills", "words"),
    [
        ({"mine": "x" * (MAX_SKILL_CHARS + 1)}, "content has 20001 characters, the limit is 20000"),
        ({"mine": " \n"}, "content is empty"),
        ({"mine": "\ud800"}, "lone surrogate"),
        ({f"s{i}": "x" for i in range(MAX_SAVED_SKILLS + 1)}, "remembered skills: 4, at most 3 can be"),
    ],
)
def test_remembered_skills_beyond_what_can_be_saved_are_refused(skills: dict[str, str], words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        Memory(skills)
    assert "restore the run folder" in str(caught.value)


def test_what_can_be_saved_can_be_remembered() -> None:
    skills = {"a" * 64: "x" * MAX_SKILL_CHARS, "b-1": "é", "3": "x"}
    assert not any(skill_problem(name, text) for name, text in skills.items())
    assert Memory(skills).skills == skills


@pytest.mark.parametrize("score", [-0.1, 1.1, float("nan"), float("inf")])
def test_a_verdict_keeps_to_its_range(score: float) -> None:
    with pytest.raises(InputError, match=r"verdict on t: score .* is not in \[0, 1\]"):
        Feedback("t", "scored", score)


def test_a_verdict_has_a_known_status() -> None:
    with pytest.raises(InputError, match="verdict on t: status 'expected AAPL' is unknown"):
        Feedback("t", "expected AAPL", 0.5)
