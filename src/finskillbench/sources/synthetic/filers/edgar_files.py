"""A filer's records as EDGAR serves them: company facts, submissions and small XBRL instances."""

from collections.abc import Iterator
from datetime import date, timedelta

import orjson

from finskillbench.sources.synthetic.calendar import LAST_SESSION, PROFILES, business_day
from finskillbench.sources.synthetic.filers.figures import GEOGRAPHY, INSTANTS, PRODUCT
from finskillbench.sources.synthetic.filers.filer import CASH_FLOWS, INCOME, SyntheticFiler, SyntheticFiling

_CONTRACT_REVENUE = date(2017, 12, 15)  # first day of fiscal years after which tags of the new revenue standard apply
_TAGS = {
    "operating_expenses": "OperatingExpenses",
    "operating_income": "OperatingIncomeLoss",
    "net_income": "NetIncomeLoss",
    "sga": "SellingGeneralAndAdministrativeExpense",
    "rnd": "ResearchAndDevelopmentExpense",
    "income_tax": "IncomeTaxExpenseBenefit",
    "gross_profit": "GrossProfit",
    "eps_diluted": "EarningsPerShareDiluted",
    "diluted_shares": "WeightedAverageNumberOfDilutedSharesOutstanding",
    "operating_cash_flow": "NetCashProvidedByUsedInOperatingActivities",
    "total_assets": "Assets",
    "total_liabilities": "Liabilities",
    "stockholders_equity": "StockholdersEquity",
    "minority_interest": "MinorityInterest",
    "current_assets": "AssetsCurrent",
    "current_liabilities": "LiabilitiesCurrent",
    "inventory": "InventoryNet",
    "ppe_net": "PropertyPlantAndEquipmentNet",
    "cash": "CashAndCashEquivalentsAtCarryingValue",
}
_CONTRACTS = "RevenueFromContractWithCustomerExcludingAssessedTax"
_DEPRECIATION = "DepreciationDepletionAndAmortization"
_OF_TEN_K = {"revenue": "Revenues", "depreciation_amortization": "DepreciationAmortizationAndAccretionNet"}
_UNITS = {"eps_diluted": "USD/shares", "diluted_shares": "shares"}


def gaap_tag(filer: SyntheticFiler, metric: str, filing: SyntheticFiling) -> str:
    """Return the us-gaap tag of a metric in a filing; companies choose one and change it with the standards."""
    choice = int(filer.company.security.cik[-4:]) if filer.company.security.cik else 0
    sector = filer.company.security.sector
    modern = filer.starts[filer.year_start(filing.quarter)] > _CONTRACT_REVENUE
    if filing.fiscal_period == "FY" and filing.fiscal_year in filer.quirks.of_two.get(metric, ()):
        return _OF_TEN_K[metric]
    match metric:
        case "revenue" if filer.quirks.parted:
            return "Revenues" if modern else "SalesRevenueGoodsNet"
        case "revenue" if sector in ("Financial Services", "Real Estate"):
            return "Revenues"
        case "revenue" if sector == "Utilities":
            return "RevenueFromContractWithCustomerIncludingAssessedTax" if modern else "SalesRevenueNet"
        case "revenue" if choice % 7 == 0:
            return "Revenues"
        case "revenue":
            return _CONTRACTS if modern else "SalesRevenueNet"
        case "cost_of_revenue":
            return "CostOfGoodsAndServicesSold" if choice % 2 else "CostOfRevenue"
        case "depreciation_amortization":
            # If a part of depreciation is a separate expense line, that line has the other tag.
            line = choice % 3 == 0 and not filer.quirks.expensed and filer.quirks.redefined is None
            return "DepreciationAndAmortization" if line else _DEPRECIATION
        case "capex":
            return f"PaymentsToAcquire{'ProductiveAssets' if choice % 5 == 0 else 'PropertyPlantAndEquipment'}"
        case "interest_expense":
            successor = filing.fiscal_year >= 2023 and choice % 2 == 0
            return "InterestExpenseNonoperating" if successor else "InterestExpense"
        case "receivables":
            return "ReceivablesNetCurrent" if choice % 4 == 0 else "AccountsReceivableNetCurrent"
        case "long_term_debt":
            return "LongTermDebt" if choice % 4 == 1 else "LongTermDebtNoncurrent"
        case _:
            return _TAGS[metric]


def companyfacts_json(filer: SyntheticFiler) -> bytes:
    """Return the `companyfacts` record: every figure of every filing, including comparatives."""
    security = filer.company.security
    facts: dict[str, dict[str, dict[str, list[dict[str, object]]]]] = {"dei": {}, "us-gaap": {}}

    def add(taxonomy: str, tag: str, unit: str, entry: dict[str, object]) -> None:
        facts[taxonomy].setdefault(tag, {}).setdefault(unit, []).append(entry)

    reported = [m for m in (*INCOME, *CASH_FLOWS, *INSTANTS) if m not in filer.quirks.unreported and filer.reports(m)]
    for filing in filer.filings:
        end = {
            "accn": filing.accession,
            "fy": filing.fiscal_year,
            "fp": filing.fiscal_period,
            "form": filing.form,
            "filed": filing.filed.isoformat(),
        }
        for metric in reported:
            tag, unit = gaap_tag(filer, metric, filing), _UNITS.get(metric, "USD")
            for first, last in _columns(filing, metric):
                period = {"end": filer.ends[last].isoformat()}
                if metric not in INSTANTS:
                    period = {"start": filer.starts[first].isoformat(), **period}
                for name, value in _tagged(filer, filing, metric, tag, first, last):
                    value = value if unit == "USD/shares" else round(value)
                    add("us-gaap", name, unit, {**period, "val": value, **end})
        cover = filing.filed - timedelta(days=7)
        add(
            "dei",
            "EntityCommonStockSharesOutstanding",
            "shares",
            {"end": cover.isoformat(), "val": round(filer.outstanding(cover, filing.quarter)), **end},
        )
    for entry in _proxy_entries(filer):
        add("us-gaap", "NetIncomeLoss", "USD", entry)
    return orjson.dumps(
        {
            "cik": int(security.cik or 0),
            "entityName": security.name,
            "facts": {
                taxonomy: {
                    tag: {"label": tag, "description": "", "units": {u: _framed(e) for u, e in units.items()}}
                    for tag, units in sorted(tags.items())
                }
                for taxonomy, tags in facts.items()
            },
        }
    )


def _tagged(
    filer: SyntheticFiler, filing: SyntheticFiling, metric: str, tag: str, first: int, last: int
) -> Iterator[tuple[str, float]]:
    """Yield a metric's tag and value in a column of a filing, with additional tags that accompany it."""
    quirks, sector = filer.quirks, filer.company.security.sector

    def of(name: str) -> float:
        return filer.value(filing.vintage, name, first, last)

    value = of(metric)
    match metric:
        case "revenue" if tag == "Revenues" and sector == "Real Estate":
            # Rents are leases, so that revenue from contracts is only a part of the total.
            yield _CONTRACTS, value * 0.3
        case "revenue" if quirks.parted:
            # The part has the tag that most other filers use for the total.
            yield _CONTRACTS if tag == "Revenues" else "SalesRevenueNet", round(value * 0.00093) * 1000
        case "depreciation_amortization" if filer.redefines(filing):
            yield "AmortizationOfIntangibleAssets", of("amortization")
            value -= of("amortization")
        case "income_tax" if quirks.expensed:
            yield "DepreciationAndAmortization", of("expensed_depreciation")
        case "total_assets":
            yield "LiabilitiesAndStockholdersEquity", value
        case _:
            pass
    yield tag, value


def _columns(filing: SyntheticFiling, metric: str) -> Iterator[tuple[int, int]]:
    if metric in INSTANTS:
        yield from ((quarter, quarter) for quarter in filing.balances)
    elif metric in CASH_FLOWS:
        yield from filing.cash
    else:
        yield from filing.flows
        if metric in filing.quarterly_metrics:
            yield from ((q, q) for q in filing.quarterly if (q, q) not in filing.flows)


def _framed(entries: list[dict[str, object]]) -> list[dict[str, object]]:
    """Sort entries by period and filing; the last one of each period has the calendar frame, as on EDGAR."""
    ordered = sorted(entries, key=lambda e: (str(e["end"]), str(e.get("start", "")), str(e["filed"]), str(e["accn"])))
    for entry, following in zip(ordered, [*ordered[1:], None], strict=True):
        period = (entry.get("start"), entry["end"])
        if following is not None and (following.get("start"), following["end"]) == period:
            continue
        frame = _frame(entry.get("start"), str(entry["end"]))
        if frame is not None:
            entry["frame"] = frame
    return ordered


def _frame(start: object, end: str) -> str | None:
    """Return `CY2019`, `CY2019Q1` or `CY2019Q1I`; None for a year to date."""
    last = date.fromisoformat(end)
    if start is None:
        middle = last - timedelta(days=45)
        return f"CY{middle.year}Q{(middle.month + 2) // 3}I"
    days = (last - date.fromisoformat(str(start))).days + 1
    middle = last - timedelta(days=days // 2)
    if 335 <= days <= 395:
        return f"CY{middle.year}"
    return f"CY{middle.year}Q{(middle.month + 2) // 3}" if 61 <= days <= 121 else None


def _proxies(filer: SyntheticFiler) -> Iterator[tuple[SyntheticFiling, str, date]]:
    """Yield (10-K, accession, day) of the yearly proxy statements, some three months after the year's end."""
    cik = filer.company.security.cik
    for filing in filer.filings:
        day = business_day(filing.filed + timedelta(days=45))
        if filing.form == "10-K" and day <= LAST_SESSION:
            yield filing, f"{cik}-{day.year % 100:02d}-{900_000 + filing.fiscal_year:06d}", day


def _proxy_entries(filer: SyntheticFiler) -> Iterator[dict[str, object]]:
    """Yield net income of pay-versus-performance tables (from fiscal 2022), rounded to millions."""
    if not filer.quirks.proxy:
        return
    for filing, accession, day in _proxies(filer):
        if filing.fiscal_year < 2022:
            continue
        first, last = filing.flows[0]
        income = filer.value(filing.vintage, "net_income", first, last)
        yield {
            "start": filer.starts[first].isoformat(),
            "end": filer.ends[last].isoformat(),
            "val": round(income / 1e6) * 1_000_000,
            "accn": accession,
            "fy": filing.fiscal_year,
            "fp": "FY",
            "form": "DEF 14A",
            "filed": day.isoformat(),
        }


def submissions_json(filer: SyntheticFiler) -> bytes:
    """Return the `submissions` record: periodic reports, proxies and notices of late filing, newest first."""
    security = filer.company.security
    code, description = PROFILES[security.sector].sic
    city, state = filer.company.headquarters.split(", ")
    rows: list[tuple[date, str, str, str, str]] = []
    for filing in filer.filings:
        period = filer.ends[filing.quarter].isoformat()
        rows.append((filing.filed, filing.form, filing.accession, period, filing.accepted))
        if filer.quirks.late and not filing.form.endswith("/A"):
            day = business_day(filer.ends[filing.quarter] + timedelta(days=41))
            accession = f"{security.cik}-{day.year % 100:02d}-{800_000 + filing.quarter:06d}"
            rows.append((day, f"NT {filing.form}", accession, period, f"{day.isoformat()}T17:00:00.000Z"))
    for _, accession, day in _proxies(filer):
        rows.append((day, "DEF 14A", accession, "", f"{day.isoformat()}T16:05:00.000Z"))
    rows.sort(key=lambda row: (row[0], row[4], row[2]), reverse=True)
    xbrl = [int(form.startswith("10-")) for _, form, *_ in rows]
    record = {
        "cik": security.cik,
        "entityType": "operating",
        "sic": str(code),
        "sicDescription": description,
        "name": security.name,
        "tickers": [security.symbol],
        "exchanges": [security.exchange],
        "category": "Large accelerated filer",
        "fiscalYearEnd": _year_end(filer),
        "stateOfIncorporation": "DE",
        "addresses": {"business": {"city": city.upper(), "stateOrCountryDescription": state}},
        "formerNames": list[object](),
        "filings": {
            "recent": {
                "accessionNumber": [row[2] for row in rows],
                "filingDate": [row[0].isoformat() for row in rows],
                "reportDate": [row[3] for row in rows],
                "acceptanceDateTime": [row[4] for row in rows],
                "form": [row[1] for row in rows],
                "isXBRL": xbrl,
                "isInlineXBRL": [0] * len(rows),
                "primaryDocument": [f"{row[2]}.htm" for row in rows],
            },
            "files": list[object](),
        },
    }
    return orjson.dumps(record)


def _year_end(filer: SyntheticFiler) -> str:
    return next(filer.ends[f.quarter].strftime("%m%d") for f in reversed(filer.filings) if f.form == "10-K")


def instances(filer: SyntheticFiler) -> Iterator[tuple[str, bytes]]:
    """Yield (accession, XBRL instance) per filing: cover, totals, and revenue by product and region."""
    for filing in filer.filings:
        yield filing.accession, _instance(filer, filing).encode()


def _instance(filer: SyntheticFiler, filing: SyntheticFiling) -> str:
    security = filer.company.security
    entity = f'<entity><identifier scheme="http://www.sec.gov/CIK">{security.cik}</identifier>'
    contexts: list[str] = []
    facts: list[str] = []

    def context(period: str, *members: tuple[str, str]) -> str:
        name = f"c{len(contexts)}"
        inside = "".join(
            f'<xbrldi:explicitMember dimension="{axis}">{member}</xbrldi:explicitMember>' for axis, member in members
        )
        segment = f"<segment>{inside}</segment>" if inside else ""
        contexts.append(f'<context id="{name}">{entity}{segment}</entity><period>{period}</period></context>')
        return name

    def amount(tag: str, where: str, value: float) -> None:
        facts.append(f'<us-gaap:{tag} contextRef="{where}" unitRef="usd" decimals="-3">{round(value)}</us-gaap:{tag}>')

    first, last = filer.year_start(filing.quarter), filing.quarter
    cover = context(_duration(filer, first, last))
    dei = {
        "DocumentType": filing.form,
        "AmendmentFlag": "true" if filing.form.endswith("/A") else "false",
        "DocumentPeriodEndDate": filer.ends[last].isoformat(),
        "DocumentFiscalYearFocus": str(filing.fiscal_year),
        "DocumentFiscalPeriodFocus": filing.fiscal_period,
        "EntityRegistrantName": security.name,
        "EntityCentralIndexKey": security.cik,
        "TradingSymbol": security.symbol,
    }
    facts.extend(f'<dei:{tag} contextRef="{cover}">{text}</dei:{tag}>' for tag, text in dei.items())
    amount("NetIncomeLoss", cover, filer.value(filing.vintage, "net_income", first, last))
    balance = context(f"<instant>{filer.ends[last]}</instant>")
    amount("Assets", balance, filer.value(filing.vintage, "total_assets", last, last))

    revenue = gaap_tag(filer, "revenue", filing)
    money = filer.vintages[filing.vintage].money
    axes = {PRODUCT: filer.quirks.axis or "", GEOGRAPHY: "srt:StatementGeographicalAxis"}
    for first, last in filer.segment_columns(filing):
        period = _duration(filer, first, last)
        amount(revenue, context(period), filer.value(filing.vintage, "revenue", first, last))
        sums: list[tuple[str, int]] = []
        for axis, dimension in axes.items():
            for part, member in filer.members(filing, axis, first, last):
                value = int(money[part][first : last + 1].sum())
                amount(revenue, context(period, (dimension, member)), value)
                sums += [(member, value)] if axis == PRODUCT else []
        if filer.quirks.subtotal and sums:
            # The total of goods, as real filers print with us-gaap:ProductMember.
            goods = sum(value for _, value in sums[:-1])
            amount(revenue, context(period, (axes[PRODUCT], "us-gaap:ProductMember")), goods)
        if filer.quirks.crossed and filer.quirks.geography and sums:
            both = ((axes[PRODUCT], sums[0][0]), (axes[GEOGRAPHY], "country:US"))
            amount(revenue, context(period, *both), sums[0][1] // 2000 * 1000)
    return _document(filer, filing, contexts, facts)


def _document(filer: SyntheticFiler, filing: SyntheticFiling, contexts: list[str], facts: list[str]) -> str:
    prefix = filer.company.security.symbol.lower()
    year = max(2016, filing.filed.year) - (filing.filed.month < 6)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<xbrl xmlns="http://www.xbrl.org/2003/instance" xmlns:xbrldi="http://xbrl.org/2006/xbrldi" '
        'xmlns:iso4217="http://www.xbrl.org/2003/iso4217" '
        f'xmlns:dei="http://xbrl.sec.gov/dei/{year}" xmlns:us-gaap="http://fasb.org/us-gaap/{year}" '
        f'xmlns:srt="http://fasb.org/srt/{year}" xmlns:country="http://xbrl.sec.gov/country/{year}" '
        f'xmlns:{prefix}="http://example.com/{filer.ends[filing.quarter]:%Y%m%d}">\n'
        + "\n".join(contexts)
        + '\n<unit id="usd"><measure>iso4217:USD</measure></unit>\n'
        + "\n".join(facts)
        + "\n</xbrl>\n"
    )


def _duration(filer: SyntheticFiler, first: int, last: int) -> str:
    return f"<startDate>{filer.starts[first]}</startDate><endDate>{filer.ends[last]}</endDate>"
