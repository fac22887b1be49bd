"""Evidence of sources: a closed form against integration over the coefficient."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from finskillbench_desk.engines.sources import evidence


@pytest.mark.slow
@pytest.mark.parametrize(("mean", "deviation"), [(0.0, 0.02), (0.01, 0.02), (-0.03, 0.005)])
def test_evidence_is_the_integral_over_the_coefficient(mean: float, deviation: float) -> None:
    rng = np.random.default_rng(2)
    x, s = rng.normal(size=30), rng.uniform(0.05, 0.1, 30)
    r = 0.015 * x + s * rng.normal(size=30)

    def weight(b: float) -> float:
        ratio = np.exp((norm.logpdf(r, b * x, s) - norm.logpdf(r, 0.0, s)).sum())
        return float(ratio * norm.pdf(b, mean, deviation))

    def moment(power: int) -> float:
        return quad(lambda b: b**power * weight(b), mean - 12 * deviation, mean + 12 * deviation, epsabs=1e-13)[0]

    found = evidence(np.array((x / s) @ (x / s)), np.array((x / s) @ (r / s)), mean, deviation)
    assert np.exp(float(found.log_odds)) == pytest.approx(moment(0), rel=1e-7)
    assert float(found.mean) == pytest.approx(moment(1) / moment(0), rel=1e-7)
    variance = moment(2) / moment(0) - (moment(1) / moment(0)) ** 2
    assert float(found.variance) == pytest.approx(variance, rel=1e-5)


def test_without_data_nothing_is_learned() -> None:
    found = evidence(np.zeros(1), np.zeros(1), 0.01, 0.02)
    assert found.log_odds == pytest.approx([0.0])
    assert found.mean == pytest.approx([0.01])
    assert found.variance == pytest.approx([0.0004])
