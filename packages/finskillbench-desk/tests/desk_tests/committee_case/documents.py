"""Documents for tests: an invented vocabulary, and one edition's guidelines."""

from __future__ import annotations

from datetime import date
from functools import lru_cache

import numpy as np

from finskillbench_desk.committee_case.documents.amending import draw_guidelines
from finskillbench_desk.committee_case.documents.drafting import rotation
from finskillbench_desk.committee_case.documents.rendering import Guidelines
from finskillbench_desk.committee_case.documents.vocabulary import Vocabulary

WORDS = Vocabulary({f"IS{i:02d}": f"Issuer {i:02d} Holdings" for i in range(24)})
AS_OF = date(2024, 6, 28)


@lru_cache(maxsize=120)
def document(number: int, seed: int = 0) -> Guidelines:
    """The guidelines of one episode."""
    return draw_guidelines(np.random.default_rng([seed, number]), WORDS, AS_OF, requested=rotation(number))
