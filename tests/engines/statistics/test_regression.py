"""Rolling least squares against independent solvers, with gaps, levels and absences."""

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.regression.rolling import RollingOLS
from tests.sampling import examples

from finskillbench.engines.statistics.regression import rolling_ols
from finskillbench.errors import DimensionError, InputError

pytestmark = pytest.mark.slow


def _data(seed: int, length: int = 300, m: int = 4, k: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((length, k)) * 0.01
    return x @ rng.standard_normal((k, m)) + rng.standard_normal((length, m)) * 0.01, x


def _direct(y: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, float]:
    """Coefficients (intercept first) and r² of one window by lstsq on the rows observed."""
    rows = ~np.isnan(y) & ~np.isnan(x).any(axis=1)
    design = np.column_stack([np.ones(rows.sum()), x[rows]])
    coefficients, *_ = np.linalg.lstsq(design, y[rows], rcond=None)
    residual = y[rows] - design @ coefficients
    return coefficients, 1 - residual @ residual / np.sum((y[rows] - y[rows].mean()) ** 2)


def test_equals_statsmodels_on_whole_windows() -> None:
    y, x = _data(1, length=700, m=3, k=6)
    fit = rolling_ols(y, x)
    assert fit.alpha.shape == (449, 3)
    assert fit.beta.shape == (449, 3, 6)
    for j in range(3):
        oracle = RollingOLS(y[:, j], sm.add_constant(x), 252, min_nobs=120).fit()
        np.testing.assert_allclose(fit.alpha[:, j], oracle.params[251:, 0], rtol=0, atol=1e-12)
        np.testing.assert_allclose(fit.beta[:, j], oracle.params[251:, 1:], rtol=0, atol=1e-11)
        np.testing.assert_allclose(fit.r2[:, j], oracle.rsquared[251:], rtol=0, atol=1e-11)
    assert (fit.n_obs == 252).all()


@settings(max_examples=examples(40))
@given(seed=st.integers(0, 10**6), window=st.integers(12, 60), missing=st.floats(0, 0.6))
def test_equals_lstsq_whatever_is_missing(seed: int, window: int, missing: float) -> None:
    y, x = _data(seed, length=130, m=3, k=2)
    rng = np.random.default_rng(seed)
    y[rng.random(y.shape) < missing] = np.nan
    x[rng.random(len(x)) < missing / 10] = np.nan
    min_obs = 8
    fit = rolling_ols(y, x, window, min_obs)
    assert fit.rows.tolist() == list(range(window - 1, 130))
    for w, end in enumerate(fit.rows):
        part = slice(end - window + 1, end + 1)
        for j in range(3):
            usable = int((~np.isnan(y[part, j]) & ~np.isnan(x[part]).any(axis=1)).sum())
            assert fit.n_obs[w, j] == usable
            if usable < min_obs:
                assert np.isnan([fit.alpha[w, j], fit.r2[w, j], *fit.beta[w, j]]).all()
                continue
            coefficients, r2 = _direct(y[part, j], x[part])
            np.testing.assert_allclose([fit.alpha[w, j], *fit.beta[w, j]], coefficients, rtol=1e-8, atol=1e-10)
            assert fit.r2[w, j] == pytest.approx(r2, abs=1e-9)


def test_an_exact_relation_is_recovered() -> None:
    _, x = _data(2)
    slopes = np.array([[1.5, -2.0], [0.25, 3.0], [0.0, -1.0]])
    fit = rolling_ols(x @ slopes + [0.01, -0.02], x)
    np.testing.assert_allclose(fit.beta, np.broadcast_to(slopes.T, fit.beta.shape), atol=1e-12)
    np.testing.assert_allclose(fit.alpha, np.broadcast_to([0.01, -0.02], fit.alpha.shape), atol=1e-14)
    np.testing.assert_allclose(fit.r2, 1.0, atol=1e-12)


def test_level_costs_no_digits() -> None:
    """Slopes do not depend on the level of the data; uncentred running totals err by 0.03 here."""
    y, x = _data(3, length=1000)
    plain = rolling_ols(y, x)
    lifted = rolling_ols(y + 1e4, x + 1e4)
    np.testing.assert_allclose(lifted.beta, plain.beta, atol=1e-8)  # 1e-12 of rounding in data of size 1e-2
    np.testing.assert_allclose(lifted.r2, plain.r2, atol=1e-8)


def test_chosen_rows_equal_the_same_rows_of_all() -> None:
    y, x = _data(4, length=600)
    y[10:200, 1] = np.nan
    rows = np.array([251, 272, 273, 503, 504, 599])
    every, some = rolling_ols(y, x), rolling_ols(y, x, rows=rows)
    np.testing.assert_array_equal(some.n_obs, every.n_obs[rows - 251])
    np.testing.assert_allclose(some.beta, every.beta[rows - 251], rtol=0, atol=1e-12)
    np.testing.assert_allclose(some.alpha, every.alpha[rows - 251], rtol=0, atol=1e-15)


def test_a_window_depends_on_its_own_rows_only() -> None:
    y, x = _data(5, length=500)
    before = rolling_ols(y, x)
    y[400:] *= 7
    x[:100] += 0.05
    after = rolling_ols(y, x)
    untouched = (before.rows < 400) & (before.rows - 251 >= 100)
    assert untouched.sum() == 49
    np.testing.assert_allclose(after.beta[untouched], before.beta[untouched], rtol=0, atol=1e-12)


def test_many_columns_are_cut_into_parts() -> None:
    y, x = _data(6, length=260, m=600)
    fit = rolling_ols(y, x)
    np.testing.assert_allclose(fit.beta[-1, 599], _direct(y[8:, 599], x[8:])[0][1:], atol=1e-12)


def test_short_history_gives_no_window_and_constant_y_no_r2() -> None:
    y, x = _data(7, length=100)
    assert rolling_ols(y, x).beta.shape == (0, 4, 3)
    fit = rolling_ols(np.full((100, 1), 0.3), x, window=50, min_obs=20)
    np.testing.assert_allclose(fit.beta, 0, atol=1e-12)
    assert np.isnan(fit.r2).all()
    assert (fit.n_obs == 50).all()


def test_refusals_name_the_trouble() -> None:
    y, x = _data(8)
    with pytest.raises(DimensionError, match="one T"):
        rolling_ols(y[:-1], x)
    with pytest.raises(InputError, match="collinear in the window ending at row 251"):
        rolling_ols(y, np.column_stack([x, x[:, 0] + x[:, 1]]))
    with pytest.raises(InputError, match="regressor 3 is constant"):
        rolling_ols(y, np.column_stack([x, np.ones(len(x))]))
    with pytest.raises(InputError, match="min_obs 4"):
        rolling_ols(y, x, min_obs=4)
    with pytest.raises(InputError, match="increase strictly"):
        rolling_ols(y, x, rows=np.array([250, 260]))
    y[0, 0] = np.inf
    with pytest.raises(InputError, match="infinite"):
        rolling_ols(y, x)
