"""Revenue by segment: what adds up, derived quarters, later breakdowns."""

from collections.abc import Mapping
from datetime import date, timedelta
from pathlib import Path

import polars as pl
import pytest
from tests.sources.synthetic.truth import filers_of, true_segments

from finskillbench.panels.filings.quarters import FILINGS_SCHEMA
from finskillbench.panels.filings.segments.breakdowns import labels_of
from finskillbench.panels.filings.segments.revenue import REVENUE_TAGS, SEGMENTS_SCHEMA, SegmentsPanel, build_segments
from finskillbench.panels.filings.statements import FundamentalPanels
from finskillbench.sources.edgar.instance import Instance, parse_instance
from finskillbench.sources.edgar.instance_reader import Dimensions, InstanceFact
from finskillbench.sources.synthetic.filers.edgar_files import instances as filed_instances

PRODUCTS, SEGMENTS = "srt:ProductOrServiceAxis", "us-gaap:StatementBusinessSegmentsAxis"
PLACES, ITEMS = "srt:StatementGeographicalAxis", "srt:ConsolidationItemsAxis"
CONTRACTS = "RevenueFromContractWithCustomerExcludingAssessedTax"
YEAR = (date(2024, 1, 1), date(2024, 12, 31))
NINE_MONTHS = (date(2024, 1, 1), date(2024, 9, 30))
THIRD = (date(2024, 7, 1), date(2024, 9, 30))
FOURTH = (date(2024, 10, 1), date(2024, 12, 31))
NO_FACTS = (
    FundamentalPanels.empty().tables["facts"].select("symbol", "metric", "start", "end", "filed", "value", "derived")
)

Amounts = Mapping[str, float]


def figures(
    period: tuple[date, date], axis: str, amounts: Amounts, *, tag: str = "Revenues", beside: Dimensions = ()
) -> list[InstanceFact]:
    """Revenue in millions by member of an axis; the member "" is the total, without dimensions."""
    return [
        InstanceFact(
            "us-gaap", tag, "USD", *period, value * 1e6, tuple(sorted(((axis, name), *beside))) if name else (), -6
        )
        for name, value in amounts.items()
    ]


def filing(number: int, facts: list[InstanceFact], *, end: date = YEAR[1], unit: str = "USD") -> Instance:
    """A filing with the accession number 0000000001-25-00000N."""
    return Instance(
        path=Path(f"0000000001-25-00000{number}.xml"),
        accession=f"0000000001-25-00000{number}",
        cik=1,
        symbol="ACME",
        entity="Acme",
        form="10-K",
        period_end=end,
        fiscal_year=2024,
        fiscal_period="FY",
        contexts={},
        facts=tuple(fact._replace(unit=unit) for fact in facts),
        notes=(),
    )


def build(
    *instances: Instance, days: tuple[int, ...] = (0, 30, 60, 90), facts: pl.DataFrame = NO_FACTS
) -> SegmentsPanel:
    """The panel of filings number 0, 1, ... filed so many days after 2025-01-01."""
    rows = [
        ("ACME", f"0000000001-25-00000{number}", "10-K", YEAR[1], date(2025, 1, 1) + timedelta(days=day))
        for number, day in enumerate(days)
    ]
    return build_segments({"ACME": instances}, facts, pl.DataFrame(rows, schema=FILINGS_SCHEMA, orient="row"))


def sets(panel: SegmentsPanel, axis: str = "product_segment") -> dict[tuple[date, date, str, bool], dict[str, float]]:
    """(start, end, last digit of the accession, derived) -> revenue in millions by segment."""
    found: dict[tuple[date, date, str, bool], dict[str, float]] = {}
    for row in panel.frame.filter(pl.col("axis") == axis).iter_rows(named=True):
        key = (row["start"], row["end"], row["accession"][-1], row["derived"])
        found.setdefault(key, {})[row["segment"]] = row["value"] / 1e6
    return found


AB = {"acme:AMember": 60.0, "acme:BMember": 40.0, "": 100.0}


def test_a_breakdown() -> None:
    panel = build(
        filing(0, figures(YEAR, PRODUCTS, AB) + figures(YEAR, PLACES, {"country:US": 70, "acme:RestMember": 30}))
    )
    assert panel.frame.schema == SEGMENTS_SCHEMA
    assert panel.notes == ()
    assert sets(panel) == {(*YEAR, "0", False): {"A": 60, "B": 40}}
    assert sets(panel, "geographic_segment") == {(*YEAR, "0", False): {"United States": 70, "Rest": 30}}
    assert panel.frame["filed"].unique().to_list() == [date(2025, 1, 1)]
    assert panel.frame["duration"].unique().to_list() == ["annual"]


@pytest.mark.parametrize(
    ("amounts", "kept"),
    [
        ({"x:AMember": 60, "x:BMember": 39.5, "": 100}, {"A", "B"}),
        ({"x:AMember": 60, "x:BMember": 38.9, "": 100}, None),
        ({"x:AMember": 60, "x:BMember": 41.2, "": 100}, None),
        # A subtotal of the same axis, and the total itself as a member.
        ({"x:AMember": 61, "x:BMember": 13, "x:CMember": 26, "x:BCMember": 39, "": 100}, {"A", "B", "C"}),
        ({"x:AMember": 61, "x:BMember": 39, "x:AllMember": 100, "": 100}, {"A", "B"}),
        # Two breakdowns on one axis: the finer.
        (
            {"x:AMember": 61, "x:BMember": 13, "x:CMember": 26, "x:SMember": 57, "x:TMember": 43, "": 100},
            {"A", "B", "C"},
        ),
        ({"x:AMember": 100, "": 100}, None),
        ({"x:AMember": 100, "x:BMember": 0, "": 100}, None),
        ({"x:AMember": 110, "x:EliminationsMember": -10, "": 100}, {"A", "Eliminations"}),
        ({"x:AMember": 5, "x:BMember": -5, "": 0}, {"A", "B"}),
        ({"x:AMember": -60, "x:BMember": -40, "": -100}, {"A", "B"}),
        ({"x:AMember": 60, "x:BMember": 40}, None),
    ],
)
def test_only_what_adds_up(amounts: Amounts, kept: set[str] | None) -> None:
    found = sets(build(filing(0, figures(YEAR, PRODUCTS, amounts))))
    assert [set(each) for each in found.values()] == ([] if kept is None else [kept])


def test_what_adds_up_in_one_period_by_chance_is_not_taken() -> None:
    """30 + 20 + 50 is 100 as well, but not in the year before."""
    now = {"x:AMember": 60, "x:BMember": 40, "x:CMember": 30, "x:DMember": 20, "x:EMember": 50, "": 100}
    before = {"x:AMember": 55, "x:BMember": 25, "x:CMember": 30, "x:DMember": 17, "x:EMember": 41, "": 80}
    last_year = (date(2023, 1, 1), date(2023, 12, 31))
    found = sets(build(filing(0, figures(YEAR, PRODUCTS, now) + figures(last_year, PRODUCTS, before))))
    assert {key[0].year: set(each) for key, each in found.items()} == {2023: {"A", "B"}, 2024: {"A", "B"}}


def test_a_period_without_revenue_is_broken_down_as_the_others_are() -> None:
    members = {"x:AMember": 60, "x:BMember": 15, "x:CMember": 25, "x:BCMember": 40, "": 100}
    nothing = figures(THIRD, PRODUCTS, dict.fromkeys(members, 0))
    found = sets(build(filing(0, figures(YEAR, PRODUCTS, members) + nothing)))
    assert found[*THIRD, "0", False] == {"A": 0, "B": 0, "C": 0}
    assert set(sets(build(filing(0, nothing)))[*THIRD, "0", False]) == {"A", "B", "BC", "C"}


def test_the_product_axis_wins_where_it_adds_up() -> None:
    segments = figures(YEAR, SEGMENTS, {"x:CMember": 30, "x:DMember": 70})
    assert sets(build(filing(0, figures(YEAR, PRODUCTS, AB) + segments))) == {(*YEAR, "0", False): {"A": 60, "B": 40}}
    partial = figures(YEAR, PRODUCTS, {"x:AMember": 60, "": 100})
    assert sets(build(filing(0, partial + segments))) == {(*YEAR, "0", False): {"C": 30, "D": 70}}


def test_segments_before_eliminations_and_what_reconciles_them() -> None:
    operating: Dimensions = ((ITEMS, "us-gaap:OperatingSegmentsMember"),)
    facts = figures(YEAR, SEGMENTS, {"x:AMember": 90, "x:BMember": 40, "": 100}, beside=())
    facts = [fact for fact in facts if not fact.dimensions] + [
        fact._replace(dimensions=tuple(sorted((*fact.dimensions, *operating)))) for fact in facts if fact.dimensions
    ]
    assert sets(build(filing(0, facts))) == {}
    items = {"us-gaap:CorporateNonSegmentMember": 5, "us-gaap:IntersegmentEliminationMember": -35}
    items["us-gaap:OperatingSegmentsMember"] = 130
    assert sets(build(filing(0, facts + figures(YEAR, ITEMS, items)))) == {
        (*YEAR, "0", False): {"A": 90, "B": 40, "Corporate": 5, "Intersegment Elimination": -35}
    }


def test_a_constant_second_dimension() -> None:
    streaming: Dimensions = ((PRODUCTS, "x:StreamingMember"),)
    places = figures(YEAR, PLACES, {"srt:EuropeMember": 60, "x:RestMember": 40}, beside=streaming)
    panel = build(filing(0, places + figures(YEAR, "", {"": 100})))
    assert sets(panel, "geographic_segment") == {(*YEAR, "0", False): {"Europe": 60, "Rest": 40}}
    assert sets(panel) == {}


def test_members_under_two_tags_and_the_tag_of_the_total() -> None:
    leases = figures(YEAR, PRODUCTS, {"x:LeasesMember": 20, "": 100})
    sales = figures(YEAR, PRODUCTS, {"x:SalesMember": 80, "": 80}, tag=CONTRACTS)
    assert sets(build(filing(0, leases + sales))) == {(*YEAR, "0", False): {"Leases": 20, "Sales": 80}}


def test_the_total_may_come_from_the_facts_but_not_from_the_future() -> None:
    rows = [("ACME", "revenue", *YEAR, date(2025, 1, 20), 100e6, False)]
    facts = pl.DataFrame(rows, schema=NO_FACTS.schema, orient="row")
    parts = figures(YEAR, PRODUCTS, {"x:AMember": 60, "x:BMember": 40})
    assert sets(build(filing(0, parts), facts=facts)) == {}
    assert sets(build(filing(1, parts), facts=facts)) == {(*YEAR, "1", False): {"A": 60, "B": 40}}


NINE = {"acme:AMember": 44.0, "acme:BMember": 30.0, "": 74.0}


def test_quarters_by_difference() -> None:
    """The fourth quarter is known from the day of the annual report, whichever file comes first."""
    quarterly = filing(0, figures(NINE_MONTHS, PRODUCTS, NINE), end=NINE_MONTHS[1])
    annual = filing(1, figures(YEAR, PRODUCTS, AB))
    for panel in (build(quarterly, annual), build(annual, quarterly)):
        found = sets(panel)
        assert found[*FOURTH, "1", True] == {"A": 16, "B": 10}
        assert len(found) == 3
        derived = panel.frame.filter("derived")
        assert derived["filed"].unique().to_list() == [date(2025, 1, 31)]
        assert derived["duration"].unique().to_list() == ["quarterly"]


def test_a_printed_quarter_is_not_derived() -> None:
    half = (date(2024, 1, 1), date(2024, 6, 30))
    first = filing(0, figures(half, PRODUCTS, {"x:AMember": 30, "x:BMember": 20, "": 50}))
    third = figures(THIRD, PRODUCTS, {"x:AMember": 15, "x:BMember": 9, "": 24})
    second = filing(1, figures(NINE_MONTHS, PRODUCTS, NINE) + third)
    assert [(key[0], key[3]) for key in sets(build(first, second))] == [
        (half[0], False),
        (NINE_MONTHS[0], False),
        (THIRD[0], False),
    ]
    without = filing(1, figures(NINE_MONTHS, PRODUCTS, NINE))
    assert sets(build(first, without))[*THIRD, "1", True] == {"A": 14, "B": 10}


def test_the_first_quarter_is_the_half_less_the_second() -> None:
    """Only in one filing: of a half and a second quarter of two filings either may have been redrawn."""
    half, first, second = ((date(2024, 1, 1), date(2024, month, day)) for month, day in ((6, 30), (3, 31), (6, 30)))
    second = (date(2024, 4, 1), second[1])
    halves = figures(half, PRODUCTS, {"x:AMember": 30, "x:BMember": 20, "": 50})
    quarter = figures(second, PRODUCTS, {"x:AMember": 17, "x:BMember": 9, "": 26})
    found = sets(build(filing(0, halves + quarter, end=half[1])))
    assert found[*first, "0", True] == {"A": 13, "B": 11}
    assert len(found) == 3
    apart = sets(build(filing(0, quarter, end=half[1]), filing(1, halves, end=half[1])))
    assert all(not derived for *_, derived in apart)
    printed = figures(first, PRODUCTS, {"x:AMember": 14, "x:BMember": 10, "": 24})
    assert all(
        not derived for *_, derived in sets(build(filing(0, printed, end=first[1]), filing(1, halves + quarter)))
    )


def test_no_quarter_across_a_recast_breakdown() -> None:
    """The annual report moves 5 from A to B in the year before: its year is on another basis than the nine months."""
    before = (date(2023, 1, 1), date(2023, 12, 31))
    old = filing(0, figures(NINE_MONTHS, PRODUCTS, NINE) + figures(before, PRODUCTS, {**AB, "acme:AMember": 60.0}))
    moved = figures(before, PRODUCTS, {"acme:AMember": 55.0, "acme:BMember": 45.0, "": 100.0})
    assert all(not derived for *_, derived in sets(build(old, filing(1, figures(YEAR, PRODUCTS, AB) + moved))))
    rounded = figures(before, PRODUCTS, {"acme:AMember": 61.0, "acme:BMember": 39.0, "": 100.0})
    assert any(derived for *_, derived in sets(build(old, filing(1, figures(YEAR, PRODUCTS, AB) + rounded))))


@pytest.mark.parametrize(("fourth", "derived"), [(26, True), (25.8, True), (40, False)])
def test_no_quarter_against_the_one_that_the_annual_report_prints(fourth: float, derived: bool) -> None:
    """It lowers the year by what it takes out of the nine months; the last quarter alone is as it was, and printed."""
    quarterly = filing(0, figures(NINE_MONTHS, PRODUCTS, NINE))
    annual = filing(1, figures(YEAR, PRODUCTS, AB) + figures(FOURTH, PRODUCTS, {"": fourth}))
    assert ((*FOURTH, "1", True) in sets(build(quarterly, annual))) is derived


def test_no_quarter_of_parts_that_changed_or_of_reports_far_apart() -> None:
    quarterly = filing(0, figures(NINE_MONTHS, PRODUCTS, NINE))
    renamed = filing(1, figures(YEAR, PRODUCTS, {"acme:AMember": 60, "acme:CMember": 40, "": 100}))
    assert all(not derived for *_, derived in sets(build(quarterly, renamed)))
    annual = filing(1, figures(YEAR, PRODUCTS, AB))
    assert all(not derived for *_, derived in sets(build(quarterly, annual, days=(0, 201))))
    assert any(derived for *_, derived in sets(build(quarterly, annual, days=(0, 200))))


def test_a_later_breakdown_replaces_and_a_repeated_one_does_not() -> None:
    redrawn = {"acme:AMember": 60.0, "acme:CMember": 25.0, "acme:DMember": 15.0, "": 100.0}
    amounts = (AB, AB, redrawn, redrawn)
    found = sets(build(*(filing(i, figures(YEAR, PRODUCTS, amount)) for i, amount in enumerate(amounts))))
    assert found == {(*YEAR, "0", False): {"A": 60, "B": 40}, (*YEAR, "2", False): {"A": 60, "C": 25, "D": 15}}


def test_what_is_left_out_is_said() -> None:
    unknown = filing(9, figures(YEAR, PRODUCTS, AB))
    foreign = filing(0, figures(YEAR, PRODUCTS, AB), unit="EUR")
    panel = build(unknown, foreign)
    assert panel.frame.is_empty()
    assert panel.notes == (
        "ACME: 0000000001-25-000009.xml (10-K to 2024-12-31) is of no filing in the company's facts or submissions; "
        "its segments are left out.",
        "ACME: 0000000001-25-000000 states revenue in EUR; only USD is used.",
    )


def test_names() -> None:
    names = {
        "country:GB": "United Kingdom",
        "country:ZZ": "ZZ",
        "IPhoneMember": "iPhone",
        "OEMAndOtherMember": "OEM and Other",
        "GreaterChinaSegmentMember": "Greater China",
        "NonUsMember": "Non-US",
        "EMEAMember": "EMEA",
        "WearablesHomeandAccessoriesMember": "Wearables Home and Accessories",
        "TaxesandIncomeMember": "Taxes and Income",
        "ThailandAndFinlandMember": "Thailand and Finland",
        "BrandOtherMember": "Brand Other",
        "RestOfIrelandMember": "Rest of Ireland",
        "SegmentHomeandMember": "Segment Homeand",
    }
    assert labels_of(names) == names
    assert labels_of(["AmericasMember", "AmericasSegmentMember"]) == {
        "AmericasMember": "Americas",
        "AmericasSegmentMember": "Americas Segment",
    }


@pytest.mark.slow
def test_fictional_filers_break_revenue_down_as_they_truly_did(tmp_path: Path) -> None:
    """Every quarter and year to date of eight filers, as of each of their filings of the next two years."""
    compared = 0
    for symbol, filer in list(filers_of(1).items())[::4]:
        parsed = []
        for accession, text in filed_instances(filer):
            (tmp_path / f"{accession}.xml").write_bytes(text)
            parsed.append(parse_instance(tmp_path / f"{accession}.xml", tags=REVENUE_TAGS))
        rows = [(symbol, one.accession, one.form, filer.ends[one.quarter], one.filed) for one in filer.filings]
        filings = pl.DataFrame(rows, schema=FILINGS_SCHEMA, orient="row")
        known: dict[tuple[str, date, date], dict[tuple[date, str], dict[str, float]]] = {}
        for row in build_segments({symbol: parsed}, NO_FACTS, filings).frame.iter_rows(named=True):
            versions = known.setdefault((row["axis"], row["start"], row["end"]), {})
            versions.setdefault((row["filed"], row["accession"]), {})[row["segment"]] = row["value"]
        for quarter, end in enumerate(filer.ends):
            for start in {filer.starts[quarter], filer.starts[filer.year_start(quarter)]}:
                for as_of in {one.filed for one in filer.filings if 0 < (one.filed - end).days < 730}:
                    for axis in ("product_segment", "geographic_segment"):
                        versions = known.get((axis, start, end), {})
                        last = max((version for version in versions if version[0] <= as_of), default=None)
                        seen = {} if last is None else versions[last]
                        assert seen == true_segments(filer, axis, start, end, as_of), (symbol, axis, start, end, as_of)
                        compared += bool(seen)
    assert compared > 3000
