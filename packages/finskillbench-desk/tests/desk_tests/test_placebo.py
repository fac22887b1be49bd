"""The placebo packages of the desk: checked like those of the core."""

from __future__ import annotations

import pytest
from tests.harness.skills.test_placebo import (  # noqa: F401 - run with the pairs of this module
    paired,
    test_each_document_is_as_long_and_laid_out_alike,
    test_each_has_the_documents_of_its_counterpart,
    test_each_is_clean,
    test_no_document_holds_a_word_of_the_tasks,
    test_none_has_a_script_or_anything_else_beside_its_documents,
)

from finskillbench.harness.skills.loader import SkillPackage
from finskillbench_desk.domain import DOMAIN, SKILLS

COUNTERPARTS = {
    "references/long-walls.md": "references/trading.md",
    "references/heaps.md": "references/sources.md",
    "references/autumn-round.md": "references/books.md",
    "references/heather-moor.md": "references/mandates.md",
    "references/survey.md": "references/screening.md",
    "references/leat.md": "references/data.md",
    "references/wheel.md": "references/search.md",
    "references/flood.md": "references/time.md",
    "references/stones.md": "references/estimation.md",
    "references/millers.md": "references/archives.md",
    "references/grinding.md": "references/deciding.md",
}


@pytest.fixture(params=zip(DOMAIN.placebos, SKILLS, strict=True), ids=[folder.name for folder in DOMAIN.placebos])
def pair(request: pytest.FixtureRequest) -> tuple[SkillPackage, SkillPackage]:
    """A placebo package, its references under the names of their counterparts, and its curated counterpart."""
    return paired(*request.param, COUNTERPARTS)
