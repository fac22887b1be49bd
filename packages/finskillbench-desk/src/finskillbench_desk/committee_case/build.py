"""The tasks of the committee case: what an agent sees of each, what is true, and its proof."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, cast

from finskillbench.domains.building import BuildContext, Task
from finskillbench.domains.tables import reference
from finskillbench.episode import Episode, Truth
from finskillbench.errors import InputError
from finskillbench_desk.committee_case.answer import CommitteeInput
from finskillbench_desk.committee_case.draw import Case, draw_case, rates_of
from finskillbench_desk.committee_case.judging.facts import instrument_json
from finskillbench_desk.committee_case.ledger.case import LEAST_ISSUERS
from finskillbench_desk.committee_case.ledger.frames import tables
from finskillbench_desk.committee_case.ledger.nouns import Ledger
from finskillbench_desk.committee_case.rules.judging import withheld
from finskillbench_desk.committee_case.words import CONVENTIONS, VALUATION, prompt
from finskillbench_desk.engines.books.figures import figures
from finskillbench_desk.engines.guidelines.cure import after
from finskillbench_desk.engines.guidelines.language import rule_json
from finskillbench_desk.engines.guidelines.parsing import SCHEMA
from finskillbench_desk.market import Listed as Member

NAME, PREFIX = "committee_case", "dk_cc"
EPISODES = 40
TIERS = ("easy", "medium", "hard")


def build(context: BuildContext, objects: tuple[Member, ...]) -> Iterator[Task]:
    """Forty cases over the month-ends of the edition, tiers in turn; `objects` are the names of the desk's market."""
    panels = context.panels
    market = {each.symbol for each in objects}
    dates = [day for day in panels.month_ends if len({*panels.symbols_at(day)} | market) >= LEAST_ISSUERS]
    if not dates:
        context.notes.append(f"{NAME}: no episodes: a case needs {LEAST_ISSUERS} issuers with prices on one month-end.")
        return
    for number in range(context.most(EPISODES)):
        rng = context.generator("desk", NAME, number)
        day, tier = dates[number % len(dates)], TIERS[number % len(TIERS)]
        try:
            yield task_of(draw_case(panels, objects, day, tier, number, rng), number)
        except InputError as error:
            context.notes.append(str(error))


def task_of(case: Case, number: int) -> Task:
    """One case as a task."""
    ledger = case.world.ledger
    task_id = f"{PREFIX}_{ledger.as_of}_{number:02d}"
    frames = tables(ledger)
    task_input: CommitteeInput = {
        "as_of": ledger.as_of.isoformat(),
        "documents": documents(case),
        **{name: reference(task_id, name, frame) for name, frame in frames.items()},
        "cash_balances": dict(sorted(ledger.balances.items())),
        "fx": {name: rate for name, rate in ledger.fx.items() if name != "GBX"},
        "quarter_to_date": {
            "purchases": case.book.trading.used_purchases,
            "sales": case.book.trading.used_sales,
        },
        "conventions": CONVENTIONS,
    }  # pyright: ignore[reportAssignmentType] - the tables are those that the type names
    episode = Episode(
        task_id, "desk", NAME, ledger.as_of, case.tier, cast("Any", task_input), prompt(ledger.as_of.isoformat())
    )
    expected = expected_of(case)
    truth = Truth(task_id, NAME, expected, known(case), proof_of(case))
    return Task(episode, truth, certificate(case), tables=frames)


def documents(case: Case) -> dict[str, str]:
    """The documents of a case by name."""
    return {"guidelines": case.guidelines.text, "valuation": VALUATION, "rule_language": SCHEMA}


def expected_of(case: Case) -> dict[str, Any]:
    """The true answer."""
    holdings, trading = case.world.holdings, case.book.trading
    vendor = vendor_of(case.world.ledger)
    replaced: list[dict[str, Any]] = []
    for issuer, given in sorted(vendor.items()):
        if given["sector"] != holdings.sectors[issuer]:
            replaced.append({"issuer": issuer, "field": "sector", "value": holdings.sectors[issuer]})
        if abs(given["shares"] - holdings.shares[issuer]) > 1e-3 * holdings.shares[issuer]:
            replaced.append({"issuer": issuer, "field": "shares_outstanding", "value": holdings.shares[issuer]})
    return {
        "rules": [rule_json(rule) for rule in case.rules],
        "book": {
            "positions": [
                {"security": name, "quantity": units, "value": units * holdings.prices[name]}
                for name, units in sorted(holdings.quantities.items())
            ],
            "cash": holdings.cash,
            "pending_purchases": trading.pending_purchases,
            "pending_sales": trading.pending_sales,
            "replaced": replaced,
        },
        "breaches": list(case.breaches),
        "excluded": list(case.excluded),
        "trades": [{"security": name, "value": value} for name, value in sorted(case.cure.trades.items())],
        "figures": figures(after(case.book, case.cure.trades), case.risk),
    }


def vendor_of(ledger: Ledger) -> dict[str, dict[str, Any]]:
    """What the reference file says of each issuer."""
    return {name: {"sector": row.sector, "shares": row.shares} for name, row in ledger.listed.items()}


def known(case: Case) -> dict[str, Any]:
    """What a judge needs beside the true answer."""
    world, ledger = case.world, case.world.ledger
    shown: dict[str, float] = {}
    for lot in ledger.lots:
        shown[lot.security] = shown.get(lot.security, 0.0) + lot.quantity
    return {
        "instruments": sorted(map(instrument_json, case.book.universe.instruments), key=lambda line: line["name"]),
        "prices": world.holdings.prices,
        "planted": sorted(map(asdict, world.planted), key=lambda one: (one["kind"], one["where"])),
        "trading": list(case.book.trading.row),
        "rates": dict(rates_of(ledger).rates),
        "vendor": vendor_of(ledger),
        "shown": shown,
        "least_cost": case.cure.cost,
        "leverage": dict(case.risk.leverage),
        "risk_model": {name: [ledger.risk.specific[name], *ledger.risk.loadings[name]] for name in case.risk.issuers},
        "coding": withheld(case.guidelines, case.vocabulary, case.seed),
    }


def proof_of(case: Case) -> dict[str, Any]:
    """What goes with the truth: that no cure costs less. Others may cost as little, and earn as much."""
    outcome = case.cure.certified.uniqueness.outcome
    return {
        "kind": "optimal",
        "objective": case.cure.cost,
        "lower_bound": case.cure.bound,
        "gap": case.cure.cost - case.cure.bound,
        "unique": outcome.proved,
        "uniqueness": outcome.value,
    }


def certificate(case: Case) -> dict[str, Any]:
    """The numbers from which the cure's bound can be recomputed."""
    proof = case.cure.certified
    return {
        "kind": "cheapest_cure",
        "programs": case.cure.programs,
        "cost": case.cure.cost,
        "bound": case.cure.bound,
        "gap": proof.optimality.gap,
        "violation": proof.optimality.violation,
        "multipliers": proof.multipliers.tolist(),
    }
