"""What the programs answer to the fundamental subtasks: reading by hand."""

from finskillbench.domains import subtask_named
from finskillbench.engines.accounting.statements import NORMALISED
from finskillbench.episode import JsonObject
from finskillbench.harness.programs.program import naive_answer

END = "2024-03-30"


def by_hand(sub_task: str, data: JsonObject) -> JsonObject:
    """What the subtask's arithmetic makes of the fields; an empty answer where there is none."""
    return naive_answer(subtask_named(sub_task).baselines.no_skill, data)


def row(tag: str, value: float, duration: str = "quarterly", **changes: object) -> JsonObject:
    """A fact as an agent reads it: as filed."""
    start = None if duration == "instant" else "2024-01-01"
    facts = {"tag": tag, "start": start, "end": END, "duration": duration, "value": value, "filed": "2024-05-03"}
    return {**facts, **changes}


def task(*rows: JsonObject, form: str = "10-Q") -> JsonObject:
    """The fields of an episode."""
    facts = {"facts": list(rows), "segments": []}
    return {"symbol": "FIR", "period_end": END, "form_type": form, "filing_facts": facts, "conventions": {}}


ROWS = (
    row("Revenues", 1000.0),
    row("OperatingIncomeLoss", 150.0),
    row("DepreciationDepletionAndAmortization", 110.0, "half"),
    row("Assets", 4000.0, "instant"),
    row("Assets", 3900.0, "instant", end="2023-12-30"),
    row("LiabilitiesAndStockholdersEquity", 4000.0, "instant"),
    row("NetCashProvidedByUsedInOperatingActivities", 300.0, "half"),
    row("Revenues", 3900.0, "annual"),
)


def test_by_hand_takes_the_year_to_date_where_no_quarter_is_filed_and_derives_nothing() -> None:
    metrics = by_hand("normalization", task(*ROWS))["metrics"]
    assert tuple(metrics) == NORMALISED
    known = {name: value for name, value in metrics.items() if value is not None}
    assert known == {
        "revenue": 1000.0,
        "operating_income": 150.0,
        "total_assets": 4000.0,
        "operating_cash_flow": 300.0,
        "operating_margin": 0.15,
        "ebitda": 260.0,
    }


def test_by_hand_reads_the_year_of_a_10_k() -> None:
    assert by_hand("normalization", task(*ROWS, form="10-K"))["metrics"]["revenue"] == 3900.0


def test_by_hand_takes_the_last_filing_of_a_figure() -> None:
    later = row("Revenues", 990.0, filed="2025-05-02")
    assert by_hand("normalization", task(later, *ROWS))["metrics"]["revenue"] == 990.0


def test_by_hand_divides_by_no_revenue_of_nought() -> None:
    data = task(row("Revenues", 0.0), row("OperatingIncomeLoss", -5.0))
    assert by_hand("normalization", data)["metrics"]["operating_margin"] is None


def test_by_hand_compares_with_the_year_before_and_with_the_quarter_named() -> None:
    before = row("Revenues", 800.0, end="2023-04-01")
    data = task(*ROWS, before, row("Assets", 4100.0, "instant", end="2023-04-01"))
    signals = by_hand("earnings_quality", data)["piotroski_components"]
    assert (signals["delta_asset_turnover_positive"], signals["no_dilution"]) == (1, None)
    named = data | {"current_period_end": END, "prior_period_end": "2023-04-01"}
    assert by_hand("driver_decomposition", named)["revenue_delta"] == 200.0


def test_an_imported_episode_has_no_facts_to_read() -> None:
    assert by_hand("normalization", {"symbol": "FIR", "period_end": END, "form_type": "10-Q"}) == {}


def test_arithmetic_reads_only_the_fields_that_it_asks_for() -> None:
    data = task(*ROWS)
    asked = {field: data[field] for field in subtask_named("normalization").baselines.no_skill.fields}
    assert by_hand("normalization", asked) == by_hand("normalization", data)
