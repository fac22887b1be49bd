"""The proof at the start of a run: it passes what each arm grants, and refuses every kind of leak."""

import dataclasses
from collections.abc import Callable
from hashlib import sha256
from itertools import product
from typing import Any

import orjson
import pytest
from tests.sampling import sampled

from finskillbench.domains import domain as registered
from finskillbench.domains import domains
from finskillbench.errors import InputError, InternalError
from finskillbench.harness import conditions, proof
from finskillbench.harness.conditions import ARMS, Condition, Mount, expected_tools, mount
from finskillbench.harness.prompts import compose
from finskillbench.harness.proof import prove_arms, wire_json
from finskillbench.harness.skills.loader import SkillPackage, curated
from finskillbench.harness.tools import contracts as tools
from finskillbench.harness.tools.contracts import tool_specs

pytestmark = pytest.mark.slow

DOMAINS = tuple(domain.name for domain in domains())
DOMAIN = DOMAINS[0]
MOUNTING = [condition for condition, arm in ARMS.items() if arm.mounts_packages]
BARE = [condition for condition in Condition if condition not in MOUNTING]
NOTHING = sha256(b"").hexdigest()
REAL = curated()
SWITCHES = ("documents", "scripts", "inline", "placebo", "given", "own", "kept", "code")


@pytest.fixture(autouse=True)
def read_once(monkeypatch) -> None:
    monkeypatch.setattr(proof, "curated", lambda: REAL)


@pytest.fixture
def shipped(mounts) -> dict[Condition, Mount]:
    """Every arm over the packages that ship; the placebo is the fixtures'."""
    return {condition: mount(condition, REAL, mounts[Condition.PLACEBO].packages) for condition in Condition}


def test_every_arm_over_the_real_packages_is_proved_and_recorded(shipped) -> None:
    record = prove_arms(shipped, DOMAINS)
    assert orjson.loads(orjson.dumps(record)) == record
    assert list(record) == [condition.value for condition in shipped]
    for condition, mounted in shipped.items():
        seen = record[condition.value]
        assert seen["digest"] == {domain: mounted.for_domain(domain).digest for domain in DOMAINS}
        assert seen["packages"] == mounted.package_digests()
        for domain in DOMAINS:
            assert seen["tools"][domain] == list(expected_tools(mounted.arm, domain))
            specs = tool_specs(mounted.for_domain(domain), domain)
            wire = orjson.dumps([{f.name: getattr(s, f.name) for f in dataclasses.fields(s)} for s in specs])
            assert seen["wire_digest"][domain] == sha256(wire).hexdigest()
            appends = condition in (Condition.SELF_GENERATED, Condition.SELF_GENERATED_PERSISTENT, Condition.INLINE)
            assert (seen["prompt_appended_digest"][domain] != NOTHING) is appends
    inline = record["inline"]["prompt_appended_digest"]
    assert len({inline[domain] for domain in DOMAINS}) == len(DOMAINS)
    assert set(record["no_skill"]["prompt_appended_digest"].values()) == {NOTHING}
    assert record["no_skill"]["packages"] == {}


def test_a_record_is_the_same_again_and_tells_what_it_was_made_of(shipped, mounts) -> None:
    assert prove_arms(shipped, DOMAINS) == prove_arms(shipped, (*DOMAINS[::-1], DOMAIN))
    other = prove_arms(mounts, (DOMAIN,))
    record = prove_arms(shipped, (DOMAIN,))
    assert {arm for arm in record if record[arm]["wire_digest"] != other[arm]["wire_digest"]} == {
        *("curated", "docs_only", "scripts_only", "code_curated")
    }


def refused(mounts: dict[Condition, Mount], condition: Condition, *words: str, domain: str = DOMAIN) -> None:
    """The arm alone, and among all others, is refused with its name and what could be seen."""
    for table in ({condition: mounts[condition]}, mounts):
        with pytest.raises(InternalError) as caught:
            prove_arms(table, (domain,))
        message = str(caught.value)
        assert message.startswith(f"condition {condition.value}: an agent could see ")
        for word in words:
            assert word in message
        assert "\n" not in message


@pytest.mark.parametrize("condition", BARE)
def test_a_package_smuggled_into_a_bare_arm_is_refused(mounts, package, condition: Condition) -> None:
    mounts[condition] = Mount(ARMS[condition], {package.name: package})
    refused(mounts, condition, "mounted packages: portfolio-construction")


@pytest.mark.parametrize(("condition", "switch"), sampled(product(Condition, SWITCHES), 3))
def test_an_arm_with_another_switch_is_refused(mounts, condition: Condition, switch: str) -> None:
    arm = dataclasses.replace(ARMS[condition], **{switch: not getattr(ARMS[condition], switch)})
    mounts[condition] = dataclasses.replace(mounts[condition], arm=arm)
    refused(mounts, condition, "switches", f"'{switch}': {getattr(arm, switch)}")


@pytest.mark.parametrize("condition", [c for c in Condition if c is not Condition.CURATED])
def test_one_arm_under_the_name_of_another_is_refused(mounts, condition: Condition) -> None:
    mounts[condition] = mounts[Condition.CURATED]
    refused(mounts, condition, "switches")


@pytest.mark.parametrize("condition", [c for c in Condition if c is not Condition.SCRIPTS_ONLY])
def test_an_index_of_scripts_where_none_belongs_is_refused(mounts, condition: Condition) -> None:
    index = mounts[Condition.SCRIPTS_ONLY].script_index
    mounts[condition] = dataclasses.replace(mounts[condition], script_index=index)
    refused(mounts, condition, "an index of scripts: portfolio-construction/scripts/optimize.py")


def test_an_index_of_scripts_with_other_words_is_refused(mounts) -> None:
    ((path, notes),) = mounts[Condition.SCRIPTS_ONLY].script_index
    for index in ((), ((path, notes + " Read the document."),)):
        mounts[Condition.SCRIPTS_ONLY] = dataclasses.replace(mounts[Condition.SCRIPTS_ONLY], script_index=index)
        refused(mounts, Condition.SCRIPTS_ONLY, "an index of scripts")


@pytest.mark.parametrize("condition", MOUNTING)
def test_an_arm_that_shows_nothing_is_refused(mounts, condition: Condition) -> None:
    mounts[condition] = Mount(ARMS[condition])
    refused(mounts, condition, "no package, though the arm shows some")


@pytest.mark.parametrize("change", [{}, {"name": "bee-keeping"}])
def test_a_curated_package_in_the_placebo_arm_is_refused_under_any_name(mounts, change: dict[str, str]) -> None:
    real = dataclasses.replace(REAL["risk-management"], **change)
    mounts[Condition.PLACEBO] = Mount(ARMS[Condition.PLACEBO], {real.name: real})
    refused(mounts, Condition.PLACEBO, f"curated packages: {real.name}")


@pytest.mark.parametrize("condition", [c for c in MOUNTING if c is not Condition.PLACEBO])
def test_a_placebo_in_another_arm_is_refused(mounts, monkeypatch, condition: Condition) -> None:
    bees = mounts[Condition.PLACEBO].packages
    monkeypatch.setattr(proof, "placebo", lambda: bees)
    mounts[condition] = mount(condition, {**mounts[condition].packages, **bees}, {})
    refused(mounts, condition, "placebo packages: bee-keeping")


def test_a_package_under_another_name_is_refused(mounts, package) -> None:
    mounts[Condition.CURATED] = Mount(ARMS[Condition.CURATED], {"notes": package})
    refused(mounts, Condition.CURATED, "packages under another name: notes")


Leak = Callable[[SkillPackage], str]
LEAKS: dict[str, Leak] = {
    "a name": lambda package: f"such as {package.name}",
    "a description": lambda package: package.description,
    "a script": lambda _: "e.g. check_constraints.py",
    "notes of a script": lambda _: "Optimise a portfolio under a mandate's limits and prove the result.",
    "a line of SKILL.md": lambda package: next(line for line in package.body.splitlines() if len(line) > 60),
    "a line of a reference": lambda package: package.references["references/methods.md"].splitlines()[2],
}


@pytest.mark.parametrize(("condition", "leak"), sampled(product(Condition, LEAKS), 5))
def test_words_of_a_skill_in_a_tools_description_are_refused(shipped, monkeypatch, condition, leak: str) -> None:
    description = f"Hand in the answer, {LEAKS[leak](REAL['portfolio-construction'])}"
    monkeypatch.setattr(tools, "SUBMIT_ANSWER", dataclasses.replace(tools.SUBMIT_ANSWER, description=description))
    tools._specs.cache_clear()
    try:
        refused({condition: shipped[condition]}, condition, "in portfolio_construction the words")
    finally:
        tools._specs.cache_clear()


@pytest.mark.parametrize("condition", [c for c in Condition if ARMS[c].own])
def test_an_index_in_the_description_of_load_skill_is_refused(shipped, monkeypatch, condition: Condition) -> None:
    honest = proof.tool_specs

    def leaking(mounted: Mount, domain: str):
        index = (("portfolio-construction", REAL["portfolio-construction"].description),)
        return tuple(
            tools._load_skill(mounted.arm, index) if t.name == "load_skill" else t for t in honest(mounted, domain)
        )

    monkeypatch.setattr(proof, "tool_specs", leaking)
    refused({condition: shipped[condition]}, condition, "the words", "portfolio-construction")


@pytest.mark.parametrize(
    ("name", "leaking"),
    [
        ("system_prompt", lambda arm: f"{compose.system_prompt(arm)} Try risk-management."),
        ("FIXED_TEXTS", (*compose.FIXED_TEXTS, "Try risk-management.")),
    ],
)
def test_words_of_a_skill_in_the_fixed_texts_are_refused(shipped, monkeypatch, name: str, leaking: object) -> None:
    monkeypatch.setattr(proof, name, leaking)
    refused({Condition.NO_SKILL: shipped[Condition.NO_SKILL]}, Condition.NO_SKILL, "the words 'risk-management'")


def test_anything_behind_the_prompt_of_an_arm_that_appends_nothing_is_refused(mounts, monkeypatch) -> None:
    monkeypatch.setattr(proof, "arm_prompt", lambda base, mounted, domain: base + "\n\n# Skills\nBe wise.")
    for condition in (Condition.NO_SKILL, Condition.CURATED, Condition.DOCS_ONLY, Condition.PLACEBO):
        refused({condition: mounts[condition]}, condition, "behind the prompt '\\n\\n# Skills\\nBe wise.'")


def test_words_of_a_skill_behind_the_prompt_of_an_own_arm_are_refused(shipped, monkeypatch) -> None:
    monkeypatch.setattr(proof, "arm_prompt", lambda base, mounted, domain: "save_skill as in risk-management")
    refused({c: shipped[c] for c in BARE[1:2]}, Condition.SELF_GENERATED, "the words 'risk-management'")


def test_a_skill_that_can_be_loaded_or_a_script_that_can_be_run_is_refused(mounts, monkeypatch) -> None:
    honest = proof.Toolbox

    def toolbox(**attributes: list[str]) -> Any:
        return type("Leaking", (honest,), attributes)

    monkeypatch.setattr(proof, "Toolbox", toolbox(loadable=["remembered"]))
    for condition in Condition:
        refused({condition: mounts[condition]}, condition, "the skills remembered")
    monkeypatch.setattr(proof, "Toolbox", toolbox(runnable=["a/scripts/b.py"]))
    for condition in Condition:
        refused({condition: mounts[condition]}, condition, "the scripts a/scripts/b.py")


def test_documents_of_another_domain_behind_the_prompt_are_refused(shipped, monkeypatch) -> None:
    honest = proof.arm_prompt
    other = REAL["risk-management"].body
    monkeypatch.setattr(proof, "arm_prompt", lambda *args: honest(*args) + other)
    refused({Condition.INLINE: shipped[Condition.INLINE]}, Condition.INLINE, "the words")


def test_an_arm_that_hides_what_it_grants_is_refused(mounts, monkeypatch) -> None:
    honest = proof.arm_prompt
    monkeypatch.setattr(proof, "arm_prompt", lambda *args: honest(*args).replace("Mean and variance", "..."))
    refused({Condition.INLINE: mounts[Condition.INLINE]}, Condition.INLINE, "no sign of what it grants: 'Mean and var")


def test_hints_and_documents_of_an_activation_are_granted_and_nothing_else(monkeypatch) -> None:
    activated = {name: mount(name, REAL, {}) for name in ("curated+hinted", "curated+forced", "code_curated+forced")}
    prove_arms(activated, ("risk_management", DOMAIN))
    honest = proof.arm_prompt
    for leak in ("risk-management", REAL["risk-management"].body):
        monkeypatch.setattr(proof, "arm_prompt", lambda *args, leak=leak: honest(*args) + leak)
        for name, each in activated.items():
            with pytest.raises(InternalError, match="the words"):
                prove_arms({name: each}, (DOMAIN,))


def test_an_inline_arm_without_the_domains_package_is_refused_before_the_first_call(mounts) -> None:
    with pytest.raises(InputError, match="no package is named 'risk-management'"):
        prove_arms({Condition.INLINE: mounts[Condition.INLINE]}, ("risk_management",))


def test_the_package_of_an_extension_stands_behind_the_prompt_of_its_domain_and_of_no_other(
    shipped, monkeypatch, tmp_path
) -> None:
    """Behind the domain's own, with its scripts; what the other domains show stays to the letter."""
    mounted = shipped[Condition.INLINE]
    before = prove_arms({Condition.INLINE: mounted}, DOMAINS)["inline"]["prompt_appended_digest"]
    root = tmp_path / "tax-lots"
    (root / "scripts").mkdir(parents=True)
    (root / "scripts" / "lots.py").write_text('"""Chooses the lots to sell."""\n')
    body = "Sell the lots of the highest cost first, unless the task says otherwise."
    extension = dataclasses.replace(
        REAL["risk-management"], name=root.name, root=root, body=body, references={}, scripts=("scripts/lots.py",)
    )
    base = registered("risk_management")
    extended = dataclasses.replace(base, skills=(*base.skills, root))
    monkeypatch.setattr(conditions, "registered", lambda name: extended if name == base.name else registered(name))
    more = mount(Condition.INLINE, {root.name: extension, **REAL}, {})
    after = prove_arms({Condition.INLINE: more}, DOMAINS)["inline"]["prompt_appended_digest"]
    assert {domain for domain in DOMAINS if before[domain] != after[domain]} == {base.name}
    text = compose.arm_prompt("", more, base.name)
    assert text == compose.arm_prompt("", mounted, base.name) + "\n\n" + body
    assert list(more.preloaded(base.name)) == ["risk-management", "tax-lots"]
    monkeypatch.setattr(proof, "arm_prompt", lambda *args: compose.arm_prompt(*args).replace(body, ""))
    refused({Condition.INLINE: more}, Condition.INLINE, "no sign of what it grants: 'Sell the lots", domain=base.name)


def test_the_wire_is_digested_to_the_last_letter(mounts) -> None:
    specs = tool_specs(mounts[Condition.NO_SKILL], DOMAIN)
    text = wire_json(specs)
    assert [tool["name"] for tool in orjson.loads(text)] == [spec.name for spec in specs]
    changed = (dataclasses.replace(specs[0], description=specs[0].description + " "), *specs[1:])
    assert wire_json(changed) != text
