"""What each column of `rows.parquet` holds: written into its Parquet fields, and listed in `docs/rows.md`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Column(NamedTuple):
    """Unit (empty: none) and one phrase of meaning."""

    unit: str
    meaning: str

    def metadata(self) -> dict[str, str]:
        """What is written into the Parquet field."""
        return {"unit": self.unit, "meaning": self.meaning}


_TIMES = "the three times add up to ended - started"
COLUMNS: Mapping[str, Column] = {
    "model": Column("", "name of the model, program or agent"),
    "harness": Column("", "whose loop it was: finskillbench (ours), hermes, python, mcp, handout, harbor"),
    "provider": Column("", "who served the model; null for programs and agents"),
    "arguments": Column("JSON", "what tells this entry of the model from others, such as seed, max_tokens and harness"),
    "domain": Column("", "field of work of the episode"),
    "condition": Column("", "arm: which skills the agent was given"),
    "task_id": Column("", "name of the episode in the edition"),
    "sub_task": Column("", "kind of episode"),
    "difficulty": Column("", "easy, medium or hard"),
    "cluster": Column("", "what the episode shares with others of its subtask: a market date, a mandate, a company"),
    "as_of_date": Column("date", "day as of which the episode is asked"),
    "run_idx": Column("", "repeat of the episode, from 0"),
    "score": Column("0 to 1", "under score_profile; null under status error and unjudged, never a zero"),
    "score_profile": Column("", "first of certified, strict and paper that the subtask defines"),
    "scores": Column("0 to 1", "under each profile; null where it is not defined (paper may exceed 1)"),
    "status": Column("", "how the episode came out: scored, or why not"),
    "valid_json": Column("", "whether the answer was JSON of the right shape"),
    "scoring_method": Column("", "verification method of the subtask"),
    "scoring_details": Column("JSON", "what the scorers measured"),
    "signed": Column("", "whether every part of the case is right; null where a case has no parts"),
    "traps": Column("", "kind@place=avoided, fallen or unknown for each trap and control of the episode"),
    "episodes": Column("calls", "the published name of turns"),
    "turns": Column("calls", "answered model calls; of an agent that does not tell them, its tool calls"),
    "total_input_tokens": Column(
        "tokens", "input of all answered calls, cached ones included; null where any is unknown"
    ),
    "total_cached_tokens": Column(
        "tokens", "part of the input that came from the provider's cache; null where unknown"
    ),
    "total_output_tokens": Column("tokens", "all that was generated, reasoning included; null where any is unknown"),
    "total_reasoning_tokens": Column("tokens", "part of the output that was reasoning; null where unknown"),
    "cost_usd": Column("US dollars", "price of the answered calls, reused ones included; null where it is not known"),
    "reused_calls": Column("calls", "answered calls whose answer came from the response cache"),
    "saved_usd": Column("US dollars", "part of cost_usd that was not paid, since answers were reused"),
    "served_models": Column("", "names under which the provider says it answered"),
    "skills_loaded": Column("", "skills of which the agent read a document, in order"),
    "scripts_run": Column("", "scripts of skills that ran, in order"),
    "tool_calls": Column("calls", "tool calls that the agent made, also those after its submission"),
    "data_calls": Column("calls", "calls that read data: get_task_data, read_table, query_xbrl"),
    "error": Column("", "words of the failure that ended the episode"),
    "error_cause": Column("", "cause of that failure, by the table of failures"),
    "incidents": Column("", "everything that went wrong, in order, by the table of failures"),
    "retries": Column("calls", "failed calls that were tried again"),
    "started": Column("UTC", "when the episode began; null where nobody looked at a clock"),
    "ended": Column("UTC", "when it was over"),
    "latency_seconds": Column("seconds", f"answered model calls and tools; of an agent all of its time; {_TIMES}"),
    "queue_seconds": Column("seconds", "waiting for a place under a rate limit, for the budget or for this process"),
    "retry_seconds": Column("seconds", "failed calls, and the waits before they were tried again"),
    "edition": Column("SHA-256", "of the edition"),
    "mount": Column("SHA-256", "of the arm with the packages that were given"),
    "code_version": Column("", "version of this package"),
    "commit": Column("Git", "commit of the code that ran; -dirty behind it where files differed; null if not known"),
    "scorer_version": Column("SHA-256", "first 12 digits, over the code that scores: scores of one are comparable"),
    "answer_digest": Column("SHA-256", "of the submitted text; null where there was none"),
    "digest": Column("SHA-256", "over the columns that decide a table: an altered row no longer fits it"),
}
"""Every column, in the order of the table."""
