"""What the programs answer to the fundamental subtasks: reading by hand."""

from finskillbench.domains import by_name
from finskillbench.engines.accounting.statements import NORMALISED
from finskillbench.episode import JsonObject
from finskillbench.harness.programs.reading import naive_answer

FUNDAMENTAL = ("normalization", "earnings_quality", "driver_decomposition")
END = "2024-03-30"


def by_hand(sub_task: str, data: JsonObject) -> JsonObject:
    """What the subtask's arithmetic makes of the fields; an empty answer where there is none."""
    return naive_answer(by_name(sub_task).by_hand, data)


def row(metric: str, value: float, duration: str = "quarterly", **changes: object) -> JsonObject:
    """A fact as episodes hold it."""
    facts = {
        "metric": metric,
        "end": END,
        "duration": duration,
        "value": value,
        "filed": "2024-05-03",
        "derived": False,
    }
    return {**facts, **changes}


def task(*rows: JsonObject, form: str = "10-Q") -> JsonObject:
    """The fields of a normalization episode."""
    facts = {"facts": list(rows), "segments": []}
    return {"symbol": "FIR", "period_end": END, "form_type": form, "filing_facts": facts, "conventions": {}}


ROWS = (
    row("revenue", 1000.0),
    row("operating_income", 150.0),
    row("depreciation_amortization", 50.0),
    row("total_assets", 4000.0, "instant"),
    row("total_assets", 3900.0, "instant", end="2023-12-30"),
    row("operating_cash_flow", 300.0, "half"),
    row("operating_cash_flow", 120.0, derived=True),
    row("revenue", 3900.0, "annual"),
)


def test_by_hand_reads_what_is_filed_for_the_quarter_and_derives_nothing_from_other_periods() -> None:
    metrics = by_hand("normalization", task(*ROWS))["metrics"]
    assert tuple(metrics) == NORMALISED
    known = {name: value for name, value in metrics.items() if value is not None}
    assert known == {
        "revenue": 1000.0,
        "operating_income": 150.0,
        "total_assets": 4000.0,
        "operating_margin": 0.15,
        "ebitda": 200.0,
    }


def test_by_hand_reads_the_year_of_a_10_k() -> None:
    metrics = by_hand("normalization", task(*ROWS, form="10-K"))["metrics"]
    assert (metrics["revenue"], metrics["operating_income"], metrics["operating_margin"]) == (3900.0, None, None)


def test_by_hand_takes_the_last_filing_of_a_figure() -> None:
    later = row("revenue", 990.0, filed="2025-05-02")
    assert by_hand("normalization", task(later, *ROWS))["metrics"]["revenue"] == 990.0


def test_by_hand_divides_by_no_revenue_of_nought() -> None:
    data = task(row("revenue", 0.0), row("operating_income", -5.0))
    assert by_hand("normalization", data)["metrics"]["operating_margin"] is None


def test_by_hand_knows_neither_scores_nor_drivers() -> None:
    assert [by_hand(sub_task, task(*ROWS)) for sub_task in FUNDAMENTAL[1:]] == [{}, {}]


def test_an_imported_episode_has_no_facts_to_read() -> None:
    assert by_hand("normalization", {"symbol": "FIR", "period_end": END, "form_type": "10-Q"}) == {}


def test_arithmetic_reads_only_the_fields_that_it_asks_for() -> None:
    data = task(*ROWS)
    asked = {field: data[field] for field in by_name("normalization").by_hand.fields}
    assert by_hand("normalization", asked) == by_hand("normalization", data)
