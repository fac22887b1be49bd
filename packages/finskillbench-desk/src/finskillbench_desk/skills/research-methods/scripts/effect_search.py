"""Search a library of forms, places and laws for effects; average over all that the data do not decide.

Results of `screen` and `refine` are plain rows. Both keep them in a JSON file if `store` names one, stop when `seconds`
have passed, and go on with what is missing when they are called again.

Payload of the script: panel, today, names, factor_returns and sources (tables; `sources` with source and scale),
`time`, `name`, `returns` (columns of panel), `return_unit` (stored value of a return of 1), `loadings` (columns of
names and of factor_returns), `specific` and `group` (columns of names), `first` ({source: first period that counts}, 1
if absent), `forms` (list; level and rank if absent), `shuffle` (true to measure chance). Result: log evidence of each
form by group and in the whole market.
"""

# pyright: basic, reportMissingImports=false, reportCallIssue=false, reportArgumentType=false
# Sibling modules are found by the search path of the sandbox.

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from decisions import average
from evidence import Explained, Law, chain_evidence, explain, grid, log_evidence, segments, sums
from features import USUAL, Form, feature
from scipy import special

from panels import Floats, Market, cube, unexplained, valid_from

logsumexp: Any = special.logsumexp

FRACTIONS = (0.03, 0.06, 0.12, 0.24)
"""Sizes as fractions of the usual specific deviation."""
COURSES = ((0, False), (1, False), (1, True), (4, False), (4, True))
"""Expected changes of state in the whole record, and whether they are common to all places."""
CHAINS = ((5, 5), (9, 4))
"""Expected leaves and entries in the whole record of effects that go off and on."""


def library(market: Market, half_lives: Sequence[float] = (0.0,)) -> list[Law]:
    """Return a grid of laws with neutral sizes, signs, courses and, if named, half-lives."""
    usual, signs, periods = float(np.median(market.specific)), (True, False), len(market.residuals)
    return [
        Law(usual * size, both=both, nothing=nothing, hazard=changes / periods, common=common, half_life=half)
        for half, size, both, nothing, (changes, common) in product(half_lives, FRACTIONS, signs, (0.15, 0.6), COURSES)
    ]


def _evidence(x: Floats, y: Floats, laws: Sequence[Law], step: int) -> list[float]:
    bounds, out = grid(len(x), step), dict[Law, float]()
    for half in dict.fromkeys(law.half_life for law in laws):
        ours = [law for law in laws if law.half_life == half]
        plain = list(dict.fromkeys(law._replace(hazard=0.0, common=False) for law in ours))
        own = segments(x, y, plain, bounds).astype(float)
        for law in ours:
            place = plain.index(law._replace(hazard=0.0, common=False))
            out[law] = log_evidence(own[:, :, place], bounds, law)
    return [out[law] for law in laws]


def _kept(store: str | None) -> dict[str, Any]:
    return json.loads(Path(store).read_text()) if store and Path(store).exists() else {}


def screen(
    market: Market,
    maps: Mapping[str, Floats],
    forms: Mapping[str, Form] | Sequence[str] = USUAL,
    *,
    laws: Sequence[Law] | None = None,
    step: int = 3,
    seconds: float = 7.0,
    store: str | None = None,
) -> dict[str, float]:
    """Return log evidence of each family "form @ map", laws averaged, with dates `step` periods apart.

    Without `laws`, the library with lasting effects and with effects that halve in a fifth of the record.
    """
    began, found = time.perf_counter(), _kept(store)
    named: Mapping[str, Form] = forms if isinstance(forms, Mapping) else {form: form for form in forms}
    tried = laws or library(market, (0.0, len(market.residuals) / 5))
    for name, form in named.items():
        missing = [key for key in maps if f"{name} @ {key}" not in found]
        if missing and time.perf_counter() - began > seconds:
            print(f"time is up before {name}; call again with the same store")
            break
        values, labels = feature(market, form) if missing else (np.zeros(0), [])
        for key in missing if labels else ():
            logs = _evidence(*sums(market, values, maps[key]), tried, step)
            found[f"{name} @ {key}"] = float(logsumexp(logs) - np.log(len(tried)))
    if store:
        Path(store).write_text(json.dumps(found))
    return dict(sorted(found.items(), key=lambda each: -each[1]))


def refine(
    market: Market,
    maps: Mapping[str, Floats],
    families: Sequence[str],
    *,
    forms: Mapping[str, Form] | None = None,
    half_lives: Sequence[float] = (0.0,),
    step: int = 1,
    seconds: float = 7.0,
    store: str | None = None,
) -> list[dict[str, Any]]:
    """Return a row for each family and law, with log evidence on finer dates; families as `screen` names them."""
    began, found = time.perf_counter(), _kept(store)
    for family, half in product(families, half_lives):
        key = f"{family} / {half:g}"
        if key not in found and time.perf_counter() - began > seconds:
            print(f"time is up before {key}; call again with the same store")
            break
        if key not in found:
            name, _, place = family.partition(" @ ")
            x, y = sums(market, feature(market, (forms or {}).get(name, name))[0], maps[place])
            laws = library(market, (half,))
            logs = _evidence(x, y, laws, step)
            chains = [(leave / len(x), enter / len(x)) for leave, enter in CHAINS]
            chained = [law._replace(chain=chain) for law in laws for chain in chains if not law.hazard and not half]
            logs += [chain_evidence(x, y, law) for law in chained]
            rows = zip([*laws, *chained], logs, strict=True)
            found[key] = [{"form": name, "map": place, "law": list(law), "log": log} for law, log in rows]
    if store:
        Path(store).write_text(json.dumps(found))
    return [row for rows in found.values() for row in rows]


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
    step: int = 1,
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
            found = explain(market, (forms or {}).get(name, name), maps[place], law, step)
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
            found = explain(before, (forms or {}).get(name, name), maps[place], law)
            guess += share / sum(each[0] for each in chosen) * found.alpha / market.specific
        above += float(guess @ (market.residuals[t] / market.specific))
        below += float(guess @ guess)
    return above / below, below**-0.5


def main(payload: dict[str, Any]) -> dict[str, Any]:
    """Return the log evidence of forms of all sources, in each group of names and in the whole market."""
    names, sources, time_, name = payload["names"], payload["sources"], payload["time"], payload["name"]
    columns, listed = list(sources["source"]), list(names[name])
    past = cube(payload["panel"], time_, name, [*columns, payload["returns"]], listed)
    today = {time_: [0] * len(listed), **{key: list(payload["today"][key]) for key in (name, *columns)}}
    values = np.concatenate([past[:, :, :-1], cube(today, time_, name, columns, listed)])
    loadings, factors = (
        np.column_stack([table[key] for key in payload["loadings"]]) for table in (names, payload["factor_returns"])
    )
    groups = np.unique(np.asarray(names[payload["group"]]), return_inverse=True)[1]
    market = Market(
        unexplained(past[:, :, -1] / payload["return_unit"], loadings, factors),
        np.asarray(names[payload["specific"]]),
        np.nan_to_num(values / np.asarray(sources["scale"], float)),
        valid_from([payload.get("first", {}).get(source, 1) for source in columns], len(past)),
        columns,
        groups,
        list(sources["vendor"]) if "vendor" in sources else [],
    )
    maps = {"group": groups, "market": np.zeros_like(groups)}
    searched = market.shuffled() if payload.get("shuffle") else market
    return {"log_evidence": screen(searched, maps, payload.get("forms", ["level", "rank"]), seconds=6)}


if __name__ == "__main__":
    print(json.dumps(main(json.loads(Path(sys.argv[sys.argv.index("--input") + 1]).read_text()))))
