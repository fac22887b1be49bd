"""Splits of tasks into training, validation and test, by seed and by template.

Editions of seeds below `FIRST_TRAINING_SEED` are for tests, those of other seeds for training and validation. A
template is what episodes of one subtask share: a company, mandate, scenario, set of limits, date or structure. One in
five is reserved for tests: editions of training seeds hold none of its episodes, and no reserved company.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from enum import StrEnum
from itertools import count

FIRST_TRAINING_SEED = 1_000_000
_RESERVED = 5
"""One template in this many is reserved."""
_VALIDATION = 10
"""One seed in this many, from `FIRST_TRAINING_SEED` on, is for validation."""
_SALT = "874"
"""Chosen so that every subtask has reserved templates, and none has more than a third."""


class Split(StrEnum):
    """Use of a task: `test_seed` has another seed than training, `test_template` also another template."""

    TRAIN = "train"
    VALIDATION = "validation"
    TEST_SEED = "test_seed"
    TEST_TEMPLATE = "test_template"


def is_for_training(seed: int | None) -> bool:
    """Return True for the seeds of training and validation; imported releases have no seed."""
    return seed is not None and seed >= FIRST_TRAINING_SEED


def is_reserved(template: str) -> bool:
    """Return True if a template, such as the symbol of a company, is reserved for tests."""
    return hashlib.sha256(f"{_SALT}{template}".encode()).digest()[0] % _RESERVED == 0


def split_of(seed: int | None, template: str) -> Split:
    """Return the split of the tasks of a template in the edition of a seed."""
    if is_for_training(seed):
        return Split.VALIDATION if seed is not None and seed % _VALIDATION == 0 else Split.TRAIN
    return Split.TEST_TEMPLATE if is_reserved(template) else Split.TEST_SEED


def seeds_of(split: Split) -> Iterator[int]:
    """Yield the seeds of editions that hold tasks of a split, without end for training and validation."""
    if split in (Split.TEST_SEED, Split.TEST_TEMPLATE):
        yield from range(FIRST_TRAINING_SEED)
    else:
        wanted = split is Split.VALIDATION
        yield from (seed for seed in count(FIRST_TRAINING_SEED) if (seed % _VALIDATION == 0) is wanted)
