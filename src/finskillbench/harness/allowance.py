"""What an episode may take, and what is left of it while a loop plays it: turns, and tokens that the model generates.

A token budget counts what is generated, over all calls of an episode, reasoning included; input is not counted. A
model is then free in how it spends its tokens, on thinking or on further turns, and two models with the same budget
have cost as much as their providers charge for the same output. Input is the harness's doing as much as the model's:
a skill's documents would be paid for out of the thought that they are to help.

Whoever plays episodes asks a `Remaining`, in our loop or in another: before a call `is_spent` and `tokens`, the limit
of the call; after it `take` and `is_overdrawn`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from finskillbench.harness.model import Turn
from finskillbench.harness.prompts.tokens import output_tokens

if TYPE_CHECKING:  # the registry loads every numerical library, which starting a command must not pay for
    from finskillbench.domains.interactive import EpisodeBudget

MAX_TURNS = 12
"""Model calls of an episode unless it is said otherwise: the paper's."""
LEAST_TOKENS = 16
"""No provider takes a lower limit of an answer, so that with less than this no call can be made."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """What one episode may take: `turns` model calls, `tokens` generated over all of them (None: no limit), and
    `data_calls` of tools that read data (None: no limit)."""

    turns: int = MAX_TURNS
    tokens: int | None = None
    data_calls: int | None = None

    @property
    def arguments(self) -> Mapping[str, int | None]:
        """What of it tells entries of a run apart: nothing where it is the paper's."""
        return {"turns": None if self.turns == MAX_TURNS else self.turns, "token_budget": self.tokens}

    def within(self, budget: EpisodeBudget | None) -> Allowance:
        """The same for an episode of a subtask that states a budget; turns and tokens that a run names come first."""
        if budget is None:
            return self
        turns = budget.turns if self.turns == MAX_TURNS else self.turns
        return Allowance(turns, self.tokens or budget.output_tokens, budget.data_calls)


FULL = Allowance()
"""The paper's twelve turns, and as many tokens as they take."""


class Remaining:
    """What is left of an allowance; `tokens`, None without a limit, falls below zero where a provider kept none."""

    def __init__(self, allowance: Allowance) -> None:
        self.turns, self.tokens = allowance.turns, allowance.tokens

    @property
    def is_spent(self) -> bool:
        """Whether too few tokens are left for another call."""
        return self.tokens is not None and self.tokens < LEAST_TOKENS

    @property
    def is_overdrawn(self) -> bool:
        """Whether more was generated than was allowed: what came with the last call then counts for nothing."""
        return self.tokens is not None and self.tokens < 0

    def take(self, turn: Turn) -> bool:
        """Count a call that was answered; False where its tokens, which nobody told, had to be estimated."""
        told = turn.usage.output_tokens
        estimated = 0 if told else output_tokens(turn)
        self.turns -= 1
        if self.tokens is not None:
            self.tokens -= told or estimated
        return not estimated
