"""Each tool's contract, and that no JSON whatever makes one raise."""

import asyncio
import json
import math
from dataclasses import replace

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.sampling import examples

from finskillbench import domains
from finskillbench.errors import InputError
from finskillbench.harness.conditions import ARMS, Condition, Mount, mount
from finskillbench.harness.model import ToolCall
from finskillbench.harness.skills.user_skills import EMPTY, MAX_SAVED_SKILLS, MAX_SKILL_CHARS
from finskillbench.harness.tools.contracts import tool_specs
from finskillbench.harness.tools.toolbox import Toolbox, ToolServices
from finskillbench.harness.trace import CallOutcome

DOMAIN = "fundamental_analysis"


class Bench:
    """A toolbox with its tool list; `use` returns the parsed result and how the call fared."""

    def __init__(self, episode, full_input, mounted, runner, tmp_path, memory) -> None:
        self.box = Toolbox(
            episode, lambda: full_input, mounted, ToolServices(runner, scratch_root=tmp_path), memory=memory
        )
        self.specs = tool_specs(mounted, DOMAIN)

    def raw(self, name: str, arguments: str):
        text, outcome = asyncio.run(self.box.call(ToolCall("id", name, arguments), self.specs))
        return orjson.loads(text), outcome

    def use(self, name: str, **arguments):
        return self.raw(name, orjson.dumps(arguments).decode())


@pytest.fixture
def bench(episode, full_input, mounts, runner, tmp_path):
    benches = []

    def make(condition: Condition, runner=runner, data=full_input, memory=EMPTY) -> Bench:
        benches.append(Bench(episode, data, mounts[condition], runner, tmp_path, memory))
        return benches[-1]

    yield make
    for one in benches:
        one.box.close()


def test_task_data_has_full_precision(bench) -> None:
    toolbox = bench(Condition.NO_SKILL)
    result, outcome = toolbox.use("get_task_data", field="covariance_matrix")
    assert outcome == "ok"
    assert result["value"]["matrix"][0][0] == 0.040000001
    assert toolbox.use("get_task_data", field="expected_returns")[0]["value"]["AAA"] == 0.1234567


@pytest.mark.parametrize(
    ("path", "value"), [("covariance_matrix.matrix.1", [0.01, 0.09, 0.02]), ("covariance_matrix.tickers.2", "CCC")]
)
def test_a_dotted_path_reaches_inside_a_field(bench, path: str, value) -> None:
    assert bench(Condition.NO_SKILL).use("get_task_data", field=path)[0]["value"] == value


@pytest.mark.parametrize("path", ["no", "", ".", "covariance_matrix.matrix.3", "covariance_matrix.matrix.-1", "²"])
def test_an_unknown_field_lists_the_known_ones(bench, full_input, path: str) -> None:
    result, outcome = bench(Condition.NO_SKILL).use("get_task_data", field=path)
    assert outcome == "tool_failed"
    assert result["fields"] == list(full_input)


def test_a_field_too_long_to_return_can_be_read_in_parts(bench) -> None:
    n = 200
    data = {"covariance_matrix": {"tickers": [f"T{i}" for i in range(n)], "matrix": [[1 / 3] * n] * n}}
    toolbox = bench(Condition.NO_SKILL, data=data)
    result, outcome = toolbox.use("get_task_data", field="covariance_matrix")
    assert outcome == "tool_failed"
    assert "request a part" in result["error"]
    assert toolbox.use("get_task_data", field="covariance_matrix.matrix.0")[0]["value"] == [1 / 3] * n


def test_a_full_covariance_of_a_hundred_names_passes(bench) -> None:
    n = 100
    toolbox = bench(Condition.NO_SKILL, data={"covariance_matrix": {"matrix": [[math.pi / 100] * n] * n}})
    assert toolbox.use("get_task_data", field="covariance_matrix")[1] == "ok"


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        ('{"answer": "text {\\n"}', "text {\n"),
        ('{"answer": ""}', ""),
        ('{"answer": {"weights": {"A": 0.10, "A": 1.000}}}', '{"weights": {"A": 0.10, "A": 1.000}}'),
        ('{"answer" : [1 , 2] }', "[1 , 2]"),
        ('{ "answer":{"a":1} , "answer":{"b":2}}', '{"b":2}'),
        ('{"\\u0061nswer": {"a": "}, \\"answer\\": {"}}', '{"a": "}, \\"answer\\": {"}'),
    ],
)
def test_a_submission_is_kept_as_it_was_written(bench, arguments: str, answer: str) -> None:
    toolbox = bench(Condition.NO_SKILL)
    assert toolbox.raw("submit_answer", arguments) == ({"status": "submitted"}, "ok")
    assert toolbox.box.answer == answer


@pytest.mark.parametrize(
    ("name", "arguments", "outcome", "words"),
    [
        ("submit_answer", "", "invalid_arguments", "lacks the parameter 'answer'"),
        ("submit_answer", "{", "invalid_arguments", "not valid JSON"),
        ("submit_answer", '{"answer": NaN}', "invalid_arguments", "not valid JSON"),
        ("submit_answer", "[]", "invalid_arguments", "must be a JSON object"),
        ("submit_answer", '{"answer": null}', "invalid_arguments", "must be a string"),
        ("get_task_data", '{"field": "a", "fields": 1}', "invalid_arguments", "has no parameter 'fields'"),
        ("get_task_data", '{"field": ["a"]}', "invalid_arguments", "must be a string"),
        ("query_xbrl", '{"ticker": "AAPL", "metrics": [1]}', "invalid_arguments", "must be a list of strings"),
        ("query_xbrl", '{"ticker": "AAPL", "limit": true}', "invalid_arguments", "must be an integer"),
        ("query_xbrl", '{"ticker": "AAPL", "period": null}', "tool_failed", "has no filings"),
        ("run_skill_script", '{"script_path": "x", "input_data": "{}"}', "invalid_arguments", "must be a JSON object"),
        ("optimize", "{}", "unknown_tool", "there is no tool 'optimize'"),
    ],
)
def test_bad_calls_are_told_what_is_wrong(bench, name: str, arguments: str, outcome: CallOutcome, words: str) -> None:
    toolbox = bench(Condition.CURATED)
    result, met = toolbox.raw(name, arguments)
    assert met == outcome
    assert words in result["error"]
    assert toolbox.box.answer is None


def test_a_skill_that_is_not_there_lists_those_that_are(bench, package) -> None:
    missing, outcome = bench(Condition.CURATED).use("load_skill", skill_name="risk")
    assert (outcome, missing["available"]) == ("tool_failed", [package.name])


@pytest.mark.parametrize("file", ["references/methods.md", "methods.md", None])
def test_a_reference_is_loaded_alone_or_with_all_others_and_loads_its_skill(
    bench, mounts, package, runner, file
) -> None:
    two = replace(package, references={**package.references, "references/limits.md": "Limits, and where they bind."})
    mounts[Condition.CURATED] = mount(Condition.CURATED, {two.name: two}, {})
    toolbox = bench(Condition.CURATED)
    expected = two.references if file is None else {"references/methods.md": two.references["references/methods.md"]}
    for _ in range(2):
        result, outcome = toolbox.use(
            "load_references", skill_name=two.name, **({} if file is None else {"file": file})
        )
        assert (outcome, result) == ("ok", {"skill_name": two.name, "references": expected})
    assert toolbox.box.skills_loaded == [two.name]
    assert toolbox.use("run_skill_script", script_path="scripts/optimize.py")[1] == "ok"
    assert len(runner.calls) == 1


def test_a_reference_that_is_not_there_names_those_that_are_and_loads_nothing(bench, package) -> None:
    toolbox = bench(Condition.CURATED)
    result, outcome = toolbox.use("load_references", skill_name=package.name, file="references/other.md")
    assert (outcome, result["references"]) == ("tool_failed", ["references/methods.md"])
    assert "no reference 'references/other.md'" in result["error"]
    assert toolbox.box.skills_loaded == []


def test_injected_fields_arrive_at_full_precision_and_override(bench, package, runner, full_input) -> None:
    toolbox = bench(Condition.CURATED)
    toolbox.use("load_skill", skill_name=package.name)
    toolbox.use(
        "run_skill_script",
        script_path="scripts/optimize.py",
        input_data={"covariance_matrix": "30x30", "risk_aversion": 2},
        inject_task_fields=["covariance_matrix"],
    )
    payload = orjson.loads(runner.calls[0][1])
    assert payload == {"covariance_matrix": full_input["covariance_matrix"], "risk_aversion": 2}
    result, outcome = toolbox.use("run_skill_script", script_path="scripts/optimize.py", inject_task_fields=["truth"])
    assert (outcome, result["fields"]) == ("tool_failed", list(full_input))
    assert len(runner.calls) == 1


@pytest.mark.parametrize(
    "path", ["../SKILL.md", "/etc/passwd", "scripts/../../x.py", "scripts/none.py", "", "\x00", "SKILL.md"]
)
def test_a_script_outside_the_package_is_never_run(bench, package, runner, path: str) -> None:
    toolbox = bench(Condition.CURATED)
    toolbox.use("load_skill", skill_name=package.name)
    result, outcome = toolbox.use("run_skill_script", script_path=path)
    assert (outcome, runner.calls) == ("tool_failed", [])
    assert result["scripts"] == {package.name: ["scripts/optimize.py"]}


def test_a_script_of_a_skill_that_is_not_loaded_names_it(bench, mounts, package, runner) -> None:
    other = replace(package, name="risk-management", scripts=("scripts/measure.py",))
    both = {each.name: each for each in (package, other)}
    mounts[Condition.CURATED] = mount(Condition.CURATED, both, {})
    toolbox = bench(Condition.CURATED)
    toolbox.use("load_skill", skill_name=package.name)
    result, outcome = toolbox.use("run_skill_script", script_path="risk-management/scripts/measure.py")
    assert (outcome, runner.calls) == ("tool_failed", [])
    assert result["error"] == "skill 'risk-management' is not loaded; load it first"


def test_a_failing_script_is_an_error_the_agent_reads(bench, package, failing_runner) -> None:
    toolbox = bench(Condition.CURATED, runner=failing_runner)
    toolbox.use("load_skill", skill_name=package.name)
    result, outcome = toolbox.use("run_skill_script", script_path="scripts/optimize.py")
    assert (outcome, result) == ("tool_failed", {"error": "stopped after 10 s", "script": "scripts/optimize.py"})


def test_own_skills_are_saved_found_and_removed_with_the_episode(bench, tmp_path) -> None:
    toolbox = bench(Condition.SELF_GENERATED)
    assert toolbox.use("load_skill", skill_name="mine")[0] == {"error": "No skills available."}
    assert toolbox.use("save_skill", skill_name="mine", content="one\r\ntwo é")[1] == "ok"
    assert toolbox.use("load_skill", skill_name="mine")[0]["content"] == "one\r\ntwo é"
    scratch = [path for path in tmp_path.iterdir() if path.name.startswith("skills-")]
    assert len(scratch) == 1
    toolbox.box.close()
    assert not scratch[0].exists()


def test_own_skills_are_limited_in_number_and_size(bench) -> None:
    toolbox = bench(Condition.SELF_GENERATED)
    for i in range(MAX_SAVED_SKILLS):
        assert toolbox.use("save_skill", skill_name=f"skill-{i}", content="x" * MAX_SKILL_CHARS)[1] == "ok"
    assert toolbox.use("save_skill", skill_name="one-more", content="x")[1] == "tool_failed"
    assert toolbox.use("save_skill", skill_name="skill-0", content="new")[1] == "ok"
    assert toolbox.use("load_skill", skill_name="skill-0")[0]["content"] == "new"
    assert toolbox.use("save_skill", skill_name="skill-1", content="x" * (MAX_SKILL_CHARS + 1))[1] == "tool_failed"


@pytest.mark.parametrize("name", ["", "A", "a--b", "-a", "a-", "a/b", "../a", "a.md", "a\n", "ä", "a" * 65])
def test_a_name_outside_the_specification_saves_nothing(bench, tmp_path, name: str) -> None:
    assert bench(Condition.SELF_GENERATED).use("save_skill", skill_name=name, content="x")[1] == "tool_failed"
    assert not list(tmp_path.glob("skills-*"))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(), children, max_size=4),
    max_leaves=12,
)
NAMES = (
    "submit_answer",
    "load_skill",
    "load_references",
    "get_task_data",
    "query_xbrl",
    "run_skill_script",
    "save_skill",
)
PARAMETERS = ("answer", "skill_name", "field", "ticker", "script_path", "input_data", "inject_task_fields", "content")


@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(NAMES) | st.text(),
    arguments=st.text() | JSON | st.dictionaries(st.sampled_from(PARAMETERS), JSON),
    condition=st.sampled_from(list(Condition)),
)
def test_no_arguments_whatever_make_a_tool_raise(bench, package, name, arguments, condition) -> None:

    toolbox = bench(condition)
    if condition is Condition.CURATED:
        toolbox.use("load_skill", skill_name=package.name)
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    result, outcome = toolbox.raw(name, text)
    assert isinstance(result, dict)
    assert (outcome == "ok") is ("error" not in result)


@pytest.mark.parametrize("depth", [300, 900, 1_100, 100_000])
@pytest.mark.parametrize("name", NAMES)
def test_deep_nesting_is_an_error_or_an_answer_but_never_raises(bench, package, name: str, depth: int) -> None:
    toolbox = bench(Condition.CURATED)
    toolbox.use("load_skill", skill_name=package.name)
    deep = '{"a":' * depth + "1" + "}" * depth
    for key in ("answer", "input_data"):
        toolbox.raw(name, f'{{"{key}": {deep}, "script_path": "scripts/optimize.py"}}')
        toolbox.raw(name, f'{{"{key}": {deep}}}')


def test_a_fault_in_a_tool_itself_is_an_error_result_and_in_the_log(episode, mounts, tmp_path, caplog) -> None:
    def broken():
        raise ZeroDivisionError("division by zero")

    box = Toolbox(episode, broken, mounts[Condition.NO_SKILL], ToolServices(scratch_root=tmp_path))
    specs = tool_specs(mounts[Condition.NO_SKILL], DOMAIN)
    text, outcome = asyncio.run(box.call(ToolCall("id", "get_task_data", '{"field": "x"}'), specs))
    assert (outcome, orjson.loads(text)) == ("tool_failed", {"error": "ZeroDivisionError: division by zero"})
    assert "ZeroDivisionError" in caplog.text
    assert "in broken" in caplog.text


@pytest.mark.parametrize("name", ["calculator", "save_skill"])
def test_a_domain_names_tools_that_there_are(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    outside = replace(domains.domain(DOMAIN), name="outside", tools=(name,))
    monkeypatch.setattr(domains, "domains", lambda: (outside,))
    with pytest.raises(InputError, match=f"domain outside: tool '{name}' is unknown; a domain can name query_xbrl"):
        tool_specs(Mount(ARMS[Condition.NO_SKILL]), "outside")
