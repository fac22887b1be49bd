"""Days to liquidate each holding, and the share of NAV that can be sold within 1, 5 and 20 trading days.

Payload: portfolio, average_daily_volume_usd, participation_rate.
Result: days_to_liquidate (ticker to trading days), ladder (within_1_day, within_5_days, within_20_days).
"""

import math
from typing import Any

from finskillbench.sandbox.script import cli

STEPS = {"within_1_day": 1, "within_5_days": 5, "within_20_days": 20}


def main(payload: dict[str, Any]) -> dict[str, Any]:
    """Measure the portfolio as it stands."""
    nav, rate = payload["portfolio"]["total_nav"], payload["participation_rate"]
    sizes = {row["symbol"]: abs(row["weight"]) for row in payload["portfolio"]["holdings"]}
    a_day = {name: rate * payload["average_daily_volume_usd"][name] / nav for name in sizes}
    return {
        "days_to_liquidate": {name: size / a_day[name] for name, size in sizes.items()},
        "ladder": {
            step: math.fsum(min(size, days * a_day[name]) for name, size in sizes.items())
            for step, days in STEPS.items()
        },
    }


if __name__ == "__main__":
    cli(main)
