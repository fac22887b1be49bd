"""Library conditions: valid distractors that help with nothing, in a fixed order, and a program of chance."""

import asyncio
from hashlib import sha256
from itertools import islice
from math import ceil, sqrt
from pathlib import Path

import pytest

from finskillbench.domains import domains, subtasks
from finskillbench.errors import InputError, InternalError
from finskillbench.harness import proof
from finskillbench.harness.conditions import mount_all, package_names, parse_condition
from finskillbench.harness.model import Message
from finskillbench.harness.programs.random_loader import LOADS, RandomLoader
from finskillbench.harness.proof import prove_arms
from finskillbench.harness.skills import library
from finskillbench.harness.skills.library import MAX_LISTED, distractors, is_generated
from finskillbench.harness.skills.lint import lint
from finskillbench.harness.skills.loader import curated, load_package
from finskillbench.harness.skills.recipes import find_recipe
from finskillbench.harness.skills.runner import MountedScripts
from finskillbench.harness.tools.contracts import tool_specs

PAPER = "risk_management"
FIRST_FIFTY = "78baa05e"


def write(
    folder: Path, name: str, *, named: str = "", description: str = "Sorts stamps. Use when stamps lie about."
) -> None:
    (folder / name).mkdir(parents=True)
    text = f"---\nname: {named or name}\ndescription: {description}\n---\n\nSort them by year.\n"
    (folder / name / "SKILL.md").write_text(text)


@pytest.fixture
def public(tmp_path: Path) -> Path:
    """Six usable packages at several depths, and five that are not."""
    for number in range(6):
        write(tmp_path / "deep" / ("er" * (number % 3)) / f"a{number}", f"stamps-{number}")
    write(tmp_path, "folder", named="other-name")
    write(tmp_path, "risk-management")
    write(tmp_path, "lines", description="|\n  Sorts stamps.\n  Use when stamps lie about.")
    write(tmp_path, "helps", description="Does stress_testing. Use when needed.")
    write(tmp_path, "empty", description="''")
    return tmp_path


def test_a_smaller_library_is_the_beginning_of_a_larger_one_and_the_same_everywhere() -> None:
    large = distractors(MAX_LISTED, None, ())
    assert len(large) == MAX_LISTED
    small = distractors(50, None, ())
    assert list(small.items()) == list(islice(large.items(), 50))
    assert sha256("".join(package.digest for package in small.values()).encode()).hexdigest().startswith(FIRST_FIFTY)


def test_generated_packages_are_valid_and_help_with_no_subtask() -> None:
    made = distractors(MAX_LISTED, None, ())
    for package in islice(made.values(), 0, None, 40):
        assert lint(package.root) == []
        assert load_package(package.root) == package
    assert 0.3 < sum(bool(package.scripts) for package in made.values()) / len(made) < 0.7
    for package in made.values():
        text = f"{package.name} {package.description} {package.body}"
        assert not any("_" in subtask.name and subtask.name in text for subtask in subtasks())
        assert not any(find_recipe(package.body, subtask.name) for subtask in subtasks())


def test_generated_scripts_run() -> None:
    calls = {
        "group": ({"rows": [{"a": 1}, {"a": 1}, {}], "column": "a"}, {"counts": {"1": 2, "missing": 1}}),
        "differences": (
            {"old": {"a": 1, "b": 2}, "new": {"b": 3, "c": 4}},
            {"added": ["c"], "removed": ["a"], "changed": ["b"]},
        ),
        "dates": ({"deadline": "2025-01-10", "days": 7, "count": 2}, {"dates": ["2025-01-10", "2025-01-03"]}),
        "normalise": ({"names": ["A b", "a-B!", "c"]}, {"names": ["a-b", "a-b", "c"], "duplicates": ["a-b"]}),
        "rank": ({"marks": {"a": 1, "b": 2}}, {"order": ["b", "a"]}),
    }
    scripts = {path: each.root / path for each in distractors(100, None, ()).values() for path in each.scripts}
    assert {Path(path).stem for path in scripts} == set(calls)
    for path, file in scripts.items():
        names: dict = {}
        exec(file.read_text(), names)
        payload, expected = calls[Path(path).stem]
        assert names["main"](payload) == expected


def test_a_distractors_script_runs_confined_once_it_is_called() -> None:
    mounted = mount_all(["library:12"])["library:12"].for_domain(PAPER)
    package = next(each for each in mounted.packages.values() if "scripts/rank.py" in each.scripts)
    with MountedScripts([mounted]) as scripts:
        assert len(scripts._running) == 1
        ran = [
            asyncio.run(scripts.run(package.root / "scripts/rank.py", data)) for data in (b'{"marks":{"b":1}}', b"{}")
        ]
        assert len(scripts._running) == 2
    assert ran[0].output == {"order": ["b"]}
    assert "KeyError: 'marks'" in str(ran[1].error)


def test_a_third_is_public_whatever_the_size(public: Path) -> None:
    found = distractors(16, public, curated())
    names = [name for name, package in found.items() if not is_generated(package)]
    assert sorted(names) == [f"stamps-{number}" for number in range(6)] != names  # not the first folders by name
    for count in range(1, 17):
        part = distractors(count, public, curated())
        assert list(part) == list(found)[:count]
        assert sum(not is_generated(package) for package in part.values()) == ceil(count / 3)


def test_a_folder_that_is_missing_or_too_small_is_refused_with_the_number_needed(public: Path) -> None:
    with pytest.raises(InputError, match=r"has 6 usable packages .*, but 7 are needed"):
        distractors(19, public, curated())
    with pytest.raises(InputError, match="no such folder"):
        distractors(3, public / "nowhere", ())


@pytest.mark.parametrize("domain", [domain.name for domain in domains()])
def test_a_library_lists_its_number_with_all_packages_of_the_suite(domain: str, public: Path) -> None:
    mounted = mount_all(["library:20"], library=public)["library:20"].for_domain(domain)
    assert len(mounted.packages) == 20
    suite = next(each.suite for each in domains() if each.name == domain)
    own = {name for each in domains() if each.suite == suite for name in package_names(each.name)}
    assert set(mounted.packages) & set(curated()) == own
    listing = next(tool.description for tool in tool_specs(mounted, domain) if tool.name == "load_skill")
    assert [line[2:].partition(":")[0] for line in listing.splitlines()[1:]] == sorted(mounted.packages)


def test_a_library_is_proved_and_recorded(public: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = mount_all(["no_skill", "library:12", "library:12+hinted"], library=public)
    record = prove_arms(mounts, [PAPER])["library:12"]
    assert record["library"][PAPER] == {"public": 3, "generated": 6, "listing_tokens": pytest.approx(1000, rel=0.3)}
    assert record["tokens"]["stamps-0"] == ceil(len("Sort them by year.") / 3)
    honest = proof.arm_prompt
    for package in mounts["library:12"].packages.values():
        line = max(package.body.splitlines(), key=len)
        if len(line) >= proof.SHORTEST_LINE:
            monkeypatch.setattr(proof, "arm_prompt", lambda *args, line=line: honest(*args) + line)
            with pytest.raises(InternalError, match="an agent could see in risk_management the words"):
                prove_arms({"library:12+hinted": mounts["library:12+hinted"]}, [PAPER])


@pytest.mark.parametrize("name", ["library:3", "library:", "library:801", "library:1e2", "library:020", "library:20+"])
def test_an_unfit_size_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=r"a library has 4 to 800 packages|can end in"):
        parse_condition(name)


def test_a_suite_that_fills_the_library_is_refused() -> None:
    largest = max(domains(), key=lambda each: len(each.skills))
    mounted = mount_all(["library:4"])["library:4"]
    if len(largest.skills) >= 4:
        with pytest.raises(InputError, match="leave no place for others"):
            mounted.for_domain(largest.name)


@pytest.mark.parametrize("listed", [5, 20, 100])
def test_a_random_loader_has_the_precision_of_chance(listed: int) -> None:
    mounted = mount_all([f"library:{listed}"])[f"library:{listed}"].for_domain(PAPER)
    tools, relevant = tool_specs(mounted, PAPER), set(package_names(PAPER))
    hits, loads, prompts = 0, min(LOADS, listed), 1500
    for number in range(prompts):
        turn = RandomLoader().respond([Message("user", f"Subtask: stress_testing\nCase {number}.")], tools, "auto")
        names = {each.arguments.split('"')[3] for each in turn.tool_calls}
        assert len(names) == loads
        assert names <= set(mounted.packages)
        hits += len(names & relevant)
    chance = len(relevant) / listed
    assert abs(hits / prompts / loads - chance) < 4 * sqrt(chance * (1 - chance) / prompts / loads)


def test_tables_have_no_name_twice() -> None:
    names = [library._name(*each) for each in library._combinations()]
    assert len(names) == len(set(names)) >= MAX_LISTED
