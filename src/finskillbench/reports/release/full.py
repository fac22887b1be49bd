"""A line of `results_all.jsonl`: the paper's full run, in its own harness."""

from __future__ import annotations

from datetime import date
from typing import Annotated

import msgspec

from finskillbench.reports.release.columns import Told

Count = Annotated[int, msgspec.Meta(ge=0)]


class FullRow(msgspec.Struct, frozen=True):
    """The fields that are used; `episodes` are turns."""

    model: str
    domain: str
    condition: str
    task_id: str
    sub_task: str
    difficulty: str
    score: float
    valid_json: bool
    scoring_method: str
    episodes: Count
    total_input_tokens: Count
    total_output_tokens: Count
    latency_seconds: float
    litellm_model: str = ""
    as_of_date: date | None = None
    run_idx: Count = 0
    scoring_details: msgspec.Raw = msgspec.Raw(b"{}")
    skills_loaded: tuple[str, ...] = ()
    tool_calls_log: tuple[msgspec.Raw, ...] = ()
    error: str | None = None

    def told(self) -> Told:
        """The row by our names."""
        details = bytes(self.scoring_details).decode()
        provider, named, _ = self.litellm_model.partition("/")
        return Told(
            model=self.model,
            provider=provider if named else None,
            domain=self.domain,
            condition=self.condition,
            task_id=self.task_id,
            sub_task=self.sub_task,
            difficulty=self.difficulty,
            as_of_date=self.as_of_date,
            run_idx=self.run_idx,
            score=self.score,
            valid_json=self.valid_json,
            scoring_method=self.scoring_method,
            scoring_details=details,
            turns=self.episodes,
            total_input_tokens=self.total_input_tokens,
            total_output_tokens=self.total_output_tokens,
            skills_loaded=list(self.skills_loaded),
            tool_calls=len(self.tool_calls_log),
            latency_seconds=self.latency_seconds,
            error=self.error,
            said=f"{self.error or ''} {_error_in(self.scoring_details)}",
        )


class _Details(msgspec.Struct):
    error: object = None


def _error_in(details: msgspec.Raw) -> str:
    """What a scorer said of a submission that it could not score."""
    try:
        found = msgspec.json.decode(details, type=_Details)
    except msgspec.ValidationError:  # no object
        return ""
    return str(found.error or "")
