"""XBRL instances and inline documents: both forms, transformations, covers, refusals and the real filings."""

import gzip
import random
import re
from datetime import date
from pathlib import Path

import pytest

from finskillbench.errors import SourceError
from finskillbench.sources.edgar.instance import Instance, filer_of, instance_files, parse_instance
from finskillbench.sources.edgar.instance_reader import InstanceFact
from finskillbench.sources.edgar.numerals import transformed

NAMESPACES = (
    'xmlns:xbrli="http://www.xbrl.org/2003/instance" xmlns:xbrldi="http://xbrl.org/2006/xbrldi" '
    'xmlns:us-gaap="http://fasb.org/us-gaap/2024" xmlns:srt="http://fasb.org/srt/2024" '
    'xmlns:dei="http://xbrl.sec.gov/dei/2024" xmlns:acme="http://acme.com/2024" '
    'xmlns:country="http://xbrl.sec.gov/country/2024" xmlns:iso4217="http://www.xbrl.org/2003/iso4217" '
    'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
)
YEAR = "<xbrli:startDate>2024-01-01</xbrli:startDate><xbrli:endDate>2024-12-31</xbrli:endDate>"
ENTITY = '<xbrli:identifier scheme="http://www.sec.gov/CIK">0000012345</xbrli:identifier>'


def context(name: str, *pairs: tuple[str, str], period: str = YEAR) -> str:
    """A context with explicit members."""
    members = "".join(f'<xbrldi:explicitMember dimension="{a}">{m}</xbrldi:explicitMember>' for a, m in pairs)
    segment = f"<xbrli:segment>{members}</xbrli:segment>" if pairs else ""
    return (
        f'<xbrli:context id="{name}"><xbrli:entity>{ENTITY}{segment}</xbrli:entity>'
        f"<xbrli:period>{period}</xbrli:period></xbrli:context>"
    )


UNITS = (
    '<xbrli:unit id="usd"><xbrli:measure>iso4217:USD</xbrli:measure></xbrli:unit>'
    '<xbrli:unit id="per"><xbrli:divide><xbrli:unitNumerator><xbrli:measure>iso4217:USD</xbrli:measure>'
    "</xbrli:unitNumerator><xbrli:unitDenominator><xbrli:measure>xbrli:shares</xbrli:measure>"
    "</xbrli:unitDenominator></xbrli:divide></xbrli:unit>"
)
CONTEXTS = (
    context("year")
    + context("goods", ("srt:ProductOrServiceAxis", "acme:GoodsMember"))
    + context("now", period="<xbrli:instant>2024-12-31</xbrli:instant>")
)
COVER = (
    '<dei:DocumentType contextRef="year">10-K</dei:DocumentType>'
    '<dei:DocumentPeriodEndDate contextRef="year">2024-12-31</dei:DocumentPeriodEndDate>'
    '<dei:DocumentFiscalYearFocus contextRef="year">2024</dei:DocumentFiscalYearFocus>'
    '<dei:DocumentFiscalPeriodFocus contextRef="year">FY</dei:DocumentFiscalPeriodFocus>'
    '<dei:EntityCentralIndexKey contextRef="year">0000012345</dei:EntityCentralIndexKey>'
    '<dei:EntityRegistrantName contextRef="year">Acme &amp; Co</dei:EntityRegistrantName>'
    '<dei:TradingSymbol contextRef="year">acm.b</dei:TradingSymbol>'
)
REVENUE = '<us-gaap:Revenues contextRef="year" unitRef="usd" decimals="-6">120000000</us-gaap:Revenues>'


def instance(body: str, contexts: str = CONTEXTS) -> str:
    """An XBRL instance with the usual contexts and units."""
    return f'<?xml version="1.0"?>\n<xbrli:xbrl {NAMESPACES}>{contexts}{UNITS}\n{body}\n</xbrli:xbrl>'


def inline(body: str, contexts: str = CONTEXTS) -> str:
    """An inline document with the usual contexts and units in its header."""
    return (
        f'<?xml version="1.0"?>\n<html xmlns="http://www.w3.org/1999/xhtml" {NAMESPACES} '
        'xmlns:ix="http://www.xbrl.org/2013/inlineXBRL" xmlns:ixt="http://www.xbrl.org/inlineXBRL/transformation/2020">'
        f"<body><div style='display:none'><ix:header><ix:resources>{contexts}{UNITS}</ix:resources></ix:header></div>\n"
        f"{body}\n</body></html>"
    )


def read(tmp_path: Path, text: str, name: str = "acme-20241231.xml", **options: set[str]) -> Instance:
    """Parse a text."""
    (tmp_path / name).write_text(text)
    return parse_instance(tmp_path / name, **options)


def fraction(text: str, attributes: str = "", *, name: str = "us-gaap:Revenues", unit: str = "usd") -> str:
    """A marked figure of the year."""
    return f'<ix:nonFraction contextRef="year" unitRef="{unit}" name="{name}" {attributes}>{text}</ix:nonFraction>'


def test_an_instance(tmp_path: Path) -> None:
    body = (
        COVER
        + REVENUE
        + '<us-gaap:Revenues contextRef="goods" unitRef="usd" decimals="INF">7</us-gaap:Revenues>'
        + '<us-gaap:Assets contextRef="now" unitRef="usd"> -1.5e3 </us-gaap:Assets>'
        + '<us-gaap:ShareBasedAwards contextRef="year" unitRef="per" decimals="2">1.25</us-gaap:ShareBasedAwards>'
        + '<us-gaap:Cash contextRef="now" unitRef="usd" xsi:nil="true"/>'
        + '<us-gaap:PolicyTextBlock contextRef="year">&lt;p&gt;words&lt;/p&gt;</us-gaap:PolicyTextBlock>'
    )
    parsed = read(tmp_path, instance(body))
    first, last = date(2024, 1, 1), date(2024, 12, 31)
    assert parsed.facts == (
        InstanceFact("us-gaap", "Revenues", "USD", first, last, 120e6, (), -6),
        InstanceFact(
            "us-gaap", "Revenues", "USD", first, last, 7.0, (("srt:ProductOrServiceAxis", "acme:GoodsMember"),), None
        ),
        InstanceFact("us-gaap", "Assets", "USD", None, last, -1500.0, (), None),
        InstanceFact("us-gaap", "ShareBasedAwards", "USD/shares", first, last, 1.25, (), 2),
    )
    assert (parsed.cik, parsed.symbol, parsed.entity, parsed.accession) == (12345, "ACM-B", "Acme & Co", None)
    assert (parsed.form, parsed.period_end, parsed.fiscal_year, parsed.fiscal_period) == ("10-K", last, 2024, "FY")
    assert read(tmp_path, instance(body), tags={"Assets"}).facts == parsed.facts[2:3]


def test_an_inline_document(tmp_path: Path) -> None:
    body = (
        '<ix:nonNumeric contextRef="year" name="us-gaap:PolicyTextBlock">Sales were '
        + fraction("1,234.5", 'scale="6" decimals="-5" format="ixt:num-dot-decimal"')
        + "</ix:nonNumeric>"
        + fraction("<b>7</b>", 'scale="3" sign="-" decimals="-3"', name="us-gaap:NetIncomeLoss")
        + fraction("—", 'scale="6" format="ixt:fixed-zero"', name="us-gaap:Goodwill")
        + fraction("no", 'format="ixt-sec:numwordsen"', name="acme:Stores")
        + fraction(
            fraction("0.25", 'scale="0"', name="us-gaap:EarningsPerShareBasic", unit="per"),
            'scale="0"',
            name="us-gaap:EarningsPerShareDiluted",
            unit="per",
        )
        + '<ix:nonFraction contextRef="now" unitRef="usd" name="us-gaap:Cash" xsi:nil="true"/>'
        + '<ix:nonNumeric contextRef="year" name="dei:DocumentType">10-K</ix:nonNumeric>'
        + '<ix:nonNumeric contextRef="year" name="dei:AmendmentFlag">true</ix:nonNumeric>'
        + '<ix:nonNumeric contextRef="year" name="dei:DocumentPeriodEndDate">'
        '<ix:nonNumeric contextRef="year" name="dei:CurrentFiscalYearEndDate">December&#160;31</ix:nonNumeric>, '
        "<span>2024</span></ix:nonNumeric>"
    )
    parsed = read(tmp_path, inline(body), "acme-20241231.htm")
    assert {fact.tag: fact.value for fact in parsed.facts} == {
        "Revenues": 1_234_500_000.0,
        "NetIncomeLoss": -7000.0,
        "Goodwill": 0.0,
        "Stores": 0.0,
        "EarningsPerShareBasic": 0.25,
        "EarningsPerShareDiluted": 0.25,
    }
    assert (parsed.form, parsed.period_end, parsed.cik) == ("10-K/A", date(2024, 12, 31), 12345)


@pytest.mark.parametrize(
    ("text", "name", "digits"),
    [
        ("1,234.50", "num-dot-decimal", "1234.50"),
        ("1 234.5", "numspacedot", "1234.5"),
        ("1.234,50", "num-comma-decimal", "1234.50"),
        ("12", "", "12"),
        (".5", "numdotdecimal", ".5"),
        ("-", "zerodash", "0"),
        ("twenty-one", "numwordsen", "21"),
        ("one hundred and five thousand", "numwordsen", "105000"),
        ("two million three hundred", "numwordsen", "2000300"),
    ],
)
def test_transformations(text: str, name: str, digits: str) -> None:
    assert transformed(text, name) == digits


@pytest.mark.parametrize(
    ("text", "name"),
    [("1,234", ""), ("(5)", "numdotdecimal"), ("", "numdotdecimal"), ("many", "numwordsen"), ("1", "x")],
)
def test_figures_that_cannot_be_read(text: str, name: str) -> None:
    with pytest.raises(ValueError, match=re.escape(repr(text))):
        transformed(text, name)


def test_periods(tmp_path: Path) -> None:
    """A midnight ends the day before it; "forever" has no days; a typed member is its text."""
    midnight = (
        "<xbrli:startDate>2024-01-01T00:00:00</xbrli:startDate><xbrli:endDate>2025-01-01T00:00:00</xbrli:endDate>"
    )
    typed = (
        '<xbrli:context id="t"><xbrli:entity>'
        + ENTITY
        + '<xbrli:segment><xbrldi:typedMember dimension="acme:YearAxis">'
        "<acme:year>2020</acme:year></xbrldi:typedMember></xbrli:segment></xbrli:entity>"
        f"<xbrli:period>{YEAR}</xbrli:period></xbrli:context>"
    )
    contexts = context("m", period=midnight) + context("f", period="<xbrli:forever/>") + typed
    parsed = read(tmp_path, instance("", contexts))
    assert parsed.contexts["m"][:2] == (date(2024, 1, 1), date(2024, 12, 31))
    assert parsed.contexts["f"][:2] == (None, None)
    assert parsed.contexts["t"].dimensions == (("acme:YearAxis", "2020"),)


def test_the_most_precise_of_repeated_figures(tmp_path: Path) -> None:
    def sales(value: str, decimals: str) -> str:
        return f'<us-gaap:Revenues contextRef="year" unitRef="usd" decimals="{decimals}">{value}</us-gaap:Revenues>'

    parsed = read(tmp_path, instance(sales("120000000", "-7") + sales("123400000", "-5") + sales("123400000", "-5")))
    assert [(fact.value, fact.decimals) for fact in parsed.facts] == [(123.4e6, -5)]
    parsed = read(tmp_path, instance(sales("120000000", "-6") + sales("99", "0")))
    assert parsed.facts == ()
    assert parsed.notes == (
        "acme-20241231.xml: us-gaap:Revenues to 2024-12-31 is both 120000000 and 99; neither is used.",
    )


def test_the_accession_number_is_in_the_name_or_in_the_folder(tmp_path: Path) -> None:
    assert read(tmp_path, instance(COVER), "0000012345-25-000007.xml").accession == "0000012345-25-000007"
    folder = tmp_path / "000001234525000008"
    folder.mkdir()
    assert read(folder, instance(COVER)).accession == "0000012345-25-000008"
    assert read(folder, instance(COVER), "000001234525000009.xml").accession == "0000012345-25-000009"
    (folder / "R").mkdir()
    assert read(folder / "R", instance(COVER)).accession == "0000012345-25-000008"
    (tmp_path / "1234567890123456789").mkdir()
    assert read(tmp_path / "1234567890123456789", instance(COVER)).accession is None


def test_the_filer_is_known_without_reading_the_whole(tmp_path: Path) -> None:
    read(tmp_path, instance(COVER))
    assert filer_of(tmp_path / "acme-20241231.xml") == 12345
    (tmp_path / "page.htm").write_text("<html><p>identifier</p></html>")
    assert filer_of(tmp_path / "page.htm") is None


BAD = {
    "unknown context": (instance(REVENUE.replace("year", "yore")), 3, "us-gaap:Revenues refers to the context 'yore'"),
    "unknown context of a text": (instance(COVER.replace("year", "yore")), 3, "'yore', which is not in the document"),
    "unknown unit": (instance(REVENUE.replace('"usd"', '"eur"')), 3, "refers to the unit 'eur'"),
    "no context": (inline(fraction("1").replace('contextRef="year" ', "")), 3, "refers to the context ''"),
    "no unit": (inline(fraction("1").replace('unitRef="usd" ', "")), 3, "refers to the unit ''"),
    "no number": (instance(REVENUE.replace("120000000", "lots")), 3, "us-gaap:Revenues is not a number"),
    "infinite": (instance(REVENUE.replace("120000000", "1e999")), 3, "not finite"),
    "unknown transformation": (
        inline(fraction("1", 'format="ixt:num-roman"')),
        3,
        "unknown transformation 'num-roman'",
    ),
    "unknown prefix": (inline(fraction("1", name="gaap:Revenues")), 3, "the prefix of 'gaap:Revenues' is not declared"),
    "reversed": (
        instance("", CONTEXTS.replace("2024-01-01", "2025-01-01")),
        2,
        "starts on 2025-01-01 and ends on 2024",
    ),
    "impossible date": (instance("", CONTEXTS.replace("2024-01-01", "2024-02-30")), 2, "unreadable date '2024-02-30'"),
    "no period": (instance("", context("x", period="")), 2, "the context 'x' has no period"),
    "plain page": ("<html><body><p>10-K</p></body></html>", None, "the root element is 'html'"),
    "linkbase": ('<link:linkbase xmlns:link="http://www.xbrl.org/2003/linkbase"/>', None, "is 'linkbase'"),
    "not XML": ("10-K for 2024", 1, "not well-formed XML"),
    "not closed": (instance(REVENUE)[:-13], 4, "not well-formed XML"),
    "old HTML": ("<html><body><br><p>10-K</body></html>", 1, "not well-formed XML"),
    "entities": ('<!DOCTYPE x [<!ENTITY a "b">]>\n' + instance(REVENUE)[21:], 1, "declares the entity 'a'"),
    "encoding": (instance(REVENUE).replace('"1.0"', '"1.0" encoding="shift_jis"'), 1, "an encoding that is not known"),
    "empty": ("\n", 1, "the file is empty"),
}


@pytest.mark.parametrize("case", BAD)
def test_refusals(tmp_path: Path, case: str) -> None:
    text, line, problem = BAD[case]
    with pytest.raises(SourceError) as caught:
        read(tmp_path, text, "0000012345-25-000007.xml")
    message = str(caught.value)
    assert problem in message
    assert "0000012345-25-000007.xml" + (":" if line is None else f", line {line}:") in message
    assert "\n" not in message


def test_truncated_gzip(tmp_path: Path) -> None:
    (tmp_path / "a.xml.gz").write_bytes(gzip.compress(instance(REVENUE).encode())[:-30])
    with pytest.raises(SourceError, match="truncated or damaged"):
        parse_instance(tmp_path / "a.xml.gz")


def test_damaged_documents_are_read_or_refused(tmp_path: Path) -> None:
    """Whatever byte is lost or altered: an instance, or one SourceError."""
    page = inline(
        fraction("1,234", 'scale="6" format="ixt:num-dot-decimal"') + fraction("no", 'format="ixt:fixed-zero"')
    )
    draw = random.Random(4)
    refused: list[str] = []
    for text in (page.encode(), instance(COVER + REVENUE).encode()):
        for _ in range(300):
            damaged = bytearray(text)
            for _ in range(draw.randint(1, 3)):
                damaged[draw.randrange(len(damaged))] = draw.randrange(256)
            (tmp_path / "a.xml").write_bytes(damaged[: draw.choice((len(damaged), draw.randrange(1, len(damaged))))])
            try:
                parse_instance(tmp_path / "a.xml")
            except SourceError as error:
                refused.append(str(error))
    assert len(refused) > 300
    assert not any("\n" in message for message in refused)


def test_which_files_are_documents(tmp_path: Path) -> None:
    names = ["a-20241231_htm.xml.gz", "a-20241231.htm.gz", "b-20241231.htm", "c/0000012345-25-000007.xml"]
    others = ["a-20241231.xsd", "a-20241231.xsd.xml", "a_cal.xml", "a_def.xml.gz", "a_lab.xml", "a_pre.xml.gz"]
    for name in (*names, *others, "FilingSummary.xml", "MetaLinks.json.gz", "README.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = [str(path.relative_to(tmp_path)) for path in instance_files(tmp_path)]
    assert found == ["a-20241231_htm.xml.gz", "b-20241231.htm", "c/0000012345-25-000007.xml"]
    assert list(instance_files(tmp_path / "absent")) == []


def test_every_real_document(realdata: Path) -> None:
    """Thirty-one filings of fourteen companies; every cover says whose and of when."""
    parsed = [parse_instance(path) for path in instance_files(realdata / "xbrl")]
    assert len(parsed) == 31
    assert sum(len(each.facts) for each in parsed) > 30_000
    assert {each.form for each in parsed} == {"10-K", "10-Q"}
    assert all(each.symbol and each.cik and each.period_end for each in parsed)
    assert len({each.symbol for each in parsed}) == 14
    assert {each.symbol for each in parsed} >= {
        "AAPL",
        "AMZN",
        "GOOGL",
        "JNJ",
        "KO",
        "MSFT",
        "NFLX",
        "NVDA",
        "PG",
        "XOM",
    }


def test_an_inline_document_says_what_the_instance_that_the_sec_extracted_says(realdata: Path) -> None:
    """AAPL 10-Q to 2025-03-29, 0000320193-25-000057: every figure, context by context."""
    folder = realdata / "xbrl" / "attachments" / "aapl" / "20250329"
    page, extracted = (parse_instance(folder / f"aapl-20250329{end}.gz") for end in (".htm", "_htm.xml"))
    assert sorted(page.facts, key=repr) == sorted(extracted.facts, key=repr)
    assert len(page.facts) > 600
    assert page.contexts.keys() == extracted.contexts.keys()
    assert (page.form, page.period_end, page.cik, page.fiscal_period) == ("10-Q", date(2025, 3, 29), 320193, "Q2")


def test_a_linked_folder_of_documents_is_read(tmp_path: Path) -> None:
    (tmp_path / "elsewhere" / "deep").mkdir(parents=True)
    document = tmp_path / "elsewhere" / "deep" / "0000320193-23-000106.xml"
    document.write_text("<xbrl/>")
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "xbrl").symlink_to(tmp_path / "elsewhere")
    (found,) = instance_files(tmp_path / "raw")
    assert found.resolve() == document
