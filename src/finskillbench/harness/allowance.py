"""Limits of an episode and their remainder: turns, and tokens that the model generates.

A token budget covers all generated tokens, reasoning included. It excludes input, which the harness largely determines,
for example by a skill's documents.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from finskillbench.harness.model import Turn
from finskillbench.harness.prompts.tokens import output_tokens

if TYPE_CHECKING:  # the registry imports every numerical library, which is slow
    from finskillbench.domains.interactive import EpisodeBudget

MAX_TURNS = 12
"""Default number of model calls of an episode, from the paper."""
MIN_TOKENS = 16
"""Lowest output limit that all providers accept; no call is possible with fewer tokens."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """Limits of one episode: model calls, generated tokens and calls that read data (None: no limit)."""

    turns: int = MAX_TURNS
    tokens: int | None = None
    data_calls: int | None = None

    @property
    def arguments(self) -> Mapping[str, int | None]:
        """Return the limits that identify entries of a run; defaults are None."""
        return {"turns": None if self.turns == MAX_TURNS else self.turns, "token_budget": self.tokens}

    def within(self, budget: EpisodeBudget | None) -> Allowance:
        """Apply a subtask's budget; turns and tokens set by the run have precedence."""
        if budget is None:
            return self
        turns = budget.turns if self.turns == MAX_TURNS else self.turns
        return Allowance(turns, self.tokens or budget.output_tokens, budget.data_calls)


DEFAULT_ALLOWANCE = Allowance()


class Remaining:
    """Remainder of an allowance; `tokens` is None without a limit, negative if a provider exceeded it."""

    def __init__(self, allowance: Allowance) -> None:
        self.turns, self.tokens = allowance.turns, allowance.tokens

    @property
    def is_spent(self) -> bool:
        """Return True if too few tokens remain for another call."""
        return self.tokens is not None and self.tokens < MIN_TOKENS

    @property
    def is_overdrawn(self) -> bool:
        """Return True if more tokens were generated than allowed; the last call is then void."""
        return self.tokens is not None and self.tokens < 0

    def take(self, turn: Turn) -> bool:
        """Count an answered call; return False if its tokens were not reported and had to be estimated."""
        reported = turn.usage.output_tokens
        estimated = 0 if reported else output_tokens(turn)
        self.turns -= 1
        if self.tokens is not None:
            self.tokens -= reported or estimated
        return not estimated
