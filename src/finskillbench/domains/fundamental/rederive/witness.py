"""Confirm or refute the figures of a label by other facts of the company.

Concepts are matched by name, independent of the tags chosen by the panels: taxonomy sums, equalities (net income is
earnings per share times shares), and bounds (depreciation and amortisation).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import product
from typing import NamedTuple

from finskillbench.domains.fundamental.rederive.answers import Figures
from finskillbench.domains.fundamental.rederive.definitions import FigureSource, Kind
from finskillbench.domains.fundamental.rederive.filed import AsFiled
from finskillbench.domains.fundamental.rederive.identities import (
    NOT_NEGATIVE,
    Fault,
    contradicts_remainder,
    faults,
    rounding_unit,
)
from finskillbench.sums import exact_sum

_AVERAGES = ("eps_diluted", "diluted_shares")
"""Metrics that are not sums of their quarters."""
_WITHIN = 0.0175
"""Share by which earnings per share times shares may differ from net income: rounding, participating shares."""
_PART = 0.02
"""Share by which parts in notes may exceed the total of the cash flow statement."""


@dataclass(frozen=True, slots=True)
class _Term:
    names: str
    sign: int = 1
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Identity:
    """A metric as the sum of terms.

    strict : refutes a figure that no identity confirms; if `computed`, only one that no filing states directly.
    """

    name: str
    terms: tuple[_Term, ...]
    strict: bool = True
    computed: bool = False


_COSTS = "CostOfRevenue|CostOfGoodsAndServicesSold|CostOfGoodsSold|CostOfServices"
_EQUITY = "StockholdersEquity"
_TOTAL_EQUITY = "StockholdersEquityIncludingPortionAttributableToNoncontrollingInterest"
_FLOW = "NetCashProvidedByUsedIn{}Activities"
_CHANGE = "CashCash.*PeriodIncreaseDecreaseIncludingExchangeRateEffect|CashAndCashEquivalentsPeriodIncreaseDecrease"
_PREFERRED = "PreferredStockDividends.*|DividendsPreferredStock"
_NONCONTROLLING = "MinorityInterest|ProfitLoss|NetIncomeLossAttributableToNoncontrollingInterest"
_MEZZANINE = _Term("mezzanine equity", -1, optional=True)
"""Temporary equity and redeemable interests, see `AsFiled.mezzanine`."""

IDENTITIES: Mapping[str, tuple[Identity, ...]] = {
    "revenue": (
        Identity("gross profit and cost", (_Term("GrossProfit"), _Term(_COSTS)), strict=False),
        Identity("operating income and costs", (_Term("OperatingIncomeLoss"), _Term("CostsAndExpenses")), strict=False),
    ),
    "gross_profit": (
        Identity(
            "operating income and expenses", (_Term("OperatingIncomeLoss"), _Term("OperatingExpenses")), strict=False
        ),
    ),
    "operating_income": (
        Identity("gross profit less expenses", (_Term("GrossProfit"), _Term("OperatingExpenses", -1)), strict=False),
    ),
    "net_income": (
        Identity(
            "profit less the share of others",
            (_Term("ProfitLoss"), _Term("NetIncomeLossAttributableToNoncontrollingInterest", -1, optional=True)),
        ),
        Identity(
            "income of common stock and preferred dividends",
            (_Term("NetIncomeLossAvailableToCommonStockholdersBasic"), _Term(_PREFERRED)),
            strict=False,
        ),
    ),
    "operating_cash_flow": (
        Identity(
            "change in cash less the other sections",
            (
                _Term(_CHANGE),
                _Term(_FLOW.format("Investing"), -1),
                _Term(_FLOW.format("Financing"), -1),
                _Term("EffectOfExchangeRateOnCash.*", -1, optional=True),
            ),
            strict=False,
        ),
    ),
    "total_assets": (
        Identity("liabilities and equity", (_Term("LiabilitiesAndStockholdersEquity"),)),
        Identity("current and other assets", (_Term("AssetsCurrent"), _Term("AssetsNoncurrent"))),
    ),
    "total_liabilities": (
        Identity("current and other liabilities", (_Term("LiabilitiesCurrent"), _Term("LiabilitiesNoncurrent"))),
        Identity("assets less all equity", (_Term("Assets"), _Term(_TOTAL_EQUITY, -1), _MEZZANINE), computed=True),
        Identity(
            "assets less equity",
            (_Term("Assets"), _Term(_EQUITY, -1), _Term("MinorityInterest", -1, True), _MEZZANINE),
            computed=True,
        ),
    ),
    "stockholders_equity": (
        Identity(
            "assets less liabilities",
            (_Term("Assets"), _Term("Liabilities", -1), _Term("MinorityInterest", -1, True), _MEZZANINE),
            computed=True,
        ),
        Identity(
            "all equity less the share of others", (_Term(_TOTAL_EQUITY), _Term("MinorityInterest", -1)), computed=True
        ),
    ),
}
_PLAIN: Mapping[str, str] = {
    "revenue": "Revenues|RevenueFromContractWithCustomerExcludingAssessedTax|SalesRevenueNet"
    "|RevenuesNetOfInterestExpense",
    "cost_of_revenue": "CostOfRevenue|CostOfGoodsAndServicesSold",
    "gross_profit": "GrossProfit",
    "operating_income": "OperatingIncomeLoss",
    "net_income": "NetIncomeLoss",
    "sga": "SellingGeneralAndAdministrativeExpense",
    "rnd": "ResearchAndDevelopmentExpense",
    "depreciation_amortization": "DepreciationDepletionAndAmortization|DepreciationAmortizationAndAccretionNet",
    "interest_expense": "InterestExpense",
    "income_tax": "IncomeTaxExpenseBenefit",
    "operating_cash_flow": "NetCashProvidedByUsedInOperatingActivities",
    "total_assets": "Assets",
    "total_liabilities": "Liabilities",
    "stockholders_equity": "StockholdersEquity",
    "current_assets": "AssetsCurrent",
    "current_liabilities": "LiabilitiesCurrent",
    "receivables": "AccountsReceivableNetCurrent|ReceivablesNetCurrent",
    "ppe_net": "PropertyPlantAndEquipmentNet",
    "long_term_debt": "LongTermDebtNoncurrent",
}
"""Concepts named like the metric; if one is filed, the label must not be null."""
_DEPRECIATION = re.compile(
    r"(?!.*(Financ|Debt|Discount|Premium|Loan|Lease|RightOfUse|Accumulated|Future|Expense(Year|Next|After|Rem)|PriorService"
    r"|Deferred|Commission|Contract|OtherComprehensive|DefinedBenefit|Restructuring|Discontinued|Disposal|Acquisition"
    r"|Interest|TemporaryEquity|Securities|Regulatory|Film))(.*(Depreciation|Amortization).*)"
)


class WitnessComparison(NamedTuple):
    """Value of a figure by an identity; `strict` if a difference refutes the figure."""

    agrees: bool
    name: str
    value: float
    strict: bool


@dataclass(frozen=True, slots=True)
class Witnesses:
    """Facts of one company on file by a day, to confirm or refute figures."""

    filed: AsFiled
    day: date

    def faults(
        self, figures: Figures, tags: Mapping[str, str], metrics: Iterable[str], end: date, kind: Kind
    ) -> Iterator[Fault]:
        """Yield figures that no filing holds under `tags`, that witnesses refute, or that are null although filed."""
        for metric in metrics:
            value = figures.get(metric)
            if value is None:
                yield from self._filled(metric, end, kind)
                continue
            if not any(
                abs(value - filed) <= max(1e-9 * abs(value), 1e-6) for filed in self.on_file(tags[metric], end, kind)
            ):
                yield Fault(
                    "filed", f"{kind} to {end}: {metric} is {value:.12g}, which no filing holds under {tags[metric]}"
                )
            found = list(self.compare(metric, value, tags[metric], end, kind))
            against = next((one for one in found if one.strict and not one.agrees), None)
            if against is not None and not any(one.agrees for one in found):
                message = f"{kind} to {end}: {metric} is {value:.12g}, {against.name} say {against.value:.12g}"
                yield Fault("witness", message)
            if metric == "depreciation_amortization":
                yield from self._depreciation(value, end, kind)

    def comparable(self, source: FigureSource, metrics: Iterable[str], end: date, prior_end: date) -> Iterator[Fault]:
        """Yield figures treated as two bases although filings give both, unchanged, under one concept."""
        (now, tags), (before, prior_tags) = (
            (source.figures(day, "quarterly"), source.tags(day, "quarterly")) for day in (end, prior_end)
        )
        for metric in metrics:
            value, prior = now.get(metric), before.get(metric)
            if value is None or prior is None or tags[metric] == prior_tags[metric]:
                continue
            for tag in (tags[metric], prior_tags[metric]):
                both = self.on_file(tag, end, "quarterly"), self.on_file(tag, prior_end, "quarterly")
                if value in both[0] and prior in both[1]:
                    yield Fault("null", f"{metric} to {prior_end} and {end}: both are filed under {tag}")
                    break

    def quarters(self, tags: Mapping[str, str], metrics: Iterable[str], end: date) -> Iterator[Fault]:
        """Yield the quarters that differ from the year to date less the shorter one under the same concept."""
        for metric in metrics:
            tag = tags.get(metric, "")
            for stated in self.filed.stated(tag, end, "quarterly", self.day) if metric not in _AVERAGES else ():
                left = self.filed.left(tag, end, self.day)
                if (
                    left is not None
                    and left.accession == stated.accession
                    and contradicts_remainder(stated.value, left.value)
                ):
                    yield Fault(
                        "quarters", f"{metric} to {end} is {stated.value:.12g}, the year leaves {left.value:.12g}"
                    )

    def compare(self, metric: str, value: float, tag: str, end: date, kind: Kind) -> Iterator[WitnessComparison]:
        """Compare a figure with every identity whose terms are on file, see `IDENTITIES`."""
        for identity in IDENTITIES.get(metric, ()):
            for total, slack in self._totals(identity, end, kind):
                strict = identity.strict and not (identity.computed and tag.isalnum())
                yield WitnessComparison(abs(total - value) <= slack, identity.name, total, strict)
        if metric == "net_income":
            yield from self._per_share(value, end, kind)

    def on_file(self, tag: str, end: date, kind: Kind) -> set[float]:
        """Return the values on file of a sum of concepts, joined by their signs."""
        signed_concepts = [(-1 if sign == "-" else 1, name) for sign, name in re.findall(r"([+-]?)(\w+)", tag)]
        columns = [self.filed.values(name, end, kind, self.day) for _, name in signed_concepts]
        return {
            exact_sum(sign * value for (sign, _), value in zip(signed_concepts, chosen, strict=True))
            for chosen in product(*columns)
        }

    def _filled(self, metric: str, end: date, kind: Kind) -> Iterator[Fault]:
        if metric in _AVERAGES:
            return
        for tag in self.filed.tags(_PLAIN.get(metric, "")):
            row = self.filed.of(tag, end, kind, self.day)
            if row is not None and not (row.value < 0 and metric in (*NOT_NEGATIVE, "revenue")):
                yield Fault("null", f"{kind} to {end}: {metric} is null, {row.accession} says {row.value:.12g} ({tag})")
                return

    def _totals(self, identity: Identity, end: date, kind: Kind) -> Iterator[tuple[float, float]]:
        columns: list[list[float]] = []
        for term in identity.terms:
            known = self.filed.mezzanine(end, self.day) if term is _MEZZANINE else self._known(term.names, end, kind)
            if not known and not term.optional:
                return
            columns.append([term.sign * value for value in known or [0.0]])
        for chosen in product(*columns):
            units = [rounding_unit(value) for value in chosen if value]
            yield exact_sum(chosen), (len(units) + 1) / 2 * min(units, default=1.0)

    def _known(self, names: str, end: date, kind: Kind) -> list[float]:
        found = (self.filed.of(tag, end, kind, self.day) for tag in self.filed.tags(names))
        return [row.value for row in found if row is not None]

    def _per_share(self, value: float, end: date, kind: Kind) -> Iterator[WitnessComparison]:
        """Compare net income with earnings per share times shares, plus preferred dividends where filed."""
        preferred = [0.0, *self._known(_PREFERRED, end, kind)]
        has_noncontrolling = bool(self._known(_NONCONTROLLING, end, kind))
        for earned, count in (
            ("EarningsPerShareDiluted", "WeightedAverageNumberOfDilutedSharesOutstanding"),
            ("EarningsPerShareBasic", "WeightedAverageNumberOfSharesOutstandingBasic"),
        ):
            stated = (self.filed.stated(tag, end, kind, self.day) for tag in (earned, count))
            for per_share, shares in product(*stated):
                for dividends in preferred:
                    total = per_share.value * shares.value + dividends
                    slack = 0.0051 * shares.value + _WITHIN * abs(value)
                    scaled = abs(total) < abs(value) / 100  # shares filed in thousands or millions
                    # Preferred stock can explain a product below net income, not above it.
                    strict = not scaled and (total > value or has_noncontrolling)
                    yield WitnessComparison(abs(total - value) <= slack, f"{earned} times shares", total, strict)

    def _depreciation(self, value: float, end: date, kind: Kind) -> Iterator[Fault]:
        """Yield parts of depreciation and amortisation, or their sum, that exceed the total."""
        parts = {
            tag: row.value
            for tag in self.filed.tags(_DEPRECIATION.pattern)
            if (row := self.filed.of(tag, end, kind, self.day)) is not None
        }
        amortised = max(parts.get(tag, 0.0) for tag in ("AdjustmentForAmortization", "AmortizationOfIntangibleAssets"))
        depreciated = parts.get("Depreciation", 0.0)
        parts["Depreciation and amortization"] = depreciated + amortised if depreciated and amortised else 0.0
        for tag, part in parts.items():
            if part > (1 + _PART) * value + max(rounding_unit(part), rounding_unit(value)):
                yield Fault("witness", f"{kind} to {end}: depreciation_amortization is {value:.12g}, {tag} {part:.12g}")


def refuted(
    source: FigureSource, witnesses: Witnesses, metrics: Collection[str], periods: Sequence[tuple[date, Kind]]
) -> Iterator[Fault]:
    """Yield faults of the statements behind a label, by their own arithmetic and by other facts."""
    yield from faults(source, periods)
    for end, kind in periods:
        figures, tags = source.figures(end, kind), source.tags(end, kind)
        yield from witnesses.faults(figures, tags, metrics, end, kind)
        if kind == "quarterly":
            yield from witnesses.quarters(tags, metrics, end)
    if len(periods) == 2:
        (end, _), (prior_end, _) = periods
        yield from witnesses.comparable(source, metrics, end, prior_end)
