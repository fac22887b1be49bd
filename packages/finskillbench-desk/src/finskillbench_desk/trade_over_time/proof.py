"""Proof of a label: rederivation of the posterior, the best books, the zero and the traps."""

from __future__ import annotations

import math
from datetime import date
from typing import Any

import numpy as np
import polars as pl

from finskillbench.arrays import Floats
from finskillbench.domains.examples import Label
from finskillbench.episode import Truth
from finskillbench.findings import Findings
from finskillbench.scoring.values import json_equal
from finskillbench_desk.trade_over_time import rederive
from finskillbench_desk.trade_over_time.interactive import (
    Future,
    certified,
    current_frame,
    delivered,
    factor_frame,
    followed,
    panel_frame,
    unpacked_future,
)
from finskillbench_desk.trade_over_time.law_optimum import law_textbooks
from finskillbench_desk.trade_over_time.law_rederive import WIDE, best_book, law_forecasts, read_law_case
from finskillbench_desk.trade_over_time.laws import STRUCTURES, Law, law_from_json
from finskillbench_desk.trade_over_time.optimum import (
    TradingSetup,
    TradingTrap,
    fallen_book,
    from_json,
    held_path,
    losses,
    optimal_path,
)
from finskillbench_desk.trade_over_time.world import DECISIONS

SAME_WORTH = 1e-6
"""Tolerance between derivations of signal worth, as a share of the largest."""
SAME_BOOK = 1e-5
"""Tolerance between derivations of the best book, in millions."""
SAME_LAW_BOOK = 1e-4
"""The same under a law that is not disclosed, where sizes of effects are integrated numerically."""
SAME_DECAY = 0.03
"""Tolerance between the share of a signal left after a week and its measurement in the history."""
_FILES = ("outage", "notices", "signals", "returns", "factor_returns")


def proof(label: Label[Any], findings: Findings) -> None:
    """Rederive the posterior and the best actions, and check that the optimal orders lose nothing.

    The rederivation needs the certificate, which contains the later files.
    """
    truth = label.truth
    where, known = truth.task_id, truth.verification
    setup, aims = from_json(known["desk"]), np.array(known["aims"])
    score = certified(truth.expected_output, truth, label.task_input)
    findings.expect(score.value >= 1 - 1e-9, where, f"its own record scores {score.value:.9f}, not 1")
    gain = math.fsum(known["textbook_losses"])
    findings.expect(gain > 0, where, "the textbook loses nothing, so the case offers no gain")
    _mistakes(truth, setup, aims, findings)
    if not label.certificate:
        return
    if label.hidden:
        _expect_hidden(label, findings)
    future = unpacked_future(label.certificate, setup)
    seen = rederive.read_case(label.task_input, future.signals[1:], future.returns)
    books = [setup.book.holdings, *followed(setup, truth.expected_output["record"])[0]]
    if known["law"] is not None:
        _law(label, seen, future, books, findings)
        return
    stored = np.array(label.certificate["worth"])
    for place in sorted({0, setup.plan.limit_from - 1, DECISIONS - 2}):
        newest = delivered(place, label.certificate["outage"])
        at = rederive.with_notices(seen, [text for day, text in label.certificate["notices"] if day <= place])
        worth = stored[place]
        if place in {0, DECISIONS - 2}:
            worth = rederive.worth(at, seen.weeks + newest)
            _close(findings, where, "coefficient", worth / np.abs(stored).max(), stored[place] / np.abs(stored).max())
        book = rederive.best(at, place + 1, newest + 1, worth, books[place])
        stated = setup.policy(place).best(place, aims[place], books[place])
        _close(findings, where, "book", book * SAME_WORTH / SAME_BOOK, stated * SAME_WORTH / SAME_BOOK)


def _law(label: Label[Any], seen: rederive.Seen, future: Future, books: list[Floats], findings: Findings) -> None:
    """Rederive best and mistaken books of two decisions from tables and law: the first, and the last with a trap.

    One derivation of forecasts takes up to two seconds, so other decisions are left out.
    """
    truth, where, certificate = label.truth, label.truth.task_id, label.certificate
    known, setup = truth.verification, from_json(truth.verification["desk"])
    law, structure = law_from_json(known["law"]), STRUCTURES[certificate["structure"]]
    same = all(getattr(law, name) == getattr(structure, name) for name in ("place", "form", "effects", "course"))
    same = same and json_equal(known["law"], certificate["law"])
    findings.expect(same, where, "verification.law differs from the certificate", "verification.law")
    measured, stated = (0.5 ** (1 / np.array(each)) for each in (seen.half_life, certificate["half_lives"]))
    near = bool((np.abs(measured - stated) <= SAME_DECAY).all())
    findings.expect(near, where, "certificate.half_lives differ from the decay of the history")
    if not (same and near):
        return
    traps = [TradingTrap(one["kind"], one["decision"], np.array(one["aim"]), one["cost"]) for one in known["traps"]]
    for place in {0, max((trap.decision for trap in traps), default=0)}:
        newest, book, policy = delivered(place, certificate["outage"]), books[place], setup.policy(place)
        at = rederive.with_notices(seen, [text for day, text in certificate["notices"] if day <= place])
        tables = _tables(label, setup, future, newest)
        forecasts = law_forecasts(read_law_case(tables, law), DECISIONS - newest)
        best = _best(at, place, forecasts[place - newest :], book)
        pairs = [(best, policy.best(place, np.array(known["aims"][place]), book))]
        for trap in traps:
            if trap.decision != place:
                continue
            mistaken = forecasts[: DECISIONS - place] if trap.kind == "stale" else forecasts[place - newest :]
            if trap.kind == "backfill":
                mistaken = _believing(tables, law, DECISIONS - newest)[place - newest :]
            wrong = setup.settled(place, _best(at, place, mistaken, book, trap.kind))
            pairs.append((wrong, fallen_book(setup, trap, book)))
        for derived, stored in pairs:
            _close(findings, where, "book", derived * SAME_WORTH / SAME_LAW_BOOK, stored * SAME_WORTH / SAME_LAW_BOOK)


def _tables(label: Label[Any], setup: TradingSetup, future: Future, newest: int) -> dict[str, pl.DataFrame]:
    """Return the tables that an agent has seen at a decision, and the half-lives."""
    fields, certificate = label.task_input, label.certificate
    history: pl.DataFrame = fields["history"].frame
    week, day = fields["state"]["week"], date.fromisoformat(history["date"][0])
    later = panel_frame(setup, day, week, future.signals[:newest], future.returns[:newest])
    assert future.factors is not None
    factors = factor_frame(setup, week, future.factors[:newest])
    offers = {name: [offer[name] for offer in fields["signals"].values()] for name in ("vendor", "since")}
    return {
        "names": fields["names"].frame,
        "history": pl.concat([history, later], how="vertical_relaxed"),
        "current": current_frame(setup, setup.book.holdings, future.signals[newest]),
        "factor_returns": pl.concat([fields["factor_returns"].frame, factors], how="vertical_relaxed"),
        "signals": pl.DataFrame({"signal": list(fields["signals"]), "half_life": certificate["half_lives"]} | offers),
    }


def _believing(tables: dict[str, pl.DataFrame], law: Law, ahead: int) -> Floats:
    """Return the forecasts of an investor who takes backfilled values as evidence."""
    offers = tables["signals"].with_columns(since=1)
    return law_forecasts(read_law_case({**tables, "signals": offers}, law), ahead, WIDE)


def _best(seen: rederive.Seen, place: int, forecasts: Floats, book: Floats, misread: str = "") -> Floats:
    """Return the best book of a decision (from 0) by one dense system, with the misreading of a kind of trap."""
    memo, days = seen.memo, range(place + 1, DECISIONS + 1)
    capital = [memo.capital if misread == "flow" else memo.capital_at(day) for day in days]
    benchmark = np.outer(capital, seen.benchmark)
    costs = (1.0 if misread == "tariff" else memo.tariff) * (memo.clip if misread == "impact_unit" else 1.0)
    limits = {
        week: (seen.sector_rows, seen.sector_rows @ benchmark[week])
        for week, day in enumerate(days)
        if day >= memo.limit_from and misread != "limit"
    }
    aversion = np.array([memo.aversion_at(day) for day in days])
    alpha = forecasts * seen.specific
    return best_book(alpha, seen.covariance, seen.curvature * costs, aversion, benchmark, book, limits)


def _expect_hidden(label: Label[Any], findings: Findings) -> None:
    """Compare the hidden fields of the case with those that the label was derived from."""
    stated = {
        "desk": label.truth.verification["desk"],
        "week": label.task_input["state"]["week"],
        "first_day": label.task_input["history"].frame["date"][0],
        **{name: label.certificate[name] for name in _FILES if name in label.certificate},
    }
    for name in sorted(stated.keys() | label.hidden):
        same = name in stated and json_equal(stated[name], label.hidden.get(name))
        findings.expect(same, label.truth.task_id, f"hidden.{name} differs from the label")


def _mistakes(truth: Truth, setup: TradingSetup, aims: Floats, findings: Findings) -> None:
    """Check the textbook's losses and the costs of traps against setup and aims.

    The losses of trading fully depend on signals too, so only their sum is compared with the proof; under a law that is
    not disclosed, both textbooks are derived again.
    """
    where, known, stated = truth.task_id, truth.verification, truth.proof
    held = losses(setup, aims, held_path(setup))
    stored_losses = np.array(known["textbook_losses"], dtype=float)
    same = stored_losses.shape == held.shape and np.isclose(
        stored_losses.sum(), stated["textbook_loss"], rtol=SAME_WORTH
    )
    findings.expect(same, where, "textbook_losses differ from the loss in the proof")
    textbooks, name = {"holding still": held}, stated["textbook"]
    if known["law"] is not None:
        textbooks = law_textbooks(setup, aims)
        name = min(textbooks, key=lambda each: float(textbooks[each].sum()))
    if same and name in textbooks:
        findings.expect(
            stated["textbook"] == name and np.allclose(stored_losses, textbooks[name], rtol=SAME_WORTH),
            where,
            f"textbook_losses differ from those of {name}",
        )
    traps = known["traps"]
    findings.expect(len(traps) == stated["traps"], where, f"has {len(traps)} traps, and {stated['traps']} in its proof")
    order = [(one["decision"], one["kind"]) for one in traps]
    findings.expect(order == sorted(set(order)), where, "its traps are not in order of decision and kind")
    path = [setup.book.holdings, *optimal_path(setup, aims)]
    for one in traps:
        trap = TradingTrap(one["kind"], one["decision"], np.array(one["aim"]), one["cost"])
        place = trap.decision
        cost = setup.policy(place).loss(place, path[place + 1], fallen_book(setup, trap, path[place])) / held[place]
        findings.expect(
            np.isclose(cost, trap.cost, rtol=SAME_WORTH),
            where,
            f"the trap {trap.kind} costs {cost:.6g}, not {trap.cost:.6g}",
        )


def _close(findings: Findings, where: str, what: str, derived: Floats, stated: Floats) -> None:
    difference = float(np.abs(derived - stated).max())
    findings.widest(f"{what}_difference", difference)
    findings.expect(difference <= SAME_WORTH, where, f"a {what} differs by {difference:.1e} from its rederivation")
