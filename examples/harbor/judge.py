"""Rewards that are scores, while Harbor runs: a verifier that judges beside Harbor, never in a task's container.

With finskillbench in Harbor's interpreter and this folder on its path:

    harbor run -p tasks --agent AGENT --model MODEL --verifier judge:Judge --verifier-kwarg edition=editions/seven

The edition with its truth stays on this side. What an agent sees and what Harbor keeps is the same as without, so that
`finskillbench score EDITION tasks --jobs JOB` gives the same scores, as rows.
"""

import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

from harbor.models.verifier.result import VerifierResult
from harbor.verifier.base import BaseVerifier

from finskillbench import load_edition
from finskillbench.edition import Edition
from finskillbench.episode import Episode, Submission
from finskillbench.integrations.task_files.answers import read_answer
from finskillbench.runs.verdicts import judge


@lru_cache(maxsize=1)
def _open(path: str) -> tuple[Edition, dict[str, Episode]]:
    edition = load_edition(path)
    return edition, {episode.task_id: episode for episode in edition.episodes()}


class Judge(BaseVerifier):
    """Judges the answer of a trial; its rewards are the scores by profile, the best that can be proved as `reward`."""

    def __init__(self, *, edition: str, **given: Any) -> None:
        super().__init__(**given)
        self.edition = edition

    async def verify(self) -> VerifierResult:
        """Fetch the answer and judge it; one that is missing, or no plain file, is none."""
        edition, episodes = _open(self.edition)
        told = self.task.config.metadata
        if told["edition"] != edition.digest:
            raise ValueError(f"handed out of edition {told['edition'][:12]}, not of {self.edition}")
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder) / "answer.json"
            try:
                await self.environment.download_file("/workspace/answer.json", place)
            except Exception as error:  # noqa: BLE001 - each kind of environment has its own
                self.logger.info("no answer: %s", error)
            text = read_answer(place)
        submission = Submission(told["task_id"], text, "no_answer" if text is None else "submitted")
        episode = episodes[told["task_id"]]
        verdict = judge(submission, edition.truth(episode.task_id), edition.full_input(episode))
        scores = {profile.value: score for profile, score in verdict.scores.items()}
        return VerifierResult(rewards={**scores, "reward": scores.get("certified", scores.get("strict", 0.0))})
