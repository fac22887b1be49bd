"""Archives of resolved cases with unreliable labels: traces of kinds, compared by held-out likelihood, then applied.

Shapes: N cases or companies, T periods, R series, S possible starts, K kinds. A trace is a mean shift of the series
from a start on: a profile in time, times a size of each series that varies between cases.

Payload of the script: `levels` (nested lists N, T, R), `labels` and `bases` (lists of codes), `kinds`, `before`,
`starts` (list) and `profile` (multiples from the start on, the last one kept). Result: held-out log
likelihood, its error, and the share of labels by basis that is right.
"""

# pyright: basic
# Sibling modules are found by the search path of the sandbox.

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from evidence import log_factors
from scipy import optimize, special

from panels import Floats

logsumexp: Any = special.logsumexp
expit: Any = special.expit

SCALES = (0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85, 0.95, 1.05, 1.2)
"""Sizes of traces today as multiples of those in the archive."""
MISSED = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
"""Shares of managed companies that examination does not find."""


def innovations(levels: Floats, before: int) -> tuple[Floats, Floats, Floats]:
    """Return standardised innovations (N, T, R), persistence (R,) and deviations (N, R) of log levels (N, T, R).

    Means, persistence (pooled, corrected for the means taken out) and deviations come from the first `before` periods.
    A variance is drawn to the median of its series times the restlessness of its case, as far as that is likely, and
    widened until each period agrees with what the other periods give. Period 0 is lost: 0.
    """
    past = levels[:, :before] - np.nanmean(levels[:, :before], axis=1, keepdims=True)
    raw = np.nansum(past[:, 1:] * past[:, :-1], (0, 1)) / np.nansum(past[:, :-1] ** 2, (0, 1))
    persistence = np.array([_persistence(float(each), before) for each in raw])
    steps = levels[:, 1:] - persistence * levels[:, :-1]
    weight, count = np.ones((*steps.shape[:2], 1)), before - 2
    for _ in range(3):
        quiet = (weight * np.isfinite(steps))[:, : before - 1]
        steps = steps - (np.nansum(quiet * steps[:, : before - 1], 1) / quiet.sum(1))[:, None]
        known = weight[:, : before - 1] * steps[:, : before - 1] ** 2
        total = np.nansum(known, axis=1)
        usual = np.median(total, axis=0) / count
        restless = (total / usual).mean(axis=1, keepdims=True) / count
        signal = 1 - 2 / total.shape[1] / count / max(float(restless.var()), 1e-9)
        usual = usual * (1 + max(signal, 0.0) * (restless - 1))
        freedom, best = 4.0, -np.inf
        for tried in (4.0, 8.0, 16.0, 32.0, 64.0, 128.0):
            prior, both = usual * tried, (tried + count) / 2
            log = tried / 2 * np.log(prior) - both * np.log(prior + total) - special.betaln(tried / 2, count / 2)
            best, freedom = max((best, freedom), (float(log.sum()), tried))
        deviation = np.sqrt((total + usual * freedom) / (count + freedom))
        rest = (total[:, None] - known + usual[:, None] * freedom) / (count - 1 + freedom)
        deviation = deviation * np.sqrt(np.nanmean(known / rest, axis=(0, 1)) * (before / (before - 2)))
        e = np.nan_to_num(np.concatenate([np.zeros_like(steps[:, :1]), steps / deviation[:, None]], axis=1))
        weight = _weights(e, before)[:, 1:]
    return e, persistence, deviation


def _bad(e: Floats, before: int) -> tuple[float, float, Floats]:
    """Return share and variance of bad periods, in which all series of a case jump, and their log factors (N, T)."""
    share, wide, square = 0.01, 9.0, e**2
    for _ in range(20):
        logs = (square * (1 - 1 / wide) - np.log(wide)).sum(2) / 2
        p = expit(np.log(share / (1 - share)) + logs[:, 1:before])
        share = float(np.clip(p.mean(), 1e-5, 0.1))
        wide = max(9.0, float((p * square[:, 1:before].mean(2)).sum() / (p.sum() + 1e-9)))
    return share, wide, (square * (1 - 1 / wide) - np.log(wide)).sum(2) / 2


def _weights(e: Floats, before: int) -> Floats:
    """Return weights (N, T, 1), near 1, and small for bad periods before the window."""
    share, wide, logs = _bad(e, before)
    p = expit(np.log(share / (1 - share)) + logs)
    p[:, before:] = 0
    return (1 - p + p / wide)[..., None]


def bad_periods(e: Floats, before: int, when: Floats | None = None) -> Floats:
    """Return log factors (N,) of bad periods after the first `before`: take them off `log_factors` of traces.

    In a bad period all series of a case jump at once. Share and size come from the first `before` periods. `when` (N,)
    is the period of a stated change of level, which is none; the number of periods for cases without one.
    """
    share, _, logs = _bad(e, before)
    if when is not None:
        logs = np.where(np.arange(e.shape[1]) == when[:, None], 0.0, logs)
    return np.logaddexp(np.log1p(-share), np.log(share) + logs[:, before:]).sum(1)


def _persistence(raw: float, periods: int) -> float:
    """Return the persistence whose records of so many periods, less their means, have the pooled coefficient `raw`."""
    age = np.abs(np.subtract.outer(np.arange(periods), np.arange(periods)))
    centre, tried, expected = np.eye(periods) - 1 / periods, np.linspace(0, 0.98, 50), list[float]()
    for each in tried:
        covariance = centre @ each**age @ centre
        expected.append(np.diag(covariance, 1).sum() / np.diag(covariance)[:-1].sum())
    return float(np.interp(raw, expected, tried))


def less_driver(levels: Floats, driver: Floats, before: int) -> tuple[Floats, Floats]:
    """Return levels (N, T, R) less the effect of a driver (N, T), such as growth, on each series, and the effects (R,).

    Pooled least squares on changes of the first `before` periods, outliers clipped.
    """
    x = np.diff(driver[:, :before], axis=1)
    y = np.diff(levels[:, :before], axis=1)
    limit = 4 * np.nanmedian(np.abs(y), axis=(0, 1))
    effect = np.nansum(x[..., None] * np.clip(y, -limit, limit), (0, 1)) / (x * x).sum()
    return levels - driver[..., None] * effect, effect


def dispersion_factors(e: Floats, starts: Sequence[int], ratio: float) -> Floats:
    """Return log factors (N, S, R) of a variance of innovations that is `ratio` times the usual one from a start on.

    For ties between two series, pass their differences divided by the deviation of the quiet periods.
    """
    each = (e**2 * (1 - 1 / ratio) - np.log(ratio)) / 2
    return np.cumsum(each[:, ::-1], axis=1)[:, ::-1][:, list(starts)]


def profiles(
    shape: Callable[[Floats], Any], starts: Sequence[int], periods: int, persistence: Floats, driver: Any = 1.0
) -> Floats:
    """Return what a unit trace does to innovations, (N or 1, S, T, R).

    `shape` maps periods since the start (0, 1, ...) to a multiple; `driver` (N, T) multiplies it, such as a season, or
    growth of the company.
    """
    age = np.arange(periods)[None, :] - np.asarray(starts)[:, None]
    level = np.where(age >= 0, np.asarray(shape(np.maximum(age, 0)), float), 0.0)
    level = level[None] * (driver if np.isscalar(driver) else np.asarray(driver)[:, None, :])
    older = np.concatenate([np.zeros_like(level[:, :, :1]), level[:, :, :-1]], axis=2)
    return level[..., None] - persistence * older[..., None]


def joint_scores(e: Floats, before: int, *, alone: bool = False) -> tuple[Floats, Any]:
    """Return scores (N, T, R) of innovations and their information: decorrelated, each series in its place.

    Correlations come from the first `before` periods. Periods in which all series of a case jump are discounted. Scores
    of series that move `alone` keep what the others say of their noise; their information differs by series.
    """
    weight = _weights(e, before)
    known = (np.clip(e, -4, 4) * np.sqrt(weight))[:, 1:before].reshape(-1, e.shape[2])
    value, vector = np.linalg.eigh(np.corrcoef(known.T))
    inverse = (vector / value) @ vector.T
    root = (vector / np.sqrt(value)) @ vector.T
    return (weight * (e @ inverse), np.diag(inverse)) if alone else (weight * (e @ root), 1.0)


def trace_sums(
    scores: Floats, information: Any, profile: Floats, before: int, first: int = 1, moves: Floats | None = None
) -> tuple[Floats, Floats]:
    """Return information and score (N, S, R) of a trace of each series, means of the series being uncertain.

    Periods before `first` are left out; `before` is the number of periods behind each mean. `moves` (N, T, R) is what a
    change of level does to innovations, such as after an acquisition: `profiles(lambda age: 1 + 0 * age, when, periods,
    persistence)[0]` with a period for each company, `periods` for none.
    """
    h, score = profile[:, :, first:], scores[:, first:]
    h = np.broadcast_to(h, (len(score), *h.shape[1:]))
    count = before + scores.shape[1] - max(first, before)
    x = (h * h).sum(2) - h.sum(2) ** 2 / count
    y = np.einsum("nstr,ntr->nsr", h, score) - h.sum(2) * score.sum(1)[:, None] / count
    if moves is not None:
        m = moves[:, first:]
        size = np.maximum((m * m).sum(1) - m.sum(1) ** 2 / count, 1e-9)[:, None]
        cross = np.einsum("nstr,ntr->nsr", h, m) - h.sum(2) * m.sum(1)[:, None] / count
        x = x - cross**2 / size
        y = y - cross * ((m * score).sum(1) - m.sum(1) * score.sum(1) / count)[:, None] / size
    return x * information, y


@dataclass(frozen=True)
class Traces:
    """Fitted traces: `mean` and `deviation` (K, R) of sizes, shares of `starts` (S,).

    `mix` (groups, K + 1) are shares of what was done, 0 for nothing, by basis * (K + 1) + label; `kinds` (N, K + 1) the
    same case by case. `moved` (K, R) are shares of the series that move where one moves alone.
    """

    mean: Floats
    deviation: Floats
    starts: Floats
    mix: Floats
    kinds: Floats
    sizes: str
    both: bool
    moved: Floats

    def scaled(self, scale: float) -> Traces:
        """Return the same traces with other sizes."""
        deviation = self.deviation if self.sizes == "common" else self.deviation * scale
        return replace(self, mean=self.mean * scale, deviation=deviation)

    def log_factors(self, x: Floats, y: Floats) -> Floats:
        """Return log Bayes factors (N, K, S) against no trace, averaged over signs and series that move alone."""
        return logsumexp(_parts(x, y, self.mean, self.deviation, self.moved, self.sizes, self.both)[0], axis=(0, -1))


def _parts(
    x: Floats, y: Floats, mean: Floats, deviation: Floats, moved: Floats, sizes: str, both: bool
) -> tuple[Floats, Floats, Floats]:
    """Return log factors (signs, N, K, S, parts), and mean and variance of the size of each part.

    Parts are one for all series together; with sizes "alone" one for each series that may have moved.
    """
    x, y, m, d = x[:, None], y[:, None], mean[None, :, None], deviation[None, :, None]
    if sizes == "common":  # one multiple of the mean for all series of a case
        x, y, d = (x * m * m).sum(-1, keepdims=True), (y * m).sum(-1, keepdims=True), d[..., :1]
        m = np.ones_like(d)
    common, turned = log_factors(x, y, m, d)
    signs = np.array([1.0, -1.0] if both else [1.0])[:, None, None, None, None]
    logs = common + signs * turned
    logs = logs + np.log(moved[:, None]) if sizes == "alone" else logs.sum(-1, keepdims=True)
    width = 1 / (x + 1 / d**2)
    return logs - np.log(len(signs)), (y + signs * m / d**2) * width * signs, width


def _directions(usual: Floats, labels: Floats, kinds: int, both: bool) -> Floats:
    """Return the mean (K, R) of the cases of each label; with `both`, their leading direction."""
    mean = np.zeros((kinds, usual.shape[1]))
    for k in range(kinds):
        members = usual[labels == k + 1]
        if len(members) and both:
            mean[k] = np.linalg.svd(members, full_matrices=False)[2][0] * np.sqrt((members**2).sum(1).mean())
        elif len(members):
            mean[k] = members.mean(0)
    return mean


def fit_traces(
    x: Floats,
    y: Floats,
    labels: Floats,
    bases: Floats,
    kinds: int,
    *,
    sizes: str = "common",
    both: bool = False,
    rounds: int = 12,
    wrong: float = 0.15,
    start: Floats | None = None,
) -> Traces:
    """Fit traces of all kinds by expectation and maximisation; labels are 1..K, 0 for cleared; bases are codes from 0.

    A label may be wrong, more often on some bases than on others, and a cleared case may have been missed: both shares
    are estimated, from the guess `wrong` with the weight of ten cases, and for cleared ones from a third of that guess
    with the weight of a hundred, because weak evidence alone finds too many. Cleared cases do not shape the traces.
    `sizes` of a case: "common", one multiple of the kind's direction; "separate", of each series by itself; "alone",
    one series moves. `both`: a kind may move its series either way. `start` (K, R): sizes to begin with, such as those
    of `find_traces`, instead of the means by label.
    """
    groups = bases * (kinds + 1) + labels
    count = int(bases.max() + 1) * (kinds + 1)
    first = np.full((count, kinds + 1), wrong / kinds)  # pseudo-counts
    first[:: kinds + 1] /= 3
    first[np.arange(count), np.arange(count) % (kinds + 1)] += 1 - first.sum(1)
    first[np.arange(count) % (kinds + 1) > 0] *= 10
    first[:: kinds + 1] *= 100
    usual = y.sum(1) / np.maximum(x.sum(1), 1e-9)  # (N, R), where the iteration begins
    mean = _directions(usual, labels, kinds, both) if start is None else start
    deviation = np.full_like(mean, 0.4 if sizes == "common" else max(float(np.abs(mean).mean()), 0.1))
    mix, states = first / first.sum(1, keepdims=True), np.zeros((len(x), kinds + 1))
    usually = np.abs(mean) + 0.1 * np.abs(mean).mean() if start is not None else np.ones_like(mean)
    moved = usually = usually / usually.sum(1, keepdims=True)
    starts = np.full(x.shape[1], 1 / x.shape[1])
    for _ in range(rounds):
        parts, size, width = _parts(x, y, mean, deviation, moved, sizes, both)
        total = logsumexp(parts, axis=(0, -1))
        dated = logsumexp(total + np.log(starts), axis=2, keepdims=True)
        joint = np.concatenate([np.zeros((len(x), 1)), dated[..., 0]], axis=1) + np.log(mix[groups])
        states = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
        trusted = np.exp(total + np.log(starts) - dated) * (states[:, 1:] * (labels > 0)[:, None])[..., None]
        p = np.exp(parts - total[None, ..., None]) * trusted[None, ..., None]
        found = p.sum((0, 1, 3)) + 1e-9
        if sizes == "common":
            turn = np.array([1.0, -1.0][: len(p)])[:, None, None, None, None]
            square = (p * (size**2 + width)).sum((0, 4))
            mean = np.einsum("nks,nsr->kr", (p * size * turn).sum((0, 4)), y) / (
                np.einsum("nks,nsr->kr", square, x) + 1
            )
            spread = (p * ((size - 1) ** 2 + width)).sum((0, 1, 3))
            deviation = np.broadcast_to(np.sqrt((spread + 0.5) / (found + 3)), mean.shape)
        else:
            mean = (p * size).sum((0, 1, 3)) / (found + 1)
            spread = (p * ((size - mean[None, None, :, None]) ** 2 + width)).sum((0, 1, 3))
            deviation = np.sqrt((spread + 0.02) / (found + 1))
            moved = found + usually * mean.shape[1]
            moved = moved / moved.sum(1, keepdims=True)
        starts = trusted.sum((0, 1)) + 1
        starts = starts / starts.sum()
        mix = np.stack([states[groups == g].sum(0) for g in range(count)]) + first
        mix = mix / mix.sum(1, keepdims=True)
    return Traces(mean, deviation, starts, mix, states, sizes, both, moved)


def _likelihoods(found: Traces, x: Floats, y: Floats, groups: Floats) -> Floats:
    logs = logsumexp(found.log_factors(x, y) + np.log(found.starts), axis=2)
    return logsumexp(np.concatenate([np.zeros((len(logs), 1)), logs], axis=1) + np.log(found.mix[groups]), axis=1)


def find_traces(x: Floats, y: Floats, labels: Floats, bases: Floats, expected: Floats, **options: Any) -> Floats:
    """Return sizes (K, R) of traces found by clustering without labels, then named by directions and by bases.

    `expected` (K, R) is what the accounting meaning of each kind implies: 1 for a ratio that rises, -1 for one that
    falls, 0 for no effect, fractions for weaker ones; clustering begins there. Clusters are named by their likeness to
    these directions, and by each basis as far as its labels follow the clusters under any naming. Use the result as
    `start` of `fit_traces` and `held_out`.
    """
    kinds = len(expected)
    known = labels > 0
    a, b, codes, ones = x[known], y[known], bases[known], np.ones(known.sum(), int)
    usual = b.sum(1) / np.maximum(a.sum(1), 1e-9)
    start = expected * np.sqrt((usual**2).sum(1).mean() / (expected**2).sum(1).mean())
    found = fit_traces(a, b, ones, 0 * ones, kinds, start=start, wrong=kinds / (kinds + 1), **options)
    sides = [each / np.maximum(np.linalg.norm(each, axis=1, keepdims=True), 1e-9) for each in (found.mean, expected)]
    like = sides[0] @ sides[1].T
    votes = (np.abs(like) if found.both else like) * len(a) / kinds
    for code in np.unique(codes):
        counts = found.kinds[codes == code, 1:].T @ np.eye(kinds)[labels[known][codes == code] - 1]
        share = counts[optimize.linear_sum_assignment(-counts)].sum() / counts.sum()
        votes += counts * max(share - 1 / kinds, 0) ** 2
    return found.mean[np.argsort(optimize.linear_sum_assignment(-votes)[1])]


def held_out(x: Floats, y: Floats, labels: Floats, bases: Floats, kinds: int, folds: int = 5, **options: Any) -> Floats:
    """Return each case's log likelihood ratio (N,) under traces fitted to the other folds; sum to compare forms.

    The error of a difference between two forms is the deviation of the cases' differences times the root of N.
    """
    groups, out = bases * (kinds + 1) + labels, np.zeros(len(x))
    for fold in range(folds):
        test = np.arange(len(x)) % folds == fold
        found = fit_traces(x[~test], y[~test], labels[~test], bases[~test], kinds, **options)
        out[test] = _likelihoods(found, x[test], y[test], groups[test])
    return out


def group_rates(found: Floats, examined: Floats, missed: float = 0.0) -> Floats:
    """Return base rates of groups, drawn to the common rate as far as they agree; `missed` is the share not found."""
    rate = found.sum() / examined.sum()
    excess = ((found / examined - rate) ** 2).mean() - (rate * (1 - rate) / examined).mean()
    strength = rate * (1 - rate) / max(float(excess), 1e-4)
    return (found + strength * rate) / (examined + strength) / (1 - missed)


def probabilities(
    logs: Floats, base: Floats, cleared: Floats, rate: float, missed: Sequence[float] = MISSED
) -> tuple[Floats, Floats, Floats]:
    """Return the probability of each company (N,), of kinds given any (N, K), and weights (scales, missed shares).

    `logs` (A, N, K, S) are log factors for each scale of the traces today; starts, scales and `missed` count alike
    before the data. `base` (N,) and `rate` are shares found by examination, of each company's group and of all;
    `cleared` (M,) are log factors of cleared cases. A missed share m means base / (1 - m) managed ones, and
    rate * m / (1 - m) / (1 - rate) of the cleared. Kinds have shares of the list, drawn to equal ones.
    """
    total, found, kinds = np.empty((len(logs), len(missed))), list[Floats](), list[Floats]()
    for a, each in enumerate(logs):
        by_kind, mix = logsumexp(each, axis=2) - np.log(each.shape[2]), np.full(each.shape[1], 1 / each.shape[1])
        for b, share in enumerate(missed):
            prior = np.minimum(base / (1 - share), 0.95)
            for _ in range(30):
                joint = by_kind + np.log(mix)
                factor = logsumexp(joint, axis=1)
                p = expit(factor + np.log(prior) - np.log1p(-prior))
                kind = np.exp(joint - factor[:, None])
                mix = (p[:, None] * kind).sum(0) + 2
                mix = mix / mix.sum()
            hidden = min(rate * share / (1 - share) / (1 - rate), 0.95)
            total[a, b] = np.logaddexp(np.log1p(-prior), np.log(prior) + factor).sum()
            total[a, b] += np.logaddexp(np.log1p(-hidden), np.log(hidden + 1e-12) + cleared).sum()
            found.append(p)
            kinds.append(kind)
    weight = np.exp(total - logsumexp(total))
    p = np.tensordot(weight.ravel(), np.array(found), 1)
    both = np.einsum("h,hn,hnk->nk", weight.ravel(), np.array(found), np.array(kinds))
    return p, both / p[:, None], weight


def main(payload: dict[str, Any]) -> dict[str, Any]:
    """Return the held-out likelihood of one profile, and how far labels of each basis agree with it.

    Input: levels (cases, periods, series), starts and labels (cases; 0 for cleared), bases (cases), kinds and before
    (numbers), profile (multiples by age); optional sizes and both.
    """
    needed = ("levels", "starts", "labels", "bases", "kinds", "before", "profile")
    if missing := [key for key in needed if key not in payload]:
        raise ValueError(f"input_data lacks {', '.join(missing)}")
    before, kinds, multiples = int(payload["before"]), int(payload["kinds"]), np.asarray(payload["profile"], float)
    labels, bases = (np.asarray(payload[key], int) for key in ("labels", "bases"))
    e, persistence, _ = innovations(np.asarray(payload["levels"], float), before)
    shape = profiles(
        lambda age: multiples[np.minimum(age, len(multiples) - 1)], payload["starts"], e.shape[1], persistence
    )
    x, y = trace_sums(*joint_scores(e, before), shape, before)
    options = {key: payload[key] for key in ("sizes", "both") if key in payload}
    ratios, found = held_out(x, y, labels, bases, kinds, **options), fit_traces(x, y, labels, bases, kinds, **options)
    fit = found.kinds[np.arange(len(labels)), labels]
    agree = {
        str(code): round(float(fit[(bases == code) & (labels > 0)].mean()), 6) for code in np.unique(bases[labels > 0])
    }
    error = float(ratios.std() * np.sqrt(len(ratios)))
    return {"log_likelihood": round(float(ratios.sum()), 6), "error": round(error, 6), "agreement": agree}


if __name__ == "__main__":
    print(json.dumps(main(json.loads(Path(sys.argv[sys.argv.index("--input") + 1]).read_text()))))
