"""The second derivation of the fundamental labels: from the rows of EDGAR's company facts, in plain Python.

Written from the definitions that the agent reads and from nothing else: no panel, no table library, no engine. It knows
which tags are which metric (the catalog says so) and what each of them said in every filing; it looks a quarter up when
it needs it, and subtracts where filers report only the year to date.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from finskillbench.domains.fundamental.stated import COMPUTED, Period, Said, computed, in_units, stated, tagged

_QUARTER, _HALF, _NINE_MONTHS, _YEAR = (70, 125), (150, 200), (235, 290), (340, 380)
_SHORTER = {_HALF: _QUARTER, _NINE_MONTHS: _HALF, _YEAR: _NINE_MONTHS}
_SIGNALS_NEED = 1e-9

Value = float | None
Figures = Mapping[str, Value]


class RawBook:
    """One company's facts by metric and period, each with everything that was ever said of it.

    Parameters
    ----------
    rows : mappings with taxonomy, tag, unit, start (None for an instant), end, value, accession, form and filed.
    metrics : canonical metric to its entry of `catalog/metrics.json`.
    """

    def __init__(self, rows: Iterable[Mapping[str, Any]], metrics: Mapping[str, Any]) -> None:
        self._metrics = metrics
        by_tag = tagged(rows)
        filings = in_units({metric: stated(by_tag, entry) for metric, entry in metrics.items()}, metrics)
        self._versions: dict[str, dict[Period, list[Said]]] = {}
        self._starts: dict[str, dict[date, set[date]]] = {}
        self._ends: dict[str, dict[date, set[date]]] = {}
        for metric, entry in metrics.items():
            if entry.get("part"):
                continue
            said = filings[metric]
            if "fallback" in entry:
                said = said | computed(said, filings, entry["fallback"])
            best: dict[str, int] = {}
            for (_, accession), one in said.items():
                best[accession] = min(best.get(accession, COMPUTED), one.rank)
            by_period: dict[Period, list[Said]] = {}
            for (period, _), one in said.items():
                by_period.setdefault(period, []).append(one)
            self._versions[metric] = {period: _versions(all_said, best) for period, all_said in by_period.items()}
            starts, ends = self._starts.setdefault(metric, {}), self._ends.setdefault(metric, {})
            for start, end in by_period:
                if start is not None:
                    starts.setdefault(end, set()).add(start)
                    ends.setdefault(start, set()).add(end)

    def quarter(self, end: date, as_of: date) -> dict[str, Value]:
        """Every figure of the quarter that ends on a day, as public on another; None where nothing says it."""
        return self._figures(end, as_of, _QUARTER)

    def year(self, end: date, as_of: date) -> dict[str, Value]:
        """Every figure of the year that ends on a day, as public on another."""
        return self._figures(end, as_of, _YEAR)

    def compared(self, end: date, prior_end: date | None, as_of: date) -> tuple[dict[str, Value], dict[str, Value]]:
        """Two quarters a year apart; diluted shares are the years' where they are not known of both quarters."""
        days = (end,) if prior_end is None else (end, prior_end)
        quarters = [self.quarter(day, as_of) for day in days]
        if len(days) == 1:
            return quarters[0], {}
        name = "diluted_shares"
        if any(quarter.get(name) is None for quarter in quarters):
            years = [self._flow(name, day, as_of, _YEAR) for day in days]
            if None not in years:
                quarters = [quarter | {name: year} for quarter, year in zip(quarters, years, strict=True)]
        return quarters[0], quarters[1]

    def quarter_before(self, end: date, as_of: date) -> date | None:
        """End of the quarter before: 70 to 125 days earlier, the nearest to 91."""
        return self._before(end, as_of, _QUARTER, 91)

    def year_before(self, end: date, as_of: date) -> date | None:
        """End of the same quarter a year earlier: 350 to 380 days, the nearest to 365."""
        return self._before(end, as_of, (350, 380), 365)

    def _before(self, end: date, as_of: date, apart: tuple[int, int], nominal: int) -> date | None:
        flows = [metric for metric, entry in self._metrics.items() if entry["kind"] == "flow" and not entry.get("part")]
        ends = {other for metric in flows for other in self._starts[metric] if _within((end - other).days, apart)}
        fitting = [
            (abs((end - other).days - nominal), (end - other).days, other)
            for other in ends
            if any(self._flow(metric, other, as_of, _QUARTER) is not None for metric in flows)
        ]
        return min(fitting)[2] if fitting else None

    def _figures(self, end: date, as_of: date, days: tuple[int, int]) -> dict[str, Value]:
        figures: dict[str, Value] = {}
        for metric in self._versions:
            if self._metrics[metric]["kind"] == "flow":
                figures[metric] = self._flow(metric, end, as_of, days)
            else:
                known = self._known(metric, (None, end), as_of)
                figures[metric] = None if known is None else known.value
        return figures

    def _flow(self, metric: str, end: date, as_of: date, days: tuple[int, int]) -> Value:
        """The figure of the period of that many days ending on a day: as stated, else by subtraction."""
        starts = self._starts[metric].get(end, ())
        stated = [
            (known.new, start, known.value)
            for start in starts
            if _within((end - start).days + 1, days) and (known := self._known(metric, (start, end), as_of)) is not None
        ]
        if stated:
            return max(stated)[2]
        if days != _QUARTER or not self._metrics[metric].get("additive", True):
            return None
        left: list[tuple[date, date, float]] = []
        for start in starts:
            shorter = next((_SHORTER[span] for span in _SHORTER if _within((end - start).days + 1, span)), None)
            if shorter is None:
                continue
            for stop in self._ends[metric][start]:
                if _within((stop - start).days + 1, shorter) and _within((end - stop).days, _QUARTER):
                    made = self._left(metric, (start, end), (start, stop), as_of)
                    if made is not None:
                        left.append((made[0], stop, made[1]))
        return max(left)[2] if left else None

    def _left(self, metric: str, longer: Period, shorter: Period, as_of: date) -> tuple[date, float] | None:
        """A year to date less a shorter one: when it was last made, and what it left.

        Made when both are first known under one tag, and again when both have been restated since.
        """
        said = (*self._versions[metric].get(longer, ()), *self._versions[metric].get(shorter, ()))
        made: tuple[date, float] | None = None
        for day in sorted({one.filed for one in said if one.filed <= as_of}):
            whole, part = self._known(metric, longer, day), self._known(metric, shorter, day)
            if whole is None or part is None or part.rank != whole.rank:  # another tag may be another concept
                continue
            if made is None or min(whole.new, part.new) > made[0]:
                made = day, whole.value - part.value
        return made

    def _known(self, metric: str, period: Period, as_of: date) -> Said | None:
        """The last of what was said of a period by a day."""
        found = None
        for said in self._versions[metric].get(period, ()):
            if said.filed > as_of:
                break
            found = said
        return found


def _versions(all_said: Iterable[Said], best_of_filing: Mapping[str, int]) -> list[Said]:
    """What counts and is new, in order of filing: of a day the first tag and the last filing.

    A lesser tag is no restatement of a better one if it is a weak one or its filing uses a better one elsewhere: it
    then is another concept. What is said again under a better tag is no news, but goes by that tag from then on.
    """
    kept: list[Said] = []
    best, day = COMPUTED, date.min
    order = sorted(all_said, key=lambda said: said.accession, reverse=True)
    for said in sorted(order, key=lambda said: (said.filed, said.rank)):
        if said.filed == day:
            continue
        day = said.filed
        counts = said.rank <= best or not (said.weak or best_of_filing[said.accession] < said.rank)
        if counts and (not kept or kept[-1].value != said.value):
            kept.append(said)
        elif counts and said.rank < kept[-1].rank:
            kept.append(replace(said, new=kept[-1].new))
        best = min(best, said.rank)
    return kept


def _within(days: int, span: tuple[int, int]) -> bool:
    return span[0] <= days <= span[1]


def _minus(left: Value, right: Value) -> Value:
    return None if left is None or right is None else left - right


def _plus(left: Value, right: Value) -> Value:
    return None if left is None or right is None else left + right


def _by(left: Value, right: Value) -> Value:
    return None if left is None or right is None or right == 0 else left / right


def normalised(figures: Figures) -> dict[str, Value]:
    """The ten metrics."""
    names = ("revenue", "operating_income", "net_income", "eps_diluted", "total_assets", "total_liabilities")
    names += ("stockholders_equity", "operating_cash_flow")
    income = figures.get("operating_income")
    return {name: figures.get(name) for name in names} | {
        "operating_margin": _by(income, figures.get("revenue")),
        "ebitda": _plus(income, figures.get("depreciation_amortization")),
    }


@dataclass(frozen=True, slots=True)
class Quality:
    """Earnings quality: the answer, and whether one of its verdicts hangs on next to nothing."""

    answer: dict[str, Any]
    doubtful: bool


def quality(now: Figures, before: Figures) -> Quality:
    """Signals by what is left over when one side is taken from the other; Beneish's model term by term."""

    def over(figures: Figures, top: str, bottom: str) -> Value:
        return _by(figures.get(top), figures.get(bottom))

    def rise(top: str, bottom: str) -> Value:
        return _minus(over(now, top, bottom), over(before, top, bottom))

    def fall(change: Value) -> Value:
        return None if change is None else -change

    income, cash, assets = (now.get(name) for name in ("net_income", "operating_cash_flow", "total_assets"))
    left = {
        "roa_positive": _by(income, assets),
        "cfo_positive": cash,
        "delta_roa_positive": rise("net_income", "total_assets"),
        "accruals_negative": _minus(cash, income),
        "delta_leverage_negative": fall(rise("long_term_debt", "total_assets")),
        "delta_current_ratio_positive": rise("current_assets", "current_liabilities"),
        "no_dilution": _minus(before.get("diluted_shares"), now.get("diluted_shares")),
        "delta_gross_margin_positive": rise("gross_profit", "revenue"),
        "delta_asset_turnover_positive": rise("revenue", "total_assets"),
    }
    signals = {
        name: None if value is None else int(value >= 0 if name == "no_dilution" else value > 0)
        for name, value in left.items()
    }
    score = None if None in signals.values() else sum(value for value in signals.values() if value is not None)
    model = _model(now, before)
    flag = None if model is None else model > -1.78
    accruals, ratio = _by(_minus(income, cash), assets), _by(cash, income)
    raised = {
        "low_piotroski": score is not None and score <= 3,
        "beneish_manipulation_flag": bool(flag),
        "high_accruals": accruals is not None and accruals > 0.05,
        "negative_income_quality": ratio is not None and ratio < 0,
    }
    answer = {
        "piotroski_score": score,
        "piotroski_components": signals,
        "beneish_m_score": model,
        "beneish_flag": flag,
        "accruals_ratio": accruals,
        "income_quality_ratio": ratio,
        "flags": [name for name, up in raised.items() if up],
    }
    edges = [value for value in left.values() if value is not None and value != 0]
    edges += [] if model is None else [model + 1.78]
    edges += [] if accruals is None else [accruals - 0.05]
    return Quality(answer, any(abs(edge) < _SIGNALS_NEED for edge in edges))


def _model(now: Figures, before: Figures) -> Value:
    """-4.84 + 0.92 DSRI + 0.528 GMI + 0.404 AQI + 0.892 SGI + 0.115 DEPI - 0.172 SGAI + 4.679 TATA - 0.327 LVGI."""

    def soft(figures: Figures) -> Value:
        hard = _plus(figures.get("current_assets"), figures.get("ppe_net"))
        return _minus(1.0, _by(hard, figures.get("total_assets")))

    def worn(figures: Figures) -> Value:
        used = figures.get("depreciation_amortization")
        return _by(used, _plus(used, figures.get("ppe_net")))

    def owed(figures: Figures) -> Value:
        return _by(
            _plus(figures.get("long_term_debt"), figures.get("current_liabilities")), figures.get("total_assets")
        )

    def sales(figures: Figures, top: str) -> Value:
        return _by(figures.get(top), figures.get("revenue"))

    terms = (
        (0.92, _by(sales(now, "receivables"), sales(before, "receivables"))),
        (0.528, _by(sales(before, "gross_profit"), sales(now, "gross_profit"))),
        (0.404, _by(soft(now), soft(before))),
        (0.892, _by(now.get("revenue"), before.get("revenue"))),
        (0.115, _by(worn(before), worn(now))),
        (-0.172, _by(sales(now, "sga"), sales(before, "sga"))),
        (4.679, _by(_minus(now.get("net_income"), now.get("operating_cash_flow")), now.get("total_assets"))),
        (-0.327, _by(owed(now), owed(before))),
    )
    total = -4.84
    for weight, term in terms:
        if term is None:
            return None
        total += weight * term
    return total


_RATIOS = {
    "operating_margin": "operating_income",
    "gross_margin": "gross_profit",
    "cogs_ratio": "cost_of_revenue",
    "sga_ratio": "sga",
    "rnd_ratio": "rnd",
    "da_ratio": "depreciation_amortization",
    "interest_ratio": "interest_expense",
    "tax_ratio": "income_tax",
}


def margins(now: Figures, before: Figures) -> dict[str, float]:
    """Change of each ratio over revenue, in percentage points, of every ratio that both quarters have."""
    found: dict[str, float] = {}
    for name, metric in _RATIOS.items():
        change = _minus(_by(now.get(metric), now.get("revenue")), _by(before.get(metric), before.get("revenue")))
        if change is not None:
            found[name] = 100.0 * change
    return found
