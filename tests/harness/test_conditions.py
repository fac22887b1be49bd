"""What each arm mounts, and that the arm without skills sees none."""

import dataclasses

import orjson
import pytest

from finskillbench.errors import InputError, InternalError
from finskillbench.harness.conditions import ARMS, Condition, Mount, expected_tools, mount, parse_condition, prove_mount
from finskillbench.harness.model import ToolCall, Turn
from finskillbench.harness.tools import tool_specs

ALWAYS = ("submit_answer", "load_skill", "load_references", "get_task_data")


@pytest.mark.parametrize(
    ("condition", "extra"),
    [
        (Condition.NO_SKILL, ()),
        (Condition.CURATED, ("run_skill_script",)),
        (Condition.SELF_GENERATED, ("save_skill",)),
    ],
)
def test_tools_on_the_wire(mounts, condition: Condition, extra: tuple[str, ...]) -> None:
    for domain, filings in (("portfolio_construction", ()), ("fundamental_analysis", ("query_xbrl",))):
        names = tuple(spec.name for spec in tool_specs(mounts[condition], domain))
        assert names == (*ALWAYS, *filings, *extra)


def test_shared_tools_are_the_same_in_every_arm_but_for_the_index_of_skills(mounts) -> None:
    tables = [
        {spec.name: spec for spec in tool_specs(mounts[condition], "portfolio_construction")} for condition in Condition
    ]
    for name in ALWAYS:
        assert len({orjson.dumps(dict(table[name].parameters)) for table in tables}) == 1
        if name != "load_skill":
            assert len({table[name].description for table in tables}) == 1
    bare, curated, own = (table["load_skill"].description for table in tables)
    assert bare == own
    assert curated == f"{bare} Available skills:\n- portfolio-construction: Builds portfolios."


def test_the_no_skill_arm_sees_no_trace_of_a_skill(scripted, play, package) -> None:
    tries = (
        ToolCall("1", "load_skill", '{"skill_name": "portfolio-construction"}'),
        ToolCall("2", "load_references", '{"skill_name": "portfolio-construction"}'),
        ToolCall("3", "run_skill_script", '{"script_path": "scripts/optimize.py"}'),
        ToolCall("4", "save_skill", '{"skill_name": "mine", "content": "x"}'),
    )
    model = scripted([Turn(tool_calls=tries), Turn(tool_calls=(ToolCall("s", "submit_answer", '{"answer": "{}"}'),))])
    trace = play(model)
    results = [trace.messages[record.message].content for record in trace.tool_calls[:4]]
    assert results[0] == results[1] == '{"error":"No skills available."}'
    assert all("there is no tool" in result for result in results[2:])
    assert (trace.skills_loaded, trace.scripts_run) == ((), ())
    shown = orjson.dumps([[orjson.dumps(m).decode() for m in model.seen[-1][0]], [repr(s) for s in model.specs[0]]])
    for secret in (package.description, package.body, "methods.md", package.digest):
        assert secret.encode() not in shown


def test_a_mount_that_is_not_the_arms_is_refused(mounts, package) -> None:
    specs = tool_specs(mounts[Condition.NO_SKILL], "portfolio_construction")
    prove_mount(mounts[Condition.NO_SKILL], specs, "portfolio_construction")
    smuggled = Mount(ARMS[Condition.NO_SKILL], {package.name: package})
    with pytest.raises(InternalError, match="none may be"):
        prove_mount(smuggled, specs, "portfolio_construction")
    with pytest.raises(InternalError, match="tools on offer"):
        prove_mount(mounts[Condition.CURATED], specs, "portfolio_construction")
    with pytest.raises(InternalError, match="tools on offer"):
        prove_mount(mounts[Condition.NO_SKILL], specs, "fundamental_analysis")


def test_an_arm_of_scripts_alone_shows_no_documents(scripted, play, mounts, package) -> None:
    arm = dataclasses.replace(ARMS[Condition.CURATED], documents=False)
    mounts[Condition.CURATED] = Mount(arm, {package.name: package})
    load = ToolCall("1", "load_skill", '{"skill_name": "portfolio-construction"}')
    model = scripted([Turn(tool_calls=(load,)), Turn(tool_calls=(ToolCall("s", "submit_answer", '{"answer": ""}'),))])
    trace = play(model, Condition.CURATED)
    assert trace.messages[3].content == '{"error":"No skills available."}'
    assert package.description not in repr(model.specs)


def test_an_episode_with_a_smuggled_package_does_not_start(scripted, play, mounts, package) -> None:
    mounts[Condition.NO_SKILL] = Mount(ARMS[Condition.NO_SKILL], {package.name: package})
    model = scripted([Turn("hello")])
    with pytest.raises(InternalError, match="none may be"):
        play(model)
    assert not model.seen


def test_a_digest_tells_arms_and_packages_apart(mounts, package) -> None:
    digests = {mounted.digest for mounted in mounts.values()}
    changed = dataclasses.replace(package, digest="e" * 64)
    assert len(digests | {mount(Condition.CURATED, {package.name: changed}).digest}) == 4
    assert mount(Condition.NO_SKILL, {}).digest == mounts[Condition.NO_SKILL].digest


def test_an_arm_that_needs_packages_refuses_to_run_without() -> None:
    with pytest.raises(InputError, match="no package was found"):
        mount(Condition.CURATED, {})


def test_an_unknown_condition_is_named_with_the_known_ones() -> None:
    with pytest.raises(InputError, match="'placbo' is unknown; choose from: no_skill, curated"):
        parse_condition("placbo")


def test_expected_tools_follow_the_switches() -> None:
    arm = dataclasses.replace(ARMS[Condition.NO_SKILL], scripts=True, own=True)
    assert expected_tools(arm, "risk_management") == (*ALWAYS, "run_skill_script", "save_skill")
