"""What two ingredients are worth, alone, beside each other and together: documents and scripts, skills and code."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from finskillbench.analysis.intervals import Method, Weighting, estimate
from finskillbench.analysis.results import Results
from finskillbench.harness.conditions import Condition

INTERACTION = "interaction"
TOGETHER = "together"


@dataclass(frozen=True, slots=True)
class Factorial:
    """Two ingredients and the four conditions that have neither, the first, the second, and both."""

    first: str
    second: str
    conditions: tuple[Condition, Condition, Condition, Condition]

    @property
    def contrasts(self) -> dict[str, tuple[float, float, float, float]]:
        """Weights of the four conditions' scores, in their order.

        An ingredient's main effect, by its name, is the mean of what it adds alone and beside the other; the
        interaction is what both bring beyond the sum of what each brings alone (not halved, as in Montgomery, ch. 5).
        """
        return {
            self.first: (-0.5, 0.5, -0.5, 0.5),
            self.second: (-0.5, -0.5, 0.5, 0.5),
            INTERACTION: (1.0, -1.0, -1.0, 1.0),
            f"{self.first} alone": (-1.0, 1.0, 0.0, 0.0),
            f"{self.second} alone": (-1.0, 0.0, 1.0, 0.0),
            f"{self.first} beside {self.second}": (0.0, 0.0, -1.0, 1.0),
            f"{self.second} beside {self.first}": (0.0, -1.0, 0.0, 1.0),
            TOGETHER: (-1.0, 0.0, 0.0, 1.0),
        }


DOCUMENTS_AND_SCRIPTS = Factorial(
    "documents", "scripts", (Condition.NO_SKILL, Condition.DOCS_ONLY, Condition.SCRIPTS_ONLY, Condition.CURATED)
)
SKILLS_AND_CODE = Factorial(
    "skills", "code", (Condition.NO_SKILL, Condition.CURATED, Condition.CODE, Condition.CODE_CURATED)
)
_KEYS = ["model", "harness", "episode"]


def crossed(results: Results, factorial: Factorial) -> pl.DataFrame:
    """The episodes that have a score under all four conditions, with a column for each contrast.

    The columns are those of `pairs` without its scores; no line where a condition was not run.
    """
    neither, *others = (results.episodes.filter(pl.col("condition") == name.value) for name in factorial.conditions)
    joined = neither.drop("condition", "repeats").rename({"score": "_0"})
    for place, arm in enumerate(others, 1):
        scores = arm.select(*_KEYS, pl.col("score").alias(f"_{place}"))
        joined = joined.join(scores, on=_KEYS, how="inner", maintain_order="left")
    contrasts = {
        name: pl.sum_horizontal(weight * pl.col(f"_{place}") for place, weight in enumerate(weights))
        for name, weights in factorial.contrasts.items()
    }
    return joined.with_columns(**contrasts).drop("_0", "_1", "_2", "_3")


def effects(
    results: Results,
    factorial: Factorial,
    by: Sequence[str] = ("model", "harness"),
    method: Method = Method.T,
    weighting: Weighting = Weighting.MICRO,
) -> pl.DataFrame:
    """Every contrast of the four conditions with its clustered interval.

    Parameters
    ----------
    by : columns of `Results.episodes`, at least one, but `condition`. method, weighting : as in `estimate`.

    Returns
    -------
    The columns of `by`, `effect` (the names of `Factorial.contrasts`), and those of `estimate`. No line where no
    episode has all four conditions.
    """
    episodes = crossed(results, factorial)
    found: list[pl.DataFrame] = []
    for name, weights in factorial.contrasts.items():
        most = math.fsum(weight for weight in weights if weight > 0)
        lines = estimate(episodes, name, by, method, weighting, bounds=(-most, most))
        found.append(lines.select(*by, pl.lit(name).alias("effect"), pl.exclude(*by)))
    return pl.concat(found)
