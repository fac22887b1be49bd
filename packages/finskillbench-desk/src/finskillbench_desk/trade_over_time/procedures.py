"""How programs play an episode: the reference through the primitives, a textbook's answer, and one that falls for all.

Each is a generator of turns, played by the real loop: it sees what the tools return and nothing else.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

from finskillbench.domains.interactive import Ask
from finskillbench.episode import JsonObject
from finskillbench_desk.trade_over_time.second import Memo, heard, read_memo
from finskillbench_desk.trade_over_time.world import DECISIONS, HALF_LIVES, RETURN_UNIT, SIGNAL_UNIT

Playing = Generator[tuple[Ask, ...], list[JsonObject], JsonObject]
_SCRIPTS = "signal-trading/scripts"
_NO_COST = 1e6
"""A clip so large that trades cost next to nothing: how a textbook without costs calls the same script."""


@dataclass
class _Plan:
    """What a program makes of the memo and the history; the mistakes are what is left at its default."""

    memo: Memo
    vendors: dict[str, str] = field(default_factory=dict[str, str])
    coefficient: dict[str, float] = field(default_factory=dict[str, float])
    half_lives: dict[str, float] = field(default_factory=dict[str, float])
    horizon: int = DECISIONS
    clip: float = 1.0
    flows: bool = False
    foresight: bool = False
    ages: bool = False
    ends: bool = False
    listens: bool = False

    def hear(self, notices: list[str]) -> bool:
        """Whether notices are heeded, and there are any."""
        if not self.listens or not notices:
            return False
        self.memo = heard(self.memo, notices)
        return True

    def worth(self) -> dict[str, float]:
        """Coefficients, with the chance that an edge holds: that of the memo, or what notices say of its vendor."""
        if not self.ends:
            return self.coefficient
        holds = {vendor: float(found) for vendor, found in self.memo.found.items()}
        return {
            name: worth * holds.get(self.vendors[name], self.memo.holds) for name, worth in self.coefficient.items()
        }

    def target(self, decision: int, age: int) -> Ask:
        """The call for the step of a decision."""
        memo = self.memo
        days = range(decision, min(DECISIONS, decision + self.horizon - 1) + 1)
        limit = max(memo.limit_from - decision + 1, 1)
        binds_now = decision >= memo.limit_from
        return Ask(
            "run_skill_script",
            {
                "script_path": f"{_SCRIPTS}/decay_target.py",
                "input_data": {
                    "coefficient": self.worth(),
                    "half_lives": self.half_lives,
                    "signal_unit": SIGNAL_UNIT,
                    "signals_age": age if self.ages else 0,
                    "aversion": [memo.aversion_at(day) for day in days],
                    # The limit is on the capital of the day, which the order is refused without.
                    "capital": [memo.capital_at(day) if self.flows or binds_now else memo.capital for day in days],
                    "impact_clip": self.clip / memo.tariff,
                    "limit_from": limit if binds_now or (self.foresight and limit <= len(days)) else None,
                },
                "inject_task_fields": ["names", "factors", "current", "signals"],
            },
        )


def _worth(memo: Memo, half_lives: dict[str, float], vendors: dict[str, str], method: str, *, believes: bool) -> Ask:
    """The call that says what the signals are worth."""
    late = (
        {}
        if memo.late is None or believes
        else {name: memo.late[1] for name in vendors if vendors[name] == memo.late[0]}
    )
    return Ask(
        "run_skill_script",
        {
            "script_path": f"{_SCRIPTS}/signal_worth.py",
            "input_data": {
                "method": method,
                "groups": vendors,
                "prior_shape": {name: (1 - 0.5 ** (1 / weeks)) ** 0.5 for name, weeks in half_lives.items()},
                "from_week": late,
                "signal_unit": SIGNAL_UNIT,
                "return_unit": RETURN_UNIT,
            },
            "inject_task_fields": ["history", "signals", "names", "factors"],
        },
    )


def _output(result: JsonObject) -> Any:
    return result["output"]


def _opening() -> Generator[tuple[Ask, ...], list[JsonObject], tuple[Memo, dict[str, str], dict[str, float]]]:
    """Read the memo, who sells what, and the half-lives: those told, the others measured."""
    read = yield (
        Ask("load_skill", {"skill_name": "signal-trading"}),
        Ask("get_task_data", {"field": "memo"}),
        Ask("get_task_data", {"field": "signals"}),
        Ask(
            "run_skill_script",
            {
                "script_path": f"{_SCRIPTS}/signal_decay.py",
                "input_data": {"signal_unit": SIGNAL_UNIT, "return_unit": RETURN_UNIT},
                "inject_task_fields": ["history", "signals"],
            },
        ),
    )
    memo, offers = read_memo(read[1]["value"]), read[2]["value"]
    measured: dict[str, Any] = _output(read[3])["signals"]
    half_lives: dict[str, float] = {}
    for name, offer in offers.items():
        told, shown = offer["half_life"], measured[name]["autocorrelation"]
        nearest = min(HALF_LIVES, key=lambda weeks: abs(0.5 ** (1 / weeks) - shown))
        half_lives[name] = nearest if told is None else told
    return memo, {name: offer["vendor"] for name, offer in offers.items()}, half_lives


def _decide(plan: _Plan) -> Playing:
    """All decisions: an order and the step of the next decision share a turn, unless the file turns out to be old or
    something has become known.
    """
    age = 0
    results = yield (plan.target(1, age),)
    for decision in range(1, DECISIONS + 1):
        order = Ask("advance", {"trades": {name: step for name, step in _output(results[-1])["step"].items() if step}})
        if decision == DECISIONS:
            yield (order,)
            break
        guess = age + 1 if age else 0
        results = yield (order, plan.target(decision + 1, guess))
        moved = results[0]
        age = moved["week"] - moved["signals_of_week"]
        if plan.hear(moved.get("notices", [])) or (age != guess and plan.ages):
            results = yield (plan.target(decision + 1, age),)
    return {"decisions": DECISIONS}


def reference() -> Playing:
    """Empirical Bayes by vendor, the memo's chance that an edge holds or what is found out of it, then the plan over
    all weeks that are left, with all that memo and notices say.
    """
    memo, vendors, half_lives = yield from _opening()
    results = yield (_worth(memo, half_lives, vendors, "group_variance", believes=False),)
    plan = _Plan(memo, vendors, _output(results[0])["coefficient"], half_lives, clip=memo.clip)
    plan.flows, plan.foresight, plan.ages, plan.ends, plan.listens = True, True, True, True, True
    return (yield from _decide(plan))


def textbook() -> Playing:
    """Least squares on the history as it is, and all the way to the best of one week."""
    memo, vendors, half_lives = yield from _opening()
    results = yield (_worth(memo, half_lives, vendors, "least_squares", believes=True),)
    coefficient = _output(results[0])["coefficient"]
    plan = _Plan(memo, vendors, coefficient, half_lives, horizon=1, clip=_NO_COST, flows=True)
    return (yield from _decide(plan))


def trapped() -> Playing:
    """As the reference, but every trap is fallen for.

    What was filled in afterwards is believed and worthless signals are trusted, edges are taken to hold, impacts are
    taken for those of one million and old files for new ones, flows and notices are not heeded, and the limit only once
    it binds.
    """
    memo, vendors, half_lives = yield from _opening()
    results = yield (_worth(memo, half_lives, vendors, "least_squares", believes=True),)
    return (yield from _decide(_Plan(memo, vendors, _output(results[0])["coefficient"], half_lives)))


PROCEDURES = {"reference": reference, "textbook": textbook, "trapped": trapped}
