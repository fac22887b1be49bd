"""Find inconsistencies in a long table of statements.

Payload: statements (company, quarter, version, lines), layout (identities: total to its parts with their signs);
growth_line, "net_revenue" by default.
Result: broken (company, quarter, total, its stated value and the sum of its parts), restated (companies with several
rows for a quarter, and the lines that differ most), fastest_growth over a year, units; lists are cut, counts are not;
used.
"""

from typing import Any

from finskillbench.sandbox.script import cli
from finskillbench_desk.engines.screening.checks import statement_checks


def main(payload: dict[str, Any]) -> dict[str, Any]:
    """Identities, versions, growth."""
    return statement_checks(payload)


if __name__ == "__main__":
    cli(main)
