"""The panels of a collection without prices: companies' filings, and tables of the market that have no rows."""

import polars as pl

from finskillbench.panels.columns import schema_of
from finskillbench.panels.filings.statements import FundamentalPanels
from finskillbench.panels.report import PanelReport
from finskillbench.panels.store import TABLES
from finskillbench.panels.tables import Panels, Tables

_LONG = ("returns", "factors", "factor_exposures", "benchmark_weights", "views", "liquidity")


def of_filings_alone(fundamentals: FundamentalPanels) -> Panels:
    """The panels of filings alone: those of the market have no rows, and no column of a name or a series."""
    of_no_name = pl.DataFrame(schema={"date": pl.Date})
    return Panels(
        symbols=(),
        sectors={},
        month_ends=(),
        tables=fundamentals.tables.over(
            Tables(
                {
                    "prices": of_no_name,
                    "macro": of_no_name,
                    **{name: pl.DataFrame(schema=schema_of(TABLES[name])) for name in _LONG},
                }
            )
        ),
        regimes={},
        covariance={},
        risk_free={},
        report=PanelReport(
            first_session=None,
            last_session=None,
            sessions=0,
            observations={},
            forward_filled={},
            gaps=(),
            jumps=(),
            short_history=(),
            absent_signals={},
            stale_shares={},
            shrinkage={},
            ridged=(),
            notes=fundamentals.notes,
            unusable=fundamentals.unusable,
        ),
    )
