"""The fictional market: realistic, consistent with itself, deterministic, and recoverable from its files."""

import hashlib
from datetime import date
from pathlib import Path

import numpy as np
import pytest
from sklearn.covariance import LedoitWolf

from finskillbench.arrays import SECTORS
from finskillbench.errors import InputError
from finskillbench.sources.synthetic import SyntheticMarket, simulate, write_collection
from finskillbench.sources.synthetic.calendar import new_york_offset, sessions
from finskillbench.sources.synthetic.market.companies import cusip_check_digit, isin_of

pytestmark = pytest.mark.slow

COUNTS: dict[str, int] = dict(zip(SECTORS, (5, 4, 4, 3, 3, 2, 2, 2, 2, 2, 1), strict=True))


def _digest(folder: Path) -> str:
    state = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        state.update(path.relative_to(folder).as_posix().encode())
        state.update(path.read_bytes())
    return state.hexdigest()


@pytest.fixture(scope="module", params=[1, 2, 3])
def market(request: pytest.FixtureRequest) -> SyntheticMarket:
    return simulate(request.param)


def test_two_writes_are_the_same_bytes_and_another_seed_is_another_market(
    collection: Path, truth: SyntheticMarket, tmp_path: Path
) -> None:
    write_collection(tmp_path / "again", seed=truth.seed)
    assert _digest(tmp_path / "again") == _digest(collection)
    other = simulate(truth.seed + 1)
    assert not {s.name for s in other.securities} & {s.name for s in truth.securities}
    assert not {s.cusip for s in other.securities} >= {s.cusip for s in truth.securities}
    assert not np.isclose(other.factors, truth.factors).all(axis=1).any()
    assert other.adjusted_close[-1].tolist() != truth.adjusted_close[-1].tolist()


def test_the_calendar_is_new_yorks() -> None:
    days = sessions()
    assert len(days) == 2514
    # National days of mourning, which a rule of holidays alone would miss.
    assert not {date(2018, 12, 5), date(2025, 1, 9)} & set(days)
    assert new_york_offset(date(2024, 3, 8)) == "-05:00"
    assert new_york_offset(date(2024, 3, 11)) == "-04:00"
    assert new_york_offset(date(2024, 11, 1)) == "-04:00"
    assert new_york_offset(date(2024, 11, 4)) == "-05:00"


def test_the_covariance_looks_like_large_caps(market: SyntheticMarket) -> None:
    close = market.adjusted_close[-253:]
    covariance = LedoitWolf().fit(close[1:] / close[:-1] - 1).covariance_ * 252
    volatility = np.sqrt(np.diag(covariance))
    correlation = covariance / np.outer(volatility, volatility)
    assert volatility.min() > 0.15
    assert volatility.max() < 0.50
    assert 0.2 < correlation[np.triu_indices(30, 1)].mean() < 0.45


def test_stress_windows_lose_and_calm_years_do_not(market: SyntheticMarket) -> None:
    def move(first: date, last: date) -> float:
        inside = [first <= day <= last for day in market.days]
        return float(np.prod(1 + market.factors[inside, 0]) - 1)

    assert -0.30 < move(date(2018, 10, 1), date(2018, 12, 24)) < -0.12
    assert -0.45 < move(date(2020, 2, 20), date(2020, 3, 23)) < -0.25
    assert -0.35 < move(date(2022, 1, 3), date(2022, 10, 14)) < -0.18
    assert move(date(2016, 1, 4), date(2025, 12, 31)) > 0


def test_true_betas_are_recovered_by_regression(market: SyntheticMarket) -> None:
    """Ordinary least squares over the whole history, against the betas the generator used."""
    returns = market.adjusted_close[1:] / market.adjusted_close[:-1] - 1 - market.risk_free[1:, None]
    design = np.column_stack([np.ones(len(returns)), market.factors[1:]])
    solved, *_ = np.linalg.lstsq(design, returns, rcond=None)
    residual = returns - design @ solved
    spread = np.sqrt(np.diag(np.linalg.inv(design.T @ design))[1:, None] * residual.var(axis=0))
    betas = np.array([traits.betas for traits in market.traits])
    scores = (solved[1:] - betas.T) / spread
    assert np.abs(scores).max() < 6  # heteroscedastic errors widen the classical bands
    assert np.abs(solved[1] - betas[:, 0]).max() < 0.15


def test_caps_are_concentrated_like_the_published_universe(market: SyntheticMarket) -> None:
    assert {s: sum(c.sector == s for c in market.securities) for s in SECTORS} == COUNTS
    shares = np.array([facts.diluted_shares[-1] for facts in market.fundamentals])
    sectors = np.array([s.sector for s in market.securities])
    at = market.days.index(date(2025, 6, 30))
    weights = market.adjusted_close[at] * shares
    weights = weights / weights.sum()
    assert 0.09 < weights.max() < 0.13
    assert 0.18 < max(weights[sectors == s].sum() for s in SECTORS) < 0.24
    assert weights.min() > 0.002


def test_statements_agree_with_each_other_and_with_the_price(market: SyntheticMarket) -> None:
    ratios = []
    for i, facts in enumerate(market.fundamentals):
        annual, balances = facts.annual, facts.balances
        for name in ("revenue", "netIncome", "opIncome", "ocf"):
            for end, value in zip(facts.annual_ends, annual[name], strict=True):
                last = facts.quarter_ends.index(end)
                assert facts.quarterly[name][last - 3 : last + 1].sum() == value
        np.testing.assert_array_equal(annual["revenue"] - annual["costOfRevenue"], annual["grossProfit"])
        np.testing.assert_array_equal(annual["grossProfit"] - annual["sga"] - annual["rnd"], annual["opIncome"])
        np.testing.assert_array_equal(balances["assets"] - balances["liabilities"], balances["equity"])
        np.testing.assert_array_equal(np.round(annual["netIncome"] / facts.diluted_shares, 2), annual["eps"])
        kept = annual["netIncome"] - annual["dividendsPaid"] - annual["buybacks"]
        np.testing.assert_array_equal(np.diff(balances["equity"]), kept[1:])
        assert (annual["sga"] > 0).all()
        assert (annual["rnd"] > 0).all()
        assert (balances["equity"] > 0).all()
        at = max(k for k, day in enumerate(market.days) if day <= facts.annual_ends[-1])
        ratios.append(market.adjusted_close[at, i] * facts.diluted_shares[-1] / annual["netIncome"][-1])
    assert 14 < np.median(ratios) < 28
    quarters = np.concatenate([facts.quarterly["netIncome"] for facts in market.fundamentals])
    assert 0.11 < (quarters < 0).mean() < 0.20


def test_splits_are_restated_as_far_as_reports_repeat_them() -> None:
    """Shares jump by the ratio between the third year before the split's report and the one before that."""
    seen = 0
    for seed in range(5):
        market = simulate(seed)
        for traits, facts in zip(market.traits, market.fundamentals, strict=True):
            growth = facts.diluted_shares[1:] / facts.diluted_shares[:-1]
            if traits.split is None:
                assert np.abs(growth - 1).max() < 0.05
                continue
            day, ratio = market.days[traits.split[0]], traits.split[1]
            year = day.year + (day.month > traits.fiscal_month)
            jump = facts.annual_ends[int(np.argmax(growth)) + 1].year
            if year - 2 > facts.annual_ends[0].year:
                assert jump == year - 2
                assert growth.max() == pytest.approx(ratio, rel=0.05)
                seen += 1
    assert seen >= 5


def test_identifiers_carry_valid_check_digits_and_belong_to_nobody() -> None:
    market = simulate(11, names=300)
    securities = market.securities
    assert len({s.symbol for s in securities}) == len({s.cik for s in securities}) == 300
    assert len({s.cusip for s in securities}) == len({s.name for s in securities}) == 300
    for s in securities:
        assert len(s.symbol) == 5
        assert s.cusip is not None
        assert s.isin is not None
        assert s.cusip[3:5] == "99"
        digits = "".join(str(int(symbol, 36)) for symbol in s.isin)
        luhn = sum(sum(divmod(int(d) * (1 + k % 2), 10)) for k, d in enumerate(reversed(digits)))
        assert luhn % 10 == 0
    assert {s: sum(c.sector == s for c in securities) for s in SECTORS} == {s: 10 * n for s, n in COUNTS.items()}


def test_a_published_cusip_and_isin_check() -> None:
    assert cusip_check_digit("03783310") == "0"  # Apple: 037833100, US0378331005
    assert isin_of("037833100") == "US0378331005"


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_fifteen_names_are_a_market() -> None:
    """Of seed 3 the largest sector has one name, which cannot be the largest share of the market alone."""
    small = simulate(3, names=15)
    assert len({security.sector for security in small.securities}) == 10
    close = small.adjusted_close[-1]
    caps = np.array([f.latest_shares[1] * price for f, price in zip(small.fundamentals, close, strict=True)])
    assert caps.max() / caps.sum() < 0.25


def test_wrong_arguments_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="names=14"):
        simulate(1, names=14)
    with pytest.raises(InputError, match="seed=-1"):
        simulate(-1)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(InputError, match="not an empty folder"):
        write_collection(tmp_path / "full", seed=1)
    assert [p.name for p in tmp_path.iterdir()] == ["full"]
