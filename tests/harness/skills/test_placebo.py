"""The placebo packages: as large as the curated ones, laid out alike, and of no use to any task."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

import finskillbench
from finskillbench.harness.skills.lint import lint
from finskillbench.harness.skills.loader import PLACEBO, SKILL_FILE, SkillPackage, curated, load_package, placebo

SOURCES = Path(finskillbench.__file__).parent
OURS = sorted(root / SKILL_FILE for package in curated().values() if (root := package.root).is_relative_to(SOURCES))
"""The packages that ship; one that comes from elsewhere brings no counterpart."""
PAIRS = list(zip(sorted(PLACEBO.glob("*/SKILL.md")), OURS, strict=True))
NAMES = [path.parent.name for path, _ in PAIRS]

# References besides the methods and the pitfalls have names of their own on both sides.
COUNTERPARTS = {
    "references/timbers.md": "references/xbrl.md",
    "references/stone-words.md": "references/mandate-language.md",
}

# Words of the tasks, of their fields and of the advice that the curated documents give, by how they begin.
FORBIDDEN = re.compile(
    r"""\b(?:
    account | accru | advi | alloc | answer | approxima | arithmet | asset | attribut | audit | averag | bank
    | basis | benchmark | beta | bond | budget | calcul | capital | cash | cataly | code | comput | concentrat
    | condition | constrain | contribut | convex | correct | correlat | cost | covarian | coverage | currenc
    | cvar | data | debt | decimal | default | definition | deviat | diversif | dividend | divisor | dollar
    | double-check | driver | earning | ebitda | econom | equation | equit | error | estimat | evaluat | expected
    | expens | exposur | factor | feasib | field | file | filing | financ | fiscal | formula | fraction | fund
    | gaap | gross | guess | hedg | herfindahl | hhi | holdings | hypothes | identif | incom | index | infeasib
    | inflat | inject | input | interest | inventor | invest | issuer | json | keyword | lambda | ledger | lend
    | leverag | liabilit | limit | linear | liquid | litterman | loan | loss | magnitude | mandate | manipulat
    | margin | market | math | matrix | maximi | maximum | mean | measur | median | metric | minim | momentum
    | monitor | nav\b | neutral | nonneg | normali | null | number | object | operat | optim | parameter | payload
    | payoff | penalt | percent | piotroski | planning\b | plans?\b | portfolio | position | posterior
    | precision | premium | prior | probab | problem | profit | program | project | prompt | python | quadrat
    | quantil | quarter | query | rank | ratio | rebalanc | receivab | recheck | regress | remed | report | result
    | return | revenu | risk | rounding | schema | scor | script | sector | securit | segment | sensitiv
    | sharpe | shock | skew | skill | solver | standard | statement | statistic | stock | strateg | stress
    | submit | subtask | subtract | sums?\b | tactic | task | tax | ticker | tilt | tool | track | trad | turnover
    | usd | valu | varian | vector | verif | violat | volatil | volum | weigh | xbrl | yield | zero
    )[a-z\-]*""",
    re.IGNORECASE | re.VERBOSE,
)
LAYOUT = {
    "headings": r"^#+ ",
    "rows of tables": r"^\|",
    "bullets": r"^ *- ",
    "numbered steps": r"^\d\. ",
    "links": r"\]\(",
    "blocks of code": r"^ *```",
}
SPARE_ROWS = 2
"""Rows that a SKILL.md may have beyond its counterpart: a new subtask takes one, and no other text."""


def documents(package: SkillPackage) -> dict[str, str]:
    """SKILL.md as it stands and every reference, by name."""
    return {SKILL_FILE: (package.root / SKILL_FILE).read_text(encoding="utf-8"), **package.references}


def forbidden(text: str) -> list[str]:
    return sorted({word.lower() for word in FORBIDDEN.findall(text)})


@pytest.fixture(params=range(len(PAIRS)), ids=NAMES)
def pair(request: pytest.FixtureRequest) -> tuple[SkillPackage, SkillPackage]:
    """A placebo package, its references under the names of their counterparts, and its curated counterpart."""
    decoy, model = PAIRS[request.param]
    return paired(decoy.parent, model.parent, COUNTERPARTS)


def paired(decoy: Path, model: Path, counterparts: Mapping[str, str]) -> tuple[SkillPackage, SkillPackage]:
    """Load two packages, the references of the first under the names that `counterparts` gives them."""
    package = load_package(decoy)
    renamed = {counterparts.get(name, name): text for name, text in package.references.items()}
    return replace(package, references=renamed), load_package(model)


def test_there_is_one_for_each_curated_package() -> None:
    assert set(NAMES) <= set(placebo())
    assert not set(placebo()) & set(curated())


def test_each_has_the_documents_of_its_counterpart(pair: tuple[SkillPackage, SkillPackage]) -> None:
    decoy, model = pair
    assert set(decoy.references) == set(model.references)


def test_each_document_is_as_long_and_laid_out_alike(pair: tuple[SkillPackage, SkillPackage]) -> None:
    decoy, model = pair
    assert len(decoy.description) == pytest.approx(len(model.description), rel=0.10)
    theirs = documents(model)
    for name, text in documents(decoy).items():
        other = theirs[name]
        assert len(text) == pytest.approx(len(other), rel=0.10 if name == SKILL_FILE else 0.05), name
        for what, pattern in LAYOUT.items():
            here, there = (len(re.findall(pattern, side, re.MULTILINE)) for side in (text, other))
            spare = SPARE_ROWS if (name, what) == (SKILL_FILE, "rows of tables") else 0
            assert 0 <= there - here <= spare, f"{name}: {here} {what}, its counterpart has {there}"


def test_no_document_holds_a_word_of_the_tasks(pair: tuple[SkillPackage, SkillPackage]) -> None:
    decoy, model = pair
    for name, text in documents(decoy).items():
        assert forbidden(text) == [], name
    # The list would see it: every curated document is full of such words.
    assert all(len(forbidden(text)) > 10 for text in documents(model).values())


def test_none_has_a_script_or_anything_else_beside_its_documents(pair: tuple[SkillPackage, SkillPackage]) -> None:
    decoy, _ = pair
    assert decoy.scripts == ()
    files = {path.relative_to(decoy.root).as_posix() for path in decoy.root.rglob("*") if path.is_file()}
    assert files == set(documents(load_package(decoy.root)))


def test_each_is_clean(pair: tuple[SkillPackage, SkillPackage]) -> None:
    assert lint(pair[0].root) == []
