"""A line of the published Hermes runs."""

from __future__ import annotations

import msgspec

from finskillbench.harness.entries import NO_ARGUMENTS, Entry
from finskillbench.reports.release.columns import Told
from finskillbench.reports.release.full import Count


class HermesUsage(msgspec.Struct, frozen=True):
    """Tokens; `prompt_tokens` is all of the input, cached ones included."""

    prompt_tokens: Count
    completion_tokens: Count
    cache_read_tokens: Count = 0
    reasoning_tokens: Count = 0
    estimated_cost_usd: float | None = None


class HermesRow(msgspec.Struct, frozen=True):
    """The fields that are used."""

    task_id: str
    skill_domain: str
    sub_task: str
    model: str
    condition: str
    harness: str
    score: float | None
    valid_json: bool
    turns: Count
    usage: HermesUsage
    latency_seconds: float
    difficulty: str = "unknown"
    scoring_method: str = ""
    scorer_details: msgspec.Raw = msgspec.Raw(b"{}")
    scoring_error: str | None = None
    completed: bool = True
    partial: bool = False
    tool_calls_total: Count = 0
    error: str | None = None

    def told(self) -> Told:
        """The row by our names; an episode that the harness did not finish is incomplete."""
        unfinished = "incomplete" if self.partial or not self.completed else ""
        return Told(
            model=self.model,
            harness=self.harness,
            arguments=Entry(self.model, NO_ARGUMENTS).under(self.harness).arguments,
            domain=self.skill_domain,
            condition=self.condition,
            task_id=self.task_id,
            sub_task=self.sub_task,
            difficulty=self.difficulty,
            score=self.score,
            valid_json=self.valid_json,
            scoring_method=self.scoring_method,
            scoring_details=bytes(self.scorer_details).decode(),
            turns=self.turns,
            total_input_tokens=self.usage.prompt_tokens,
            total_cached_tokens=self.usage.cache_read_tokens,
            total_output_tokens=self.usage.completion_tokens,
            total_reasoning_tokens=self.usage.reasoning_tokens,
            cost_usd=self.usage.estimated_cost_usd,
            tool_calls=self.tool_calls_total,
            latency_seconds=self.latency_seconds,
            error=self.error or self.scoring_error,
            said=f"{self.error or ''} {'' if self.valid_json else unfinished}",
        )
