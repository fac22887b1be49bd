"""Compute innovations of log ratios, in standard deviations of each company.

Payload: statements (company, quarter, version, lines); versions, "first" or "last" where a quarter has several rows;
ratios, each with name, numerator, denominator, persistence and, where known, innovation_sd and growth_effect;
growth_line, whose log change over the quarter the growth_effect multiplies; industry_paths and seasons with companies
and table_unit (to natural logarithms); divide (company, quarter, lines, by); known_changes (company, quarter from
which, effects by ratio in logarithms); new_levels (company, quarter from which its level is another); year_ends
(company, quarter, month); window, the last quarters that estimates leave out; freedom, degrees of freedom by which a
company's variance is shrunk to the usual one; correlation of innovations, a matrix in the order of ratios, estimated
where it is absent. Only stated corrections are applied; an unknown key, and a correction that corrects nothing, is
refused.
Result: innovation_sd and correlation, volatility by company (1 is the usual one), mean_square_in_window by company
(about 1 where nothing happens), and the largest innovations of the window; used: the choices as
applied, and how many corrections of each kind were applied.
"""

from typing import Any

from finskillbench.sandbox.script import cli
from finskillbench_desk.engines.screening.task import ratio_innovations


def main(payload: dict[str, Any]) -> dict[str, Any]:
    """Ratios, corrections, autoregression."""
    return ratio_innovations(payload)


if __name__ == "__main__":
    cli(main)
