"""Independent random streams of one seed, so that a name's draws do not depend on how many names there are."""

from enum import IntEnum

import numpy as np


class Stream(IntEnum):
    """What a stream is for; the numbers are part of the format: changing one changes every collection."""

    FACTORS = 1
    MACRO = 2
    NAMES = 3
    COMPANY = 4
    RETURNS = 5
    TRADING = 6
    CAPS = 7
    SECTORS = 8
    FILINGS = 9


def generator(seed: int, stream: Stream, index: int = 0) -> np.random.Generator:
    """The PCG64 generator of one purpose and, where there is one, of one name."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, int(stream), index])))
