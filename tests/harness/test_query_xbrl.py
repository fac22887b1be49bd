"""`query_xbrl` as an agent meets it: fundamental episodes only, in every arm, and nothing filed after the episode."""

import asyncio
from dataclasses import replace
from datetime import date, timedelta
from types import SimpleNamespace
from typing import Any

import orjson
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.sampling import examples

from finskillbench.edition import Edition
from finskillbench.edition.load import PublicFilings
from finskillbench.episode import Episode
from finskillbench.harness.conditions import Condition, mount
from finskillbench.harness.model import ToolCall
from finskillbench.harness.prompts.compaction import compact_input
from finskillbench.harness.skills.loader import curated, placebo
from finskillbench.harness.tools.contracts import MAX_RESULT_CHARS, tool_specs
from finskillbench.harness.tools.toolbox import Toolbox, ToolServices
from finskillbench.harness.trace import CallOutcome
from finskillbench.panels.filings.query import AXES, DURATIONS, LARGEST_LIMIT, FiledStore
from finskillbench.panels.filings.statements import FundamentalPanels

FUNDAMENTAL = "fundamental_analysis"
DERIVATION = {"metric", "derived", "parents"}
"""Fields of facts that were chosen or computed."""
FIRST, LAST = date(2015, 3, 31), date(2024, 12, 31)
TAGS = [f"Tag{i:02d}" for i in range(30)]


def _store() -> FiledStore:
    """Two companies whose every figure is filed 40 days after its quarter and restated a year later."""
    empty = FundamentalPanels.empty().tables
    ends = [date(year, month, 28) for year in range(FIRST.year, LAST.year + 1) for month in (3, 6, 9, 12)]
    facts, filings, segments = [], [], []
    for symbol in ("ACME", "BETA"):
        for number, end in enumerate(ends):
            for filed in (end + timedelta(days=40), end + timedelta(days=405)):
                accession = f"0000000001-{filed:%y}-{number:06d}"
                filings.append((symbol, accession, "10-Q", end, filed))
                start = end - timedelta(days=90)
                shared = (symbol, start, end, filed, accession)
                facts += [(*shared, tag, float(filed.toordinal())) for tag in TAGS]
                segments += [(*shared, axis, part, 50.0) for axis in AXES for part in ("a", "b")]
    names = ["symbol", "start", "end", "filed", "accession"]
    constant = {"unit": "USD", "taxonomy": "us-gaap", "form": "10-Q", "fiscal_year": 2020}
    constant |= {"fiscal_period": "Q1", "duration": "quarterly", "derived": False}

    def table(rows: list[tuple[Any, ...]], columns: list[str], like: pl.DataFrame) -> pl.DataFrame:
        frame = pl.DataFrame(rows, schema=columns, orient="row")
        missing = [pl.lit(constant[name]).alias(name) for name in like.columns if name not in columns]
        return frame.with_columns(missing).select(like.columns).cast(dict(like.schema))

    reports = table(filings, ["symbol", "accession", "form", "period_end", "filed"], empty["filings"])
    members = table(segments, [*names, "axis", "segment", "value"], empty["segments"])
    return FiledStore(table(facts, [*names, "tag", "value"], empty["filed"]), reports, members)


@pytest.fixture(scope="module")
def filings() -> PublicFilings:
    return PublicFilings(SimpleNamespace(filed=_store()))  # type: ignore[arg-type]  # only the store is asked for


@pytest.fixture
def ask(filings: PublicFilings, episode: Episode, full_input, mounts):
    def call(text: str, as_of: date = LAST, condition: Condition = Condition.NO_SKILL, domain: str = FUNDAMENTAL):
        toolbox = Toolbox(
            replace(episode, as_of_date=as_of), lambda: full_input, mounts[condition], ToolServices(filings=filings)
        )
        result, outcome = asyncio.run(
            toolbox.call(ToolCall("id", "query_xbrl", text), tool_specs(mounts[condition], domain))
        )
        assert len(result) <= MAX_RESULT_CHARS
        return orjson.loads(result), outcome

    return call


def dumped(**arguments: Any) -> str:
    return orjson.dumps(arguments).decode()


@pytest.mark.parametrize("condition", list(Condition))
def test_every_arm_has_it_and_no_other_domain(ask, condition: Condition) -> None:
    asked = dumped(ticker="acme", period="2020-03-28", metrics=["Tag01"], axis="product_segment")
    result, outcome = ask(asked, condition=condition)
    assert outcome == "ok"
    assert [(row["form"], row["filed"], row["duration"]) for row in result["facts"]] == [
        ("10-Q", "2020-05-07", "quarterly"),
        ("10-Q", "2021-05-07", "quarterly"),
    ]
    assert [row["segment"] for row in result["segments"]] == ["a", "b"]
    result, outcome = ask(asked, condition=condition, domain="portfolio_construction")
    assert outcome == "unknown_tool"
    assert "there is no tool 'query_xbrl'" in result["error"]
    assert "query_xbrl" not in result["tools"]


def test_the_episode_says_the_day_whatever_the_agent_asks(ask) -> None:
    asked = {"ticker": "ACME", "period": "2020-03-28", "metrics": ["Tag01"]}

    def filed(as_of: date) -> list[str]:
        return [row["filed"] for row in ask(dumped(**asked), as_of=as_of)[0]["facts"]]

    assert filed(date(2020, 5, 6)) == []
    assert filed(date(2020, 5, 7)) == filed(date(2021, 5, 6)) == ["2020-05-07"]
    assert filed(date(2021, 5, 7)) == ["2020-05-07", "2021-05-07"]
    result, outcome = ask(dumped(**asked, as_of="2030-01-01"))
    assert outcome == "invalid_arguments"
    assert "has no parameter 'as_of'" in result["error"]


def test_facts_are_given_as_filed_and_nothing_is_derived(ask) -> None:
    asked = {"ticker": "ACME", "period": "2020-03-28", "metrics": ["Tag01"], "axis": "product_segment"}
    found = ask(dumped(**asked))[0]
    assert {row["tag"] for row in found["facts"]} == {"Tag01"}
    assert all(row.keys() & DERIVATION == set() for row in (*found["facts"], *found["segments"]))
    assert ask(dumped(ticker="ACME", metrics=["no_tag"]))[0]["available"]["tags"] == TAGS


@pytest.mark.parametrize(
    ("arguments", "outcome", "words"),
    [
        ({"ticker": "NOPE"}, "tool_failed", "choose one of: ACME, BETA"),
        ({"ticker": ""}, "tool_failed", "choose one of: ACME, BETA"),
        (
            {"ticker": "ACME", "period": "Q1 2020"},
            "tool_failed",
            "give its day YYYY-MM-DD, its month YYYY-MM or its year YYYY",
        ),
        (
            {"ticker": "ACME", "duration": "Q"},
            "tool_failed",
            "choose one of: instant, quarterly, half, nine_months, annual",
        ),
        ({"ticker": "ACME", "axis": "region"}, "tool_failed", "choose one of: product_segment, geographic_segment"),
        ({"ticker": "ACME", "limit": 10**12}, "tool_failed", "limit must be between 1 and 500"),
        ({"ticker": "ACME", "limit": 1.5}, "invalid_arguments", "'limit' of query_xbrl must be an integer"),
        ({"ticker": "ACME", "derive": True}, "invalid_arguments", "query_xbrl has no parameter 'derive'"),
        ({"ticker": "ACME", "segments": True}, "invalid_arguments", "has no parameter 'segments'"),
        ({"period": "2020"}, "invalid_arguments", "lacks the parameter 'ticker'"),
    ],
)
def test_errors_are_json_that_say_the_mend(ask, arguments: dict[str, Any], outcome: CallOutcome, words: str) -> None:
    result, met = ask(dumped(**arguments))
    assert met == outcome
    assert words in result["error"]


def test_the_largest_answer_fits_a_result(ask) -> None:
    result, outcome = ask(dumped(ticker="ACME", limit=LARGEST_LIMIT, axis="product_segment"))
    assert outcome == "ok"
    assert len(result["facts"]) == LARGEST_LIMIT
    assert result["note"].startswith("the latest 500 of 2220 rows")


_TEXTS = st.sampled_from(
    ["ACME", "beta", "2020", "2020-03", "2020-03-28", "10-Q", "10-K", *TAGS[:3], *AXES, *DURATIONS]
)


@settings(max_examples=examples(300), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    arguments=st.fixed_dictionaries(
        {"ticker": st.sampled_from(["ACME", "beta", "X"])},
        optional={
            "period": _TEXTS | st.text(max_size=12),
            "metrics": st.lists(_TEXTS | st.text(max_size=5), max_size=5),
            "form": _TEXTS,
            "duration": st.sampled_from(DURATIONS) | st.text(max_size=5),
            "axis": st.sampled_from(AXES),
            "limit": st.integers(-5, 600),
        },
    ),
    as_of=st.dates(date(2014, 12, 1), date(2026, 1, 1)),
)
def test_nothing_that_comes_back_was_filed_after_the_episode(ask, arguments: dict[str, Any], as_of: date) -> None:
    result, outcome = ask(dumped(**arguments), as_of=as_of)
    assert outcome == "ok" or isinstance(result["error"], str)
    day = as_of.isoformat()
    rows = [
        *result.get("facts", ()),
        *result.get("segments", ()),
        *result.get("available", {}).get("latest_filings", ()),
    ]
    assert all(row["filed"] <= day for row in rows)
    assert all(row["value"] == date.fromisoformat(row["filed"]).toordinal() for row in result.get("facts", ()))
    assert all(end < day for end in result.get("available", {}).get("periods", ()))


@pytest.mark.parametrize("condition", list(Condition))
@pytest.mark.parametrize("sub_task", ["normalization", "earnings_quality", "driver_decomposition"])
def test_an_episode_shows_no_derived_fact(edition: Edition, sub_task: str, condition: Condition) -> None:
    episode, mounted = edition.episodes([sub_task])[0], mount(condition, curated(), placebo())
    box = Toolbox(episode, lambda: edition.full_input(episode), mounted, ToolServices(filings=edition.filings))
    calls = [ToolCall("id", "get_task_data", dumped(field=field)) for field in episode.input]
    calls += [ToolCall("id", "query_xbrl", dumped(ticker=episode.input["symbol"], axis=axis)) for axis in AXES]
    shown = [asyncio.run(box.call(call, tool_specs(mounted, FUNDAMENTAL))) for call in calls]
    assert {outcome for _, outcome in shown} == {"ok"}
    assert sum('"accession":' in text and '"segment":' in text for text, _ in shown) >= 2
    assert not [field for field in DERIVATION for text, _ in shown if f'"{field}":' in text]


def test_a_prompt_says_where_the_facts_are() -> None:
    held = {"ref": "panels/facts.parquet", "symbol": "ACME", "as_of": "2024-05-02", "since": "2022-03-01"}
    assert compact_input({"filing_facts": held}, 500) == (
        '{\n"filing_facts": "facts of ACME as of 2024-05-02: '
        'get_task_data(\\"filing_facts\\"), periods ending 2022-03-01 or later; query_xbrl(\\"ACME\\"), all periods"\n}'
    )
