"""Measure how much better stated signatures explain each company's window than no signature.

Payload: as `ratio_innovations.py`, and signatures, each with name, weight, profile (multiples from the first quarter
on), shifts (ratio to standard deviations of the usual company's innovations) and size_spread: the size of the shifts is
normal with mean size (1 by default) and this standard deviation; and ratio_spread, the standard deviation of a case's
shift about that in each ratio, in the company's standard deviations (0 by default). Any quarter of the window may be
the first.
Result: rows of company, the log Bayes factor of the weighted signatures together against none (natural logarithm,
no base rate in it), the name that contributes most, and its share: signatures of one name are one kind, stated more
than once, and add up. Level and volatility are estimates.
used is as in `ratio_innovations.py`; an unknown key is refused.
"""

from typing import Any

from finskillbench.sandbox.script import cli
from finskillbench_desk.engines.screening.task import signature_match


def main(payload: dict[str, Any]) -> dict[str, Any]:
    """Marginal likelihoods over start and size."""
    return signature_match(payload)


if __name__ == "__main__":
    cli(main)
