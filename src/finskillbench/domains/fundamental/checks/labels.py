"""Check published labels against their prompts' thresholds and, with a raw collection, against SEC company facts."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from typing import Any, NamedTuple

from finskillbench.domains.checks.examination import Subject, examining
from finskillbench.engines.accounting.periods import Duration
from finskillbench.episode import Episode, JsonObject
from finskillbench.findings import Findings
from finskillbench.panels.filings.statements import build_filed
from finskillbench.scoring.values import as_array, as_number, as_object, as_text
from finskillbench.sources.edgar.collection import load_filings

_FLOWS = ("revenue", "operating_income", "net_income", "eps_diluted", "operating_cash_flow")
_DEPRECIATION = "ebitda less operating_income"
_ROUNDING = 0.5e-6
_ANNUAL_FORMS = ("10-K", "10-K/A", "20-F", "40-F")

_Beyond = Callable[[float, float], bool]
_THRESHOLDS: Mapping[str, tuple[str, str, _Beyond]] = {
    "low_piotroski": ("piotroski_score", r"Piotroski score\s*(?:≤|<=)\s*(\d+)", lambda value, least: value <= least),
    "high_accruals": ("accruals_ratio", r"accruals\s*>\s*(\d+(?:\.\d+)?\s*%)", lambda value, most: value > most),
    "beneish_manipulation_flag": (
        "beneish_m_score",
        r"M-Score\s*>\s*([−-]\d+(?:\.\d+)?)",
        lambda value, most: value > most,
    ),
}
"""Flag -> the figure it depends on, the pattern of its threshold in prompts, and the test that raises it."""


class _Stated(NamedTuple):
    tag: str
    start: date
    duration: Duration
    form: str


def check_published_flags(subject: Subject, findings: Findings) -> None:
    """Check that published flags follow from the label's figures and the thresholds in its prompt."""
    if subject.built or not subject.edition.has_truth:
        findings.skip("built labels are rederived from the conventions in their tasks")
        return
    for episode in subject.of("earnings_quality"):
        with examining(episode.task_id, findings):
            _examine_flags(episode, subject.edition.truth(episode.task_id).expected_output, findings)


def _examine_flags(episode: Episode, label: JsonObject, findings: Findings) -> None:
    raised = set(map(str, as_array(label.get("flags"))))
    for flag, (figure, wording, beyond) in _THRESHOLDS.items():
        printed = re.search(wording, episode.prompt.task_description)
        value = as_number(label.get(figure))
        if printed is None or value is None:
            continue
        threshold_text = printed[1].replace("−", "-")
        threshold = float(threshold_text.rstrip("% ")) / (100.0 if threshold_text.endswith("%") else 1.0)
        state = "is" if flag in raised else "is not"
        message = f"{flag} {state} raised at {figure} {value:g}, the threshold in the prompt is {printed[1]}"
        findings.expect(beyond(value, threshold) == (flag in raised), episode.task_id, message, "flags")


def check_published_flows(subject: Subject, findings: Findings) -> None:
    """Check that published flows were filed for the period of the report's form."""
    if subject.built or not subject.edition.has_truth:
        findings.skip("built labels are rederived from the facts in their episodes")
        return
    if subject.raw_dir is None:
        findings.skip("published episodes contain no facts; pass a collection with SEC company facts by --raw-dir")
        return
    symbols = {str(episode.input.get("symbol")) for episode in subject.episodes}
    companies = load_filings(subject.raw_dir, symbols).companies
    for symbol in sorted(symbols - companies.keys()):
        findings.warn(symbol, f"{subject.raw_dir} has no company facts for this symbol")
    filed = build_filed(companies)
    for episode in subject.episodes:
        symbol, end = str(episode.input.get("symbol")), as_text(episode.input.get("period_end"))
        if symbol not in companies or end is None:
            continue
        with examining(episode.task_id, findings):
            period_rows = filed.filter(symbol=symbol, end=date.fromisoformat(end))
            stated = _stated(period_rows.rows(named=True), episode.as_of_date)
            label = subject.edition.truth(episode.task_id).expected_output
            _examine_period(episode, label, stated, findings)


def _stated(rows: list[dict[str, Any]], as_of: date) -> dict[float, list[_Stated]]:
    found: dict[float, list[_Stated]] = defaultdict(list)
    for row in rows:
        if row["filed"] <= as_of and row["start"] is not None:
            found[row["value"]].append(_Stated(row["tag"], row["start"], Duration(row["duration"]), row["form"]))
    return found


def _examine_period(
    episode: Episode, label: JsonObject, stated: Mapping[float, list[_Stated]], findings: Findings
) -> None:
    form = as_text(episode.input.get("form_type"))
    forms = {one.form for each in stated.values() for one in each}
    if form is not None and forms:
        message = f"is {form}; the filings for {episode.input['period_end']} are {', '.join(sorted(forms))}"
        findings.expect(form in forms, episode.task_id, message, "form_type")
    wanted = Duration.ANNUAL if form in _ANNUAL_FORMS else Duration.QUARTERLY
    for name, value in _flows(as_object(label.get("metrics"))):
        same = [one for figure, each in stated.items() if abs(figure - value) <= _ROUNDING * abs(value) for one in each]
        if not same:
            findings.add("figures_not_on_file")
            continue
        findings.add("figures_on_file")
        first = same[0]
        message = (
            f"{value:.15g} is {first.tag} from {first.start} on ({first.duration.replace('_', ' ')}); a {form} "
            f"needs a figure that is {wanted}"
        )
        findings.expect(any(one.duration == wanted for one in same), episode.task_id, message, f"metrics.{name}")


def _flows(metrics: JsonObject) -> Iterator[tuple[str, float]]:
    """Yield the label's flows, and the depreciation and amortisation implied by its EBITDA."""
    for name in _FLOWS:
        if (value := as_number(metrics.get(name))) is not None:
            yield name, value
    ebitda, operating = as_number(metrics.get("ebitda")), as_number(metrics.get("operating_income"))
    if ebitda is not None and operating is not None:
        yield _DEPRECIATION, ebitda - operating
