"""Convert log Bayes factors to probabilities.

Payload: log_bayes_factors (name to natural logarithm), base_rate between 0 and 1; weight, 1 by default, by which the
logarithms are multiplied where they are trusted less.
Result: calibrated by name; their sum, and base_rate_times_number, to which it is close where the evidence is sound;
used.
"""

from typing import Any

from finskillbench.sandbox.script import cli
from finskillbench_desk.engines.screening.task import calibrate


def main(payload: dict[str, Any]) -> dict[str, Any]:
    """Bayes' theorem in log odds."""
    return calibrate(payload)


if __name__ == "__main__":
    cli(main)
