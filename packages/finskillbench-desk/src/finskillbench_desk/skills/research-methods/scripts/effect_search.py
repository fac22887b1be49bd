"""Search a library of forms, places and laws for effects; average over all that the data do not decide.

Results of `screen` and `refine` are plain rows. Both keep them in a JSON file if `store` names one, stop before
`seconds` have passed, and go on with what is missing when they are called again.

Payload of the script: `residuals` (T, n), `specific` (n), `values` (T + 1, n, C), `groups` (n, codes from 0), `forms`
(list; level and rank if absent), `shuffle` (true to measure chance). Result: log evidence of each form by group and in
the whole market.
"""

# pyright: basic
# Sibling modules are found by the search path of the sandbox.

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from decisions import average
from evidence import Explained, Law, chain_evidence, clock, explain, grid, in_time, log_evidence, segments, sums
from features import USUAL, Form, feature
from scipy import special

from panels import Floats, Market

logsumexp: Any = special.logsumexp

FRACTIONS = (0.03, 0.05, 0.08, 0.14, 0.24)
"""Sizes as fractions of the usual specific deviation."""
COURSES = ((0, False), (1, False), (1, True), (4, False), (4, True))
"""Expected changes of state in the whole record, and whether they are common to all places."""
CHAINS = ((5, 5), (9, 4))
"""Expected leaves and entries in the whole record of effects that go off and on."""
_SLOW = "one family alone takes too long: call again, then with a larger step or with fewer sources (market.take)"


def library(market: Market, half_life: Sequence[float] = (0.0,)) -> list[Law]:
    """Return a grid of laws with neutral sizes, signs, courses and, if named, half-lives."""
    usual, signs, periods = float(np.median(market.specific)), (True, False), len(market.residuals)
    return [
        Law(usual * size, both=both, nothing=nothing, hazard=changes / periods, common=common, half_life=half)
        for half, size, both, nothing, (changes, common) in product(half_life, FRACTIONS, signs, (0.15, 0.6), COURSES)
    ]


def _evidence(x: Floats, y: Floats, laws: Sequence[Law], step: int, deadline: float) -> list[float]:
    bounds, out = grid(len(x), step), dict[Law, float]()
    for law in laws:
        if law.chain:
            in_time(deadline)
            out[law] = chain_evidence(x, y, law)
    for half in dict.fromkeys(law.half_life for law in laws):
        ours = [law for law in laws if law.half_life == half and not law.chain]
        plain = list(dict.fromkeys(law._replace(hazard=0.0, common=False) for law in ours))
        logs = segments(x, y, plain, bounds, deadline).astype(float)
        for law in ours:
            place = plain.index(law._replace(hazard=0.0, common=False))
            out[law] = log_evidence(logs[:, :, place], bounds, law)
    return [out[law] for law in laws]


def _resume(
    keys: Sequence[str], compute: Callable[[str, float], Any], seconds: float, store: str | None
) -> dict[str, Any]:
    """Return what is stored and what can be computed in time, by key."""
    began, longest = clock(), 0.0
    found: dict[str, Any] = json.loads(Path(store).read_text()) if store and Path(store).exists() else {}
    missing = [key for key in keys if key not in found]
    for k, key in enumerate(missing):
        start = clock()
        try:
            if start - began + longest > seconds:
                raise TimeoutError
            found[key] = compute(key, began + seconds)
        except TimeoutError:
            print(f"{len(missing) - k} of {len(keys)} are missing: call again with the same store" if k else _SLOW)
            break
        longest = max(longest, clock() - start)
    else:
        print("done: nothing is missing")
    if store:
        Path(store).write_text(json.dumps(found))
    return found


def _step(market: Market, step: int, dates: int, least: int = 1) -> int:
    return step or max(least, -(-len(market.residuals) // dates))


def screen(
    market: Market,
    maps: Mapping[str, Floats],
    forms: Mapping[str, Form] | Sequence[str] = USUAL,
    *,
    laws: Sequence[Law] | None = None,
    step: int = 0,
    seconds: float = 7.0,
    store: str | None = None,
) -> dict[str, float]:
    """Return log evidence of each family "form @ map", laws averaged, with dates `step` periods apart.

    Without `laws`, the library with lasting effects, with effects that halve in a fifth of the record, and some that go
    off and on; without `step`, at most 24 dates.
    """
    named: Mapping[str, Form] = forms if isinstance(forms, Mapping) else {form: form for form in forms}
    plain, periods = library(market, (0.0, len(market.residuals) / 5)), len(market.residuals)
    steady = [law for law in plain[: len(plain) // 2] if not law.hazard and law.nothing < 0.5][1:-1:2]
    chains = [law._replace(chain=(CHAINS[0][0] / periods, CHAINS[0][1] / periods)) for law in steady]
    tried = laws or [*plain, *chains]
    known: dict[str, Floats] = {}

    def compute(key: str, deadline: float) -> float:
        name, _, place = key.partition(" @ ")
        if name not in known:
            known.clear()
            known[name] = feature(market, named[name])[0]
        if not known[name].shape[2]:
            return -np.inf
        logs = _evidence(*sums(market, known[name], maps[place]), tried, _step(market, step, 24, 3), deadline)
        return float(logsumexp(logs) - np.log(len(tried)))

    found = _resume([f"{name} @ {key}" for name in named for key in maps], compute, seconds, store)
    ordered = dict(sorted(found.items(), key=lambda each: -each[1]))
    if next(iter(ordered), "").startswith(("mean", "surprise", "change")) and forms is USUAL:
        print("a form over a span leads: screen features.SPANS into the same store")
    return ordered


def refine(
    market: Market,
    maps: Mapping[str, Floats],
    families: Sequence[str],
    *,
    forms: Mapping[str, Form] | None = None,
    half_life: Sequence[float] = (0.0,),
    step: int = 0,
    seconds: float = 7.0,
    store: str | None = None,
) -> list[dict[str, Any]]:
    """Return a row for each family and law, with log evidence on finer dates; families as `screen` names them.

    Without `step`, at most 40 dates, here and in `forecast`.
    """

    def compute(key: str, deadline: float) -> list[dict[str, Any]]:
        family, _, half = key.rpartition(" / ")
        name, _, place = family.partition(" @ ")
        x, y = sums(market, feature(market, (forms or {}).get(name, name))[0], maps[place])
        laws, logs = library(market, (0.0 if half == "chain" else float(half),)), list[float]()
        if half == "chain":
            chains = [(leave / len(x), enter / len(x)) for leave, enter in CHAINS]
            laws = [law._replace(chain=chain) for law in laws for chain in chains if not law.hazard]
            for law in laws:
                in_time(deadline)
                logs.append(chain_evidence(x, y, law))
        else:
            logs = _evidence(x, y, laws, _step(market, step, 40), deadline)
        return [{"form": name, "map": place, "law": list(law), "log": log} for law, log in zip(laws, logs, strict=True)]

    kinds = [f"{half:g}" for half in half_life] + ["chain"] * (0 in half_life)
    keys = [f"{family} / {kind}" for family, kind in product(families, kinds)]
    return [row for rows in _resume(keys, compute, seconds, store).values() for row in rows]


@dataclass(frozen=True)
class Forecast:
    """Average over hypotheses: mean `alpha` (n,) and covariance `doubt` (n, n) of today's effects.

    `nothing` is the probability that the library explains nothing; `shares` the probability of forms, maps and fields
    of the law; `parts` the likeliest explanations with their probability.
    """

    alpha: Floats
    doubt: Floats
    nothing: float
    shares: dict[str, dict[str, float]]
    parts: list[tuple[float, str, Law, Explained]]


def forecast(
    market: Market,
    maps: Mapping[str, Floats],
    rows: Sequence[Mapping[str, Any]],
    screened: Mapping[str, float],
    *,
    prior: Mapping[str, float] | None = None,
    nothing: float = 0.1,
    forms: Mapping[str, Form] | None = None,
    most: int = 10,
    step: int = 0,
) -> Forecast:
    """Average explanations by prior weight times evidence; `prior` weighs forms and maps, 1 if not named.

    Families that were screened and not refined keep their probability and forecast nothing.
    """
    weigh = prior or {}
    weight = {
        key: np.log(weigh.get(key.partition(" @ ")[0], 1.0) * weigh.get(key.partition(" @ ")[2], 1.0))
        for key in screened
    }
    norm = logsumexp(list(weight.values()))
    names = [f"{row['form']} @ {row['map']}" for row in rows]
    logs = [row["log"] + weight[name] - norm - np.log(names.count(name)) for row, name in zip(rows, names, strict=True)]
    rest = [log + weight[key] - norm for key, log in screened.items() if key not in names]
    nil = np.log(nothing / (1 - nothing))
    total = logsumexp([*logs, *rest, nil])
    shares: dict[str, dict[str, float]] = {}
    groups: dict[tuple[str, Any], list[Any]] = {}
    for k in np.argsort(logs)[::-1]:
        p, law = float(np.exp(logs[k] - total)), _law(rows[k]["law"])
        for key, value in {"form": rows[k]["form"], "map": rows[k]["map"], **law._asdict()}.items():
            table = shares.setdefault(key, {})
            table[str(value)] = table.get(str(value), 0.0) + p
        group = names[k], (law.both, law.hazard, law.common, law.half_life, law.chain)
        groups.setdefault(group, [law, 0.0])[1] += p
    parts = list[tuple[float, str, Law, Explained]]()
    for (family, _), (law, share) in sorted(groups.items(), key=lambda each: -each[1][1])[:most]:
        if share > 0.004 or not parts:
            name, _, place = family.partition(" @ ")
            found = explain(market, (forms or {}).get(name, name), maps[place], law, _step(market, step, 40))
            parts.append((share, family, law, found))
    known = float(np.exp(logsumexp(logs) - total))
    mean, within = average(
        [part[3].alpha for part in parts], [part[3].doubt for part in parts], np.log([part[0] for part in parts])
    )
    doubt = known * within + known * (1 - known) * np.outer(mean, mean)
    return Forecast(known * mean, doubt, float(np.exp(nil - total)), shares, parts)


def _law(stated: Sequence[Any]) -> Law:
    *values, chain = stated
    return Law(*values, chain=tuple(chain) if chain else None)


def describe(result: Forecast, rows: int = 25) -> None:
    """Print probabilities of forms, maps and laws, and the likely effects of the past and of today."""
    print(f"nothing {result.nothing:.2f}; dispersion of expected effects {result.alpha.std():.4f}")
    for key, table in result.shares.items():
        listed = sorted(table.items(), key=lambda each: -each[1])[:6]
        print(f"  {key}: " + ", ".join(f"{value[:24]} {p:.2f}" for value, p in listed if p > 0.01))
    for share, family, law, found in result.parts[:2]:
        print(f"{share:.2f} {family} {law}; first - last period, probability, size:")
        print(
            "; ".join(
                f"{e.place} {e.label} {e.first}-{e.last or ''} {e.probability:.2f} {e.size:+.4f}"
                for e in found.episodes[:rows]
            )
        )


def forward(
    market: Market, maps: Mapping[str, Floats], result: Forecast, *, periods: int = 6, count: int = 2, forms: Any = None
) -> tuple[float, float]:
    """Return slope of realised on forecast residuals and its error: forecasts of the last periods from those before."""
    above, below = 0.0, 1e-12
    chosen = result.parts[:count]
    for t in range(len(market.residuals) - periods, len(market.residuals)):
        before, guess = market.until(t), np.zeros(len(market.specific))
        for share, family, law, _ in chosen:
            name, _, place = family.partition(" @ ")
            found = explain(before, (forms or {}).get(name, name), maps[place], law, _step(market, 0, 40))
            guess += share / np.sum([each[0] for each in chosen]) * found.alpha / market.specific
        above += float(guess @ (market.residuals[t] / market.specific))
        below += float(guess @ guess)
    return above / below, below**-0.5


def main(payload: dict[str, Any]) -> dict[str, Any]:
    """Return the log evidence of forms of all sources, in each group of names and in the whole market.

    Input: residuals (periods, names), specific (names), values (periods + 1, names, sources), groups (names); optional
    forms and shuffle.
    """
    needed = ("residuals", "specific", "values", "groups")
    if missing := [key for key in needed if key not in payload]:
        raise ValueError(f"input_data lacks {', '.join(missing)}")
    residuals, specific, values, groups = (np.asarray(payload[key]) for key in needed)
    sources = [str(k) for k in range(values.shape[2])]
    market = Market(residuals, specific, values, np.ones(values.shape[::2], bool), sources, groups)
    searched = market.shuffled() if payload.get("shuffle") else market
    maps = {"group": groups, "market": np.zeros_like(groups)}
    return {"log_evidence": screen(searched, maps, payload.get("forms", ["level", "rank"]), seconds=6)}


if __name__ == "__main__":
    print(json.dumps(main(json.loads(Path(sys.argv[sys.argv.index("--input") + 1]).read_text()))))
