"""What inputs of several domains hold in the same form."""

from __future__ import annotations

from typing import NotRequired, TypedDict


class CovarianceTable(TypedDict):
    """An annualised covariance: by reference as an edition stores it, dense or in factor form once it is resolved.

    The covariance is `matrix` (n, n), or loadings' loadings + diag(specific) with loadings (k, n) and specific (n,).
    """

    tickers: NotRequired[list[str]]
    ref: NotRequired[str]
    matrix: NotRequired[list[list[float]]]
    loadings: NotRequired[list[list[float]]]
    specific: NotRequired[list[float]]
