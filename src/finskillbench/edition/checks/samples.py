"""Check the episodes of a subtask together for repetition, order of difficulty, and labels revealed by input shape.

A classifier sees only the shape of an input: fields, words, lengths, order and decimals. It trains on one half of the
edition, split by company, portfolio or date, or on the whole edition if one of another seed is available for the test.
Within one edition the baseline is the most common answer per form, since fourth quarters differ between markets.
"""

from __future__ import annotations

import math
import re
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import fmean
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from finskillbench.arrays import Floats
from finskillbench.domains.building import BuiltTask
from finskillbench.edition import Edition
from finskillbench.edition.checks.agent_view import CheckContext
from finskillbench.edition.checks.reads import leaves
from finskillbench.edition.parts import LEVELS, work_of
from finskillbench.episode import Episode, JsonObject
from finskillbench.findings import Findings
from finskillbench.scoring.values import as_object, is_array, is_object, numbers
from finskillbench.sums import exact_sum

_LEAST_EPISODES = 12
"""Minimum number of training episodes, and of test episodes."""
_LEAST_SHARE = 0.1
"""Minimum joint share of the rarer classes; a label that hardly varies is not tested."""
_MARGIN, _SIGMAS = 0.05, 3.0
"""Accuracy above the majority's rate, absolute and in standard errors, beyond which it is significant.

The standard error is the larger of the binomial and the clustered one: quarters of one company are correlated, so
there are far fewer independent observations than episodes.
"""
_SHORT = 40
_TREES = 60
_DIGIT = re.compile(r"\d")

Features: TypeAlias = dict[str, float]


class _Example(NamedTuple):
    """Visible shape of an episode, its group and form, and the categorical parts of its label."""

    group: str
    form: str
    shape: Features
    labels: dict[str, str]


def check_signature(context: CheckContext, episodes: Sequence[Episode], findings: Findings) -> None:
    """Check that input shapes predict no categorical label part better than the most common answer."""
    name = episodes[0].sub_task
    if context.other is not None and name in context.other.sub_tasks:
        seen, tried = (context.edition, episodes), (context.other, context.other.episodes([name]))
    else:
        halves: tuple[list[Episode], list[Episode]] = ([], [])
        for episode in episodes:
            halves[zlib.crc32(_group(episode).encode()) % 2].append(episode)
        seen, tried = (context.edition, halves[0]), (context.edition, halves[1])
    if min(len(seen[1]), len(tried[1])) < _LEAST_EPISODES:
        findings.figures["too_few_to_learn_from"] = [name]
        return
    known, unknown = _read(*seen), _read(*tried)
    if seen[0] is not tried[0]:  # the most common answer of a form differs between markets
        unknown = [one._replace(form="") for one in unknown]
    for target in sorted({key for one in known for key in one.labels}):
        _try(target, known, unknown, name, findings)


def _group(episode: Episode) -> str:
    """Return the key that must not occur on both sides of the split: a company, a portfolio, or else a date."""
    portfolio = as_object(episode.input.get("portfolio")).get("portfolio_id")
    return str(episode.input.get("symbol") or portfolio or episode.as_of_date)


def _read(edition: Edition, episodes: Sequence[Episode]) -> list[_Example]:
    return [
        _Example(
            _group(episode),
            str(episode.input.get("form_type", "")),
            dict(_shape(episode.input)),
            dict(_categories(edition.truth(episode.task_id).expected_output)),
        )
        for episode in episodes
    ]


def _shape(value: object, path: str = "") -> Iterator[tuple[str, float]]:
    """Yield shape features of a value, without reading its numbers."""
    if is_object(value):
        yield f"{path} keys", float(len(value))
        for place, (key, item) in enumerate(value.items()):
            if not path or len(value) <= _SHORT:
                yield f"{path}.{key} place", float(place)
                yield from _shape(item, f"{path}.{key}")
    elif is_array(value):
        yield f"{path} length", float(len(value))
        if value and is_object(value[0]):
            for place, item in enumerate(value):
                kind = item.get("type") if is_object(item) else None
                if isinstance(kind, str):
                    yield f"{path} {kind} place", float(place)
    elif isinstance(value, str):
        pattern = _DIGIT.sub("0", value)
        yield (f"{path}={pattern}", 1.0) if len(value) <= _SHORT else (f"{path} characters", float(len(value)))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield f"{path} decimals", float(len(f"{value!r}".partition(".")[2]))


def _categories(label: object, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the categorical parts of a label; list entries are named by their type or name."""
    if is_object(label):
        for key, item in label.items():
            yield from _categories(item, f"{path}.{key}" if path else str(key))
    elif is_array(label):
        for item in label:
            name = next(iter(item.values()), None) if is_object(item) else None
            if isinstance(name, str):
                yield from _categories(item, f"{path}[{name}]")
    elif isinstance(label, bool | str) or (isinstance(label, int) and label in (0, 1)):
        yield path, str(label)


def _try(
    target: str, known: Sequence[_Example], unknown: Sequence[_Example], sub_task: str, findings: Findings
) -> None:
    """Train on one label part of the known episodes and test on the unknown ones."""
    learn, test = ([one for one in part if target in one.labels] for part in (known, unknown))
    learnt = Counter(one.labels[target] for one in learn)
    if min(len(learn), len(test)) < _LEAST_EPISODES or max(learnt.values()) > (1 - _LEAST_SHARE) * len(learn):
        return
    labels = np.array([one.labels[target] for one in test])
    right = _guesses([(one.shape, one.labels[target]) for one in learn], [one.shape for one in test]) == labels
    common = labels == _commonest(labels, [one.form for one in test])
    lead, error = _lead(right.astype(float) - common.astype(float), [one.group for one in test])
    majority = float(common.mean())
    findings.add("targets")
    findings.widest("greatest_lead_over_majority", max(lead, 0.0))
    binomial = math.sqrt(max(majority * (1 - majority), 1 / len(test)) / len(test))
    chance = lead <= max(_MARGIN, _SIGMAS * max(error, binomial))
    message = f"shapes of {len(test)} inputs predict {right.mean():.0%}, the most common answer {majority:.0%}"
    findings.expect(chance, sub_task, message, target)


def _commonest(labels: NDArray[np.str_], forms: Sequence[str]) -> NDArray[np.str_]:
    found = labels.copy()
    for form in set(forms):
        members = np.array([one == form for one in forms])
        found[members] = Counter(labels[members].tolist()).most_common(1)[0][0]
    return found


def _lead(leads: Floats, groups: Sequence[str]) -> tuple[float, float]:
    """Return the mean of (n,) leads and its standard error, clustered by group."""
    mean = float(leads.mean())
    names, index = np.unique(groups, return_inverse=True)
    sums = np.bincount(index, weights=leads - mean)
    few = len(names) / max(len(names) - 1, 1)
    return mean, math.sqrt(few * float((sums**2).sum())) / len(leads)


def _guesses(learn: Sequence[tuple[Features, str]], test: Sequence[Features]) -> NDArray[np.str_]:
    """(n,) predictions of a random forest trained on shapes and labels."""
    from sklearn import ensemble as _ensemble
    from sklearn import feature_extraction as _extraction

    ensemble: Any = _ensemble  # scikit-learn comes without types
    extraction: Any = _extraction
    table = extraction.DictVectorizer(sparse=False)
    seen = table.fit_transform([shape for shape, _ in learn])
    forest = ensemble.RandomForestClassifier(_TREES, min_samples_leaf=2, random_state=0)
    with warnings.catch_warnings():
        # Labels that are nearly all different teach nothing; the check has to find that out.
        warnings.filterwarnings("ignore", "The number of unique classes")
        forest.fit(seen, [label for _, label in learn])
    return np.asarray(forest.predict(table.transform(test)))


LEAST_DISTINCT = 0.875
"""Minimum share of distinct labels of a subtask: 35 of 40."""
SAME_WEIGHTS = 0.05
"""Two weight tables nearer than this in L2 count as one label: a portfolio manager would not distinguish them."""
_FEW_MARKETS = 2.0
_DIGITS = 3

Vector = dict[str, float]


def check_distinct(context: CheckContext, episodes: Sequence[Episode], findings: Findings) -> None:
    """Check that at least seven in eight labels are new; report the effective number of markets."""
    labels = [context.edition.truth(episode.task_id).expected_output for episode in episodes]
    repeats = list(_repeats(labels))
    name = episodes[0].sub_task
    share = 1 - len(repeats) / len(labels)
    findings.figures["distinct"] = {name: f"{len(labels) - len(repeats)} of {len(labels)}"}
    for place, first in repeats:
        message = f"its label repeats that of {episodes[first].task_id}; {share:.0%} of {name} are distinct"
        findings.expect(share >= LEAST_DISTINCT, episodes[place].task_id, message, "expected_output")
    markets = _effective_markets(episodes)
    if markets is not None:
        dates, effective = markets
        findings.figures["markets"] = {name: f"{effective:.1f} of {dates} dates"}
        if dates > 1 and effective < _FEW_MARKETS:
            findings.warn(name, f"the expected returns of {dates} dates amount to {effective:.1f} different markets")


def _repeats(labels: Sequence[JsonObject]) -> Iterator[tuple[int, int]]:
    seen: dict[str, int] = {}
    tables: list[tuple[int, Vector]] = []
    for place, label in enumerate(labels):
        table = _table(label)
        if table is None:
            first = seen.setdefault(_rounded(label), place)
        else:
            first = next((other for other, known in tables if _distance(table, known) < SAME_WEIGHTS), place)
            tables += [(place, table)] if first == place else []
        if first != place:
            yield place, first


def _table(label: JsonObject) -> Vector | None:
    """Return the weight table in a label: numbers by name that add up to about 1."""
    for part in label.values():
        found = numbers(part) if is_object(part) else {}
        if len(found) > 1 and abs(exact_sum(found.values()) - 1) < SAME_WEIGHTS:
            return found
    return None


def _distance(left: Mapping[str, float], right: Mapping[str, float]) -> float:
    names = left.keys() | right.keys()
    return float(np.sqrt(math.fsum((left.get(name, 0.0) - right.get(name, 0.0)) ** 2 for name in names)))


def _rounded(label: JsonObject) -> str:
    parts: list[str] = []
    for path, leaf in leaves(label):
        number = isinstance(leaf, int | float) and not isinstance(leaf, bool)
        parts.append(f"{path}={leaf:.{_DIGITS}g}" if number else f"{path}={leaf!r}")
    return "\n".join(parts)


def _effective_markets(episodes: Sequence[Episode]) -> tuple[int, float] | None:
    """Return the number of dates with expected returns, and of uncorrelated ones: n^2 over the sum of r^2."""
    by_date: dict[object, Vector] = {}
    for episode in episodes:
        returns = numbers(episode.input.get("expected_returns"))
        if returns:
            by_date.setdefault(episode.as_of_date, returns)
    if not by_date:
        return None
    every = list(by_date.values())
    common = sorted(name for name in every[0] if all(name in one for one in every))
    if len(common) < 3:
        return None
    table = np.array([[one[name] for name in common] for one in every])
    if not (table.std(axis=1) > 0).all():
        return None
    correlation = cast("NDArray[np.float64]", np.atleast_2d(np.corrcoef(table)))
    return len(table), float(len(table) ** 2 / (correlation**2).sum())


def check_difficulty(context: CheckContext, episodes: Sequence[Episode], findings: Findings) -> None:
    """Check that mean decisions and computations do not fall from one level to the next.

    Reads are excluded: a table takes one call at any length. Less work makes no label wrong, so this is a warning.
    """
    if not context.edition.has_certificates:
        findings.skip("the edition has no certificates, which are needed to count the work")
        return
    name = episodes[0].sub_task
    certificates = context.edition.certificates(name)
    steps: dict[str, list[int]] = {level: [] for level in LEVELS}
    for episode in episodes:
        truth, certificate = context.edition.truth(episode.task_id), certificates.get(episode.task_id, {})
        work = work_of(BuiltTask(episode, truth, certificate), episode.input)
        steps.setdefault(episode.difficulty, []).append(work.decisions + work.computations)
    means = {level: fmean(each) for level, each in steps.items() if each}
    findings.figures["steps"] = {name: {level: round(mean, 1) for level, mean in means.items()}}
    for below, level in pairwise(means):
        findings.expectations += 1
        if means[level] < means[below]:
            message = f"{level} tasks take {means[level]:.1f} steps on average, {below} ones {means[below]:.1f}"
            findings.warn(name, message, "difficulty")
