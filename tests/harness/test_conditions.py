"""What each arm mounts, shows and serves, and that the arm without skills sees none."""

import dataclasses
import re
from dataclasses import replace
from pathlib import Path

import msgspec
import orjson
import pytest

from finskillbench.domains import domain as registered
from finskillbench.errors import InputError, InternalError
from finskillbench.harness.allowance import DEFAULT_ALLOWANCE, Remaining
from finskillbench.harness.conditions import (
    ARMS,
    ArmName,
    Condition,
    Mount,
    expected_tools,
    mount,
    parse_condition,
    prove_mount,
)
from finskillbench.harness.model import ToolCall, Turn
from finskillbench.harness.programs.program import result_of
from finskillbench.harness.prompts.compose import LAST_TURN, arm_prompt, remaining_text, system_prompt
from finskillbench.harness.skills import loader
from finskillbench.harness.skills.user_skills import Feedback, Memory, UserSkills
from finskillbench.harness.tools.contracts import tool_specs
from finskillbench.sandbox.process import THIS_PYTHON

ALWAYS = ("submit_answer", "get_task_data")
DOCUMENTS = ("load_skill", "load_references")
DOMAIN = "portfolio_construction"
NONE = '{"error":"No skills available."}'
EXTRA = {
    Condition.NO_SKILL: (),
    Condition.CURATED: (*DOCUMENTS, "run_skill_script"),
    Condition.SELF_GENERATED: ("load_skill", "save_skill"),
    Condition.DOCS_ONLY: DOCUMENTS,
    Condition.SCRIPTS_ONLY: ("run_skill_script",),
    Condition.INLINE: ("run_skill_script",),
    Condition.PLACEBO: DOCUMENTS,
    Condition.SELF_GENERATED_PERSISTENT: ("load_skill", "save_skill"),
    Condition.CODE: ("run_python",),
    Condition.CODE_CURATED: (*DOCUMENTS, "run_skill_script", "run_python"),
}
"""Tools that each arm has beside those of all arms."""
LOAD = ToolCall("load", "load_skill", '{"skill_name": "portfolio-construction"}')
REFERENCES = ToolCall("refs", "load_references", '{"skill_name": "portfolio-construction"}')
RUN = ToolCall("run", "run_skill_script", '{"script_path": "scripts/optimize.py"}')
RUN_IN_PACKAGE = ToolCall("run2", "run_skill_script", '{"script_path": "portfolio-construction/scripts/optimize.py"}')
SAVE = ToolCall("save", "save_skill", '{"skill_name": "portfolio-construction", "content": "my own words"}')
SUBMIT = Turn(tool_calls=(ToolCall("s", "submit_answer", '{"answer": "{}"}'),))


@pytest.fixture
def attempt(scripted, play):
    """Results of calls made in one turn under an arm, by id, with the trace and all that the model was shown."""

    def go(condition: Condition, *calls: ToolCall, **more):
        model = scripted([Turn(tool_calls=calls), SUBMIT])
        trace = play(model, condition, **more)
        results = {record.id: result_of(trace.messages[record.message]) for record in trace.tool_calls}
        shown = orjson.dumps([[dataclasses.asdict(m) for m in model.seen[-1][0]], [repr(s) for s in model.specs[0]]])
        return results, trace, shown.decode()

    return go


@pytest.mark.parametrize("condition", list(Condition))
def test_tools_on_the_wire(mounts, condition: Condition) -> None:
    for domain, filings in ((DOMAIN, ()), ("fundamental_analysis", ("query_xbrl",))):
        names = tuple(spec.name for spec in tool_specs(mounts[condition], domain))
        assert names == (*ALWAYS, *filings, *EXTRA[condition])


def test_tools_of_two_arms_differ_only_in_the_indexes_and_in_what_both_do_not_have(mounts, tabled: str) -> None:
    tables = {c: {spec.name: spec for spec in tool_specs(mounts[c], tabled)} for c in Condition}
    for name in {name for table in tables.values() for name in table}:
        specs = [table[name] for table in tables.values() if name in table]
        assert len({orjson.dumps(dict(spec.parameters)) for spec in specs}) == 1
        if name not in ("load_skill", "run_skill_script", "read_table", "run_python"):
            assert len({spec.description for spec in specs}) == 1
    load = {c: table["load_skill"].description for c, table in tables.items() if "load_skill" in table}
    bare = "Load a skill: the text of its SKILL.md"
    documents = f"{bare}, with the names of its references and their lengths in characters"
    index = " Available skills:\n- portfolio-construction: Builds portfolios."
    assert load == {
        Condition.CURATED: f"{documents}, and the names of its scripts.{index}",
        Condition.CODE_CURATED: f"{documents}, and the names of its scripts.{index}",
        Condition.DOCS_ONLY: f"{documents}.{index}",
        Condition.PLACEBO: f"{documents}. Available skills:\n- bee-keeping: Keeps bees.",
        Condition.SELF_GENERATED: f"{bare}.",
        Condition.SELF_GENERATED_PERSISTENT: f"{bare}.",
    }
    run = {c: table["run_skill_script"].description for c, table in tables.items() if "run_skill_script" in table}
    assert run[Condition.CURATED] == run[Condition.CODE_CURATED] == run[Condition.INLINE]
    assert run[Condition.SCRIPTS_ONLY] == (
        f"{run[Condition.CURATED]} Available scripts:\n"
        "- portfolio-construction/scripts/optimize.py: Optimises a portfolio; give it returns and a covariance."
    )


@pytest.mark.parametrize("condition", list(Condition))
def test_tools_and_rules_speak_of_what_the_arm_has_and_of_nothing_else(mounts, tabled, condition: Condition) -> None:
    arm = ARMS[condition]
    for domain in ("portfolio_construction", "fundamental_analysis", tabled):
        tools = tool_specs(mounts[condition], domain)
        words = [system_prompt(arm), *(f"{tool.name} {tool.description} {dict(tool.parameters)}" for tool in tools)]
        words = "\n".join(words).lower().replace("portfolio-construction/scripts/optimize.py", "")
        assert ("skill" in words) == (arm.mounts_packages or arm.own)
        assert bool(re.search(r"\bscripts?\b", words)) == arm.scripts
        assert ("run_python" in words) == arm.code
        assert ("reference" in words) == arm.documents
        assert ("filing_facts" in words) == (arm.scripts and domain == "fundamental_analysis")


def test_the_no_skill_arm_sees_no_trace_of_a_skill(attempt, package) -> None:
    results, trace, shown = attempt(Condition.NO_SKILL, LOAD, REFERENCES, RUN, SAVE)
    for refused in ("load", "refs", "run", "save"):
        assert "there is no tool" in results[refused]
        assert orjson.loads(results[refused])["tools"] == list(ALWAYS)
    assert (trace.skills_loaded, trace.scripts_run, trace.saved_skills) == ((), (), {})
    for secret in (
        package.description,
        package.body,
        "methods.md",
        "optimize.py on",
        package.digest,
        str(package.root),
    ):
        assert secret not in shown


def test_what_is_mounted_for_others_changes_no_answer_to_the_no_skill_arm(attempt, mounts, package) -> None:
    """The same probes get the same bytes whether or not packages exist, and whether or not a name is one of them."""
    calls = (LOAD, REFERENCES, RUN, RUN_IN_PACKAGE, SAVE)
    unknown = [dataclasses.replace(c, arguments=c.arguments.replace(package.name, "nothing-like-it")) for c in calls]
    results = attempt(Condition.NO_SKILL, *calls)[0]
    assert {key: value for key, value in results.items() if key != "s"} == {
        key: value for key, value in attempt(Condition.NO_SKILL, *unknown)[0].items() if key != "s"
    }


def test_the_curated_arm_loads_documents_and_then_runs_scripts(attempt, package, runner) -> None:
    results, trace, _ = attempt(Condition.CURATED, RUN, LOAD, REFERENCES, RUN_IN_PACKAGE)
    assert "load one first" in results["run"]
    assert orjson.loads(results["load"]) == {
        "skill_name": package.name,
        "content": package.body,
        "references": {name: len(text) for name, text in package.references.items()},
        "scripts": list(package.scripts),
    }
    assert orjson.loads(results["refs"])["references"] == package.references
    assert trace.scripts_run == ("portfolio-construction/scripts/optimize.py",)
    assert len(runner.calls) == 1


def test_documents_alone_name_no_scripts_and_run_none(attempt, package, runner) -> None:
    results, trace, shown = attempt(Condition.DOCS_ONLY, LOAD, REFERENCES, RUN, RUN_IN_PACKAGE)
    assert orjson.loads(results["load"])["content"] == package.body
    assert "scripts" not in orjson.loads(results["load"])
    assert orjson.loads(results["refs"])["references"] == package.references
    for refused in ("run", "run2"):
        assert "there is no tool 'run_skill_script'" in results[refused]
        assert orjson.loads(results[refused])["tools"] == [*ALWAYS, *DOCUMENTS]
    assert (trace.scripts_run, runner.calls) == ((), [])
    assert "Optimises a portfolio" not in shown


def test_scripts_alone_show_their_own_notes_and_no_document(attempt, package, runner) -> None:
    results, trace, shown = attempt(Condition.SCRIPTS_ONLY, LOAD, REFERENCES, RUN, RUN_IN_PACKAGE)
    assert all("there is no tool" in results[refused] for refused in ("load", "refs"))
    assert trace.scripts_run == ("portfolio-construction/scripts/optimize.py",) * 2
    assert all(path.samefile(package.root / "scripts" / "optimize.py") for path, _ in runner.calls)
    assert "Optimises a portfolio" in shown
    for secret in (package.description, package.body, "methods.md", *package.references.values()):
        assert secret not in shown


def test_inline_documents_stand_behind_the_base_and_scripts_run_without_loading(attempt, package) -> None:
    results, trace, _ = attempt(Condition.INLINE, RUN, RUN_IN_PACKAGE, LOAD, base_prompt="BASE")
    assert trace.scripts_run == ("portfolio-construction/scripts/optimize.py",) * 2
    assert "there is no tool" in results["load"]
    prompt = trace.messages[1].content
    assert prompt.startswith("BASE\n\n# Skills\n")
    assert package.body in prompt
    assert all(text in prompt for text in package.references.values())


def test_an_inline_arm_runs_only_the_scripts_of_the_domains_own_skill(attempt, mounts, package) -> None:
    other = dataclasses.replace(package, name="risk-management", scripts=("scripts/other.py",))
    mounts[Condition.INLINE] = mount(Condition.INLINE, {each.name: each for each in (package, other)}, {})
    theirs = ToolCall("run", "run_skill_script", '{"script_path": "risk-management/scripts/other.py"}')
    results, trace, shown = attempt(Condition.INLINE, theirs)
    assert orjson.loads(results["run"])["scripts"] == {package.name: list(package.scripts)}
    assert trace.scripts_run == ()
    assert "other.py" not in shown.replace("risk-management/scripts/other.py", "")


def test_the_placebo_arm_shows_only_the_irrelevant(attempt, package) -> None:
    bees = ToolCall("bees", "load_skill", '{"skill_name": "bee-keeping"}')
    results, _, shown = attempt(Condition.PLACEBO, bees, LOAD, REFERENCES, RUN)
    assert orjson.loads(results["bees"])["content"].startswith("Feed the bees")
    for missing in ("load", "refs"):
        assert orjson.loads(results[missing])["available"] == ["bee-keeping"]
    assert "there is no tool 'run_skill_script'" in results["run"]
    for secret in (package.description, package.body, *package.references.values()):
        assert secret not in shown


@pytest.mark.parametrize("condition", [Condition.SELF_GENERATED, Condition.SELF_GENERATED_PERSISTENT])
def test_an_own_skill_of_a_curated_name_is_the_agents_own(attempt, package, runner, condition: Condition) -> None:
    results, trace, shown = attempt(condition, LOAD, SAVE, dataclasses.replace(LOAD, id="again"), REFERENCES, RUN)
    assert trace.incidents == ("unknown_tool",) * 2, "to load what is not yet saved is none"
    assert results["load"] == NONE
    assert orjson.loads(results["save"]) == {"status": "saved", "skills": [package.name]}
    assert orjson.loads(results["again"]) == {"skill_name": package.name, "content": "my own words"}
    assert all("there is no tool" in results[refused] for refused in ("refs", "run"))
    assert (trace.saved_skills, trace.scripts_run, runner.calls) == ({package.name: "my own words"}, (), [])
    assert package.body not in shown


def test_a_stream_starts_with_what_it_remembers_and_hands_on_what_it_rewrote(attempt) -> None:
    memory = Memory({"mine": "old words", "other": "kept"}, (Feedback("t1", "scored", 0.25),))
    load = ToolCall("mine", "load_skill", '{"skill_name": "mine"}')
    rewrite = ToolCall("rewrite", "save_skill", '{"skill_name": "mine", "content": "new words"}')
    third = ToolCall("third", "save_skill", '{"skill_name": "third", "content": "x"}')
    fourth = ToolCall("fourth", "save_skill", '{"skill_name": "fourth", "content": "x"}')
    again = dataclasses.replace(load, id="again")
    condition = Condition.SELF_GENERATED_PERSISTENT
    results, trace, _ = attempt(condition, load, rewrite, again, third, fourth, memory=memory)
    assert orjson.loads(results["mine"])["content"] == "old words"
    assert orjson.loads(results["again"])["content"] == "new words"
    assert "3 skills are saved already" in results["fourth"]
    assert trace.saved_skills == {"mine": "new words", "other": "kept", "third": "x"}
    assert memory.skills == {"mine": "old words", "other": "kept"}
    assert "Saved skills: mine, other\nVerdicts on your earlier answers, the latest last: 1. scored, 0.250 of 1" in (
        trace.messages[1].content
    )


def test_a_stream_that_saves_nothing_hands_on_what_it_had(attempt) -> None:
    memory = Memory({"mine": "words"})
    assert attempt(Condition.SELF_GENERATED_PERSISTENT, memory=memory)[1].saved_skills == {"mine": "words"}
    assert attempt(Condition.SELF_GENERATED_PERSISTENT)[1].saved_skills == {}


@pytest.mark.parametrize("condition", list(Condition))
def test_every_arm_reads_the_same_base_and_ends_with_the_submission_alone(
    scripted, play, mounts, condition: Condition
) -> None:
    base = "Subtask: unconstrained_optimization\nÄ base, byte for byte.\n"
    model = scripted([Turn("hm")])
    trace = play(model, condition, base_prompt=base)
    assert trace.messages[0].content == system_prompt(ARMS[condition])
    left = remaining_text(Remaining(DEFAULT_ALLOWANCE))
    assert trace.messages[1].content == f"{arm_prompt(base, mounts[condition], DOMAIN)}\n\n{left}"
    assert trace.messages[1].content.encode().startswith(base.encode())
    assert trace.condition == condition.value
    everything = (*ALWAYS, *EXTRA[condition])
    assert trace.tools == everything
    assert [(tools, choice) for _, tools, choice in model.seen] == [
        *[(everything, "auto")] * 11,
        (("submit_answer",), "submit_answer"),
    ]
    assert trace.messages[-2].content.startswith(LAST_TURN)


def test_a_mount_that_is_not_the_arms_is_refused(mounts, package) -> None:
    specs = tool_specs(mounts[Condition.NO_SKILL], "portfolio_construction")
    prove_mount(mounts[Condition.NO_SKILL], specs, "portfolio_construction")
    smuggled = Mount(ARMS[Condition.NO_SKILL], {package.name: package})
    with pytest.raises(InternalError, match="none is allowed"):
        prove_mount(smuggled, specs, "portfolio_construction")
    with pytest.raises(InternalError, match="offered tools"):
        prove_mount(mounts[Condition.CURATED], specs, "portfolio_construction")
    with pytest.raises(InternalError, match="offered tools"):
        prove_mount(mounts[Condition.NO_SKILL], specs, "fundamental_analysis")


def test_an_episode_with_a_smuggled_package_does_not_start(scripted, play, mounts, package) -> None:
    mounts[Condition.NO_SKILL] = Mount(ARMS[Condition.NO_SKILL], {package.name: package})
    model = scripted([Turn("hello")])
    with pytest.raises(InternalError, match="none is allowed"):
        play(model)
    assert not model.seen


def test_a_digest_tells_arms_and_packages_apart(mounts, package) -> None:
    digests = {mounted.digest for mounted in mounts.values()}
    changed = dataclasses.replace(package, digest="e" * 64)
    digests.add(mount(Condition.CURATED, {package.name: changed}, {}).digest)
    assert len(digests) == len(Condition) + 1
    assert mount(Condition.NO_SKILL, {}, {}).digest == mounts[Condition.NO_SKILL].digest


@pytest.mark.parametrize("condition", [condition for condition, arm in ARMS.items() if arm.mounts_packages])
def test_an_arm_that_needs_packages_refuses_to_run_without(package, condition: Condition) -> None:
    others = {package.name: package}
    packages, placebos = ({}, others) if condition is not Condition.PLACEBO else (others, {})
    kind = "placebo" if condition is Condition.PLACEBO else "curated"
    with pytest.raises(InputError, match=f"'{condition.value}' mounts {kind} skills, but no package was found"):
        mount(condition, packages, placebos)


@pytest.mark.parametrize("condition", [condition for condition, arm in ARMS.items() if not arm.kept])
@pytest.mark.parametrize("memory", [Memory({"mine": "x"}), Memory({}, (Feedback("t", "scored", 1.0),))])
def test_only_the_persistent_arm_may_remember(scripted, play, condition: Condition, memory: Memory) -> None:
    model = scripted([SUBMIT])
    with pytest.raises(InternalError, match=f"condition {condition.value}: skills .* remembered, nothing is allowed"):
        play(model, condition, memory=memory)
    assert not model.seen


def test_an_unknown_condition_is_named_with_the_known_ones() -> None:
    with pytest.raises(InputError, match="'placbo' is unknown; choose from: no_skill, curated"):
        parse_condition("placbo")


def test_an_arm_of_somebodys_own_mounts_what_it_was_given(package) -> None:
    given = {"skill:mine": UserSkills({package.name: package}, THIS_PYTHON)}
    mounted = mount("skill:mine", {"curated": package}, {}, given)
    assert mounted.packages == given["skill:mine"].packages
    assert mounted.arm == dataclasses.replace(ARMS[Condition.CURATED], condition="skill:mine", given=True)
    assert mounted.digest != mount(Condition.CURATED, mounted.packages, {}).digest
    with pytest.raises(InputError, match="'skill:other' has no folder of skills; name it: --skills other=DIR"):
        mount("skill:other", mounted.packages, {}, given)


@pytest.mark.parametrize("name", ["", "Mine", "a/b", "..", "x" * 65, "mine\n", "schön"])
def test_an_unfit_name_for_skills_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="is not a valid name for skills; use a-z, 0-9"):
        parse_condition(f"skill:{name}")
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(f"skill:{name}", ArmName)


@pytest.mark.parametrize("name", [*Condition, "skill:mine", "skill:v1.2_b-3"])
def test_a_name_that_records_take_is_one_that_users_may_give(name: str) -> None:
    assert msgspec.convert(str(name), ArmName) == parse_condition(name) == name
    assert type(parse_condition(name)) is str
    for other in (f"x{name}", f"{name} ", f"{name}\n"):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(other, ArmName)


def test_expected_tools_follow_the_switches() -> None:
    arm = dataclasses.replace(ARMS[Condition.NO_SKILL], scripts=True, own=True)
    assert expected_tools(arm, "risk_management") == (*ALWAYS, "load_skill", "run_skill_script", "save_skill")


def test_an_episode_is_offered_the_packages_of_its_suite(mounts, monkeypatch, tmp_path: Path) -> None:
    (package,) = mounts[Condition.CURATED].packages.values()
    own, other, strange = (replace(package, name=name, root=tmp_path / name) for name in ("a", "b", "mine"))
    for each in (own, other, strange):
        (each.root / "scripts").mkdir(parents=True)
        (each.root / "scripts" / "optimize.py").write_text('"""Optimises."""\n')
    paper = registered(DOMAIN)
    every = {name: replace(paper, name=name, suite=name, skills=(tmp_path / name,), placebos=()) for name in "ab"}
    monkeypatch.setattr(loader, "domains", lambda: tuple(every.values()))
    monkeypatch.setattr(loader, "registered", every.__getitem__)
    whole = mount(Condition.SCRIPTS_ONLY, {each.name: each for each in (own, other, strange)}, {})
    offered = whole.for_domain("a")
    assert set(offered.packages) == {"a", "mine"}
    assert {name.partition("/")[0] for name, _ in offered.script_index} == {"a", "mine"}
    assert offered.digest == mount(Condition.SCRIPTS_ONLY, {"a": own, "mine": strange}, {}).digest
    assert offered.for_domain("a") is offered


@pytest.mark.parametrize("base", [Condition.CURATED, "skill:mine"])
def test_a_hint_names_the_skill_and_force_shows_it(base: str, package, attempt) -> None:
    user_skills = {"skill:mine": UserSkills({package.name: package}, THIS_PYTHON)}
    base_mount, hinted, forced = (
        mount(base + suffix, {package.name: package}, {}, user_skills) for suffix in ("", "+hinted", "+forced")
    )
    assert arm_prompt("", base_mount, DOMAIN) == ""
    assert package.name in arm_prompt("", hinted, DOMAIN)
    assert package.body not in arm_prompt("", hinted, DOMAIN)
    assert package.body in arm_prompt("", forced, DOMAIN)
    assert forced.preloaded(DOMAIN) == {package.name: package}
    assert hinted.preloaded(DOMAIN) == {}
    assert tool_specs(base_mount, DOMAIN) == tool_specs(hinted, DOMAIN) == tool_specs(forced, DOMAIN)
    assert len({base_mount.digest, hinted.digest, forced.digest}) == 3


@pytest.mark.parametrize("name", ["no_skill+hinted", "placebo+forced", "curated+loud", "inline+forced", "curated+"])
def test_only_conditions_with_documents_have_activations(name: str) -> None:
    with pytest.raises(InputError, match="only a condition with skill documents"):
        parse_condition(name)
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(f"{name} ", ArmName)
