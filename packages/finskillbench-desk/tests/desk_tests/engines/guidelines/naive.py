"""The rule language once more, book by book and position by position, from its description and without the engine."""

from __future__ import annotations

from typing import Any

FUTURES = ("equity_future", "bond_future")


def holds(of: Any, instrument: Any) -> bool:
    """Whether an instrument satisfies a filter in JSON."""
    return all(_condition(key, value, instrument) for key, value in (of or {}).items())


def _condition(key: str, value: Any, instrument: Any) -> bool:
    if key == "all":
        return all(holds(each, instrument) for each in value)
    if key == "any":
        return any(holds(each, instrument) for each in value)
    if key == "not":
        return not holds(value, instrument)
    words = [value] if isinstance(value, str) else value
    if key == "list":
        return any(name in instrument.lists for name in words)
    if key == "instrument":
        return instrument.name in words
    if key in ("kind", "sector", "sub_sector", "country", "currency", "issuer"):
        return getattr(instrument, key) in words
    given = instrument.attributes.get(key)
    if given is None:
        return False
    tests = {"above": given > 0, "at_least": True, "below": True, "at_most": True}
    for bound, cut in value.items():
        tests = {"above": given > cut, "at_least": given >= cut, "below": given < cut, "at_most": given <= cut}
        if not tests[bound]:
            return False
    return True


def exceeded(rule: dict[str, Any], positions: list[Any], others: dict[str, Any], trading: Any) -> bool:
    """Whether a rule in JSON is broken by some positions; `others` are all instruments by name."""
    remaining = rule.get("of") or {}
    for exception in rule.get("exceptions", ()):
        if exception["limit"] is not None:
            own = {**rule, "of": {"all": [remaining, exception["of"]]}, "limit": exception["limit"], "exceptions": []}
            if exceeded(own, positions, others, trading):
                return True
        remaining = {"all": [remaining, {"not": exception["of"]}]}
    return _exceeded({**rule, "of": remaining}, positions, others, trading)


def _amounts(rule: dict[str, Any], positions: list[Any], others: dict[str, Any]) -> dict[str, tuple[float, bool]]:
    """What each instrument counts as, and whether it is being bought, funds looked through if the rule does."""
    out: dict[str, tuple[float, bool]] = {}

    def add(name: str, amount: float, bought: bool) -> None:
        before = out.get(name, (0.0, False))
        out[name] = (before[0] + amount, before[1] or bought)

    for position in positions:
        instrument, way = position.instrument, rule.get("futures", "ignore")
        amount = position.value
        if instrument.kind in FUTURES and way != "ignore":
            amount = abs(position.notional) if way == "gross" else position.notional
        bought = position.bought and (position.value != 0 or position.notional != 0)
        rest = 1.0
        if rule.get("look_through"):
            for held, share in instrument.holdings.items():
                add(held, amount * share, bought)
                rest -= share
        if rest > 1e-12:
            add(instrument.name, amount * rest, bought)
    return {name: pair for name, pair in out.items() if holds(rule["of"], others[name])}


def _basis(rule: dict[str, Any], positions: list[Any]) -> float:
    basis = rule.get("basis", "nav")
    if basis == "nav":
        return sum(each.value for each in positions)
    if basis == "gross":
        securities = sum(abs(each.value) for each in positions if each.instrument.kind != "cash")
        return securities + sum(abs(each.notional) for each in positions if each.instrument.kind in FUTURES)
    return sum(each.value for each in positions if holds(basis, each.instrument))


def _grouped(rule: dict[str, Any], names: list[str], others: dict[str, Any]) -> dict[str, list[str]]:
    by = rule.get("by")
    if by is None:
        return {"": names}
    out: dict[str, list[str]] = {}
    if isinstance(by, dict):
        return {group: [name for name in names if holds(of, others[name])] for group, of in by.items()}
    for name in names:
        word = name if by == "instrument" else getattr(others[name], by)
        if word:
            out.setdefault(word, []).append(name)
    return out


def _limit(limit: Any, benchmark: float) -> float:
    if isinstance(limit, dict):
        if "greater_of" in limit:
            return max(_limit(each, benchmark) for each in limit["greater_of"])
        if "lesser_of" in limit:
            return min(_limit(each, benchmark) for each in limit["lesser_of"])
        return limit.get("benchmark_times", 0) * benchmark + limit.get("plus", 0)
    return limit


def _exceeded(rule: dict[str, Any], positions: list[Any], others: dict[str, Any], trading: Any) -> bool:
    counted = [name for name in others if holds(rule["of"], others[name])]
    amounts = _amounts(rule, positions, others)
    basis, measure = _basis(rule, positions), rule["measure"]
    groups = _grouped(rule, counted, others)
    at_purchase = rule.get("when") == "purchase"
    limit = 0.0 if rule["comparison"] == "none" else rule["limit"]
    sign = -1 if rule["comparison"] == "at_least" else 1

    def beyond(value: float, most: float) -> bool:
        return sign * (value - most) > 1e-7

    def bought(names: list[str]) -> bool:
        return any(amounts.get(name, (0.0, False))[1] and abs(amounts[name][0]) > 1e-9 for name in names)

    if measure in ("weight", "ownership", "days_to_sell"):
        relative = "benchmark_times" in str(limit)
        for names in groups.values():
            total = sum(amounts.get(name, (0.0, False))[0] for name in names)
            weight = sum(others[name].benchmark for name in names)
            there = any(abs(amounts.get(name, (0.0, False))[0]) > 1e-9 for name in names)
            if not (there or not isinstance(rule.get("by"), str) or (relative and weight > 0)):
                continue
            value = _measure(measure, rule, names, total, basis, amounts, others)
            if beyond(value, _limit(limit, weight)) and (bought(names) or not at_purchase):
                return True
        return False
    value = _of_all(measure, rule, groups, amounts, basis, others, trading, counted)
    every = [position.instrument.name for position in positions if position.bought]
    touched = (
        bool(every)
        if measure in ("turnover", "active_share")
        else bought([n for names in groups.values() for n in names])
    )
    weight = sum(others[name].benchmark for name in counted)
    return beyond(value, _limit(limit, weight)) and (touched or not at_purchase)


def _measure(measure: str, rule: Any, names: Any, total: float, basis: float, amounts: Any, others: Any) -> float:
    if measure == "weight":
        return 100 * total / basis
    if measure == "ownership":
        return 100 * total / max(others[name].attributes["market_cap"] for name in names)
    days = [
        abs(amounts[name][0]) / others[name].attributes["adv"] / (rule["participation"] / 100)
        for name in names
        if name in amounts
    ]
    return max(days, default=0.0)


def _of_all(
    measure: str, rule: Any, groups: Any, amounts: Any, basis: float, others: Any, trading: Any, counted: Any
) -> float:
    if measure == "turnover":
        buys = {"used": trading.used_purchases, "pending": trading.pending_purchases}
        sales = {"used": trading.used_sales, "pending": trading.pending_sales}
        which = ["used", "pending"] if rule.get("trades", "all") == "all" else [rule["trades"]]
        bought, sold = sum(buys[each] for each in which), sum(sales[each] for each in which)
        ways = {
            "half": (bought + sold) / 2,
            "lesser": min(bought, sold),
            "greater": max(bought, sold),
            "sum": bought + sold,
        }
        return 100 * ways[rule.get("convention", "half")] / basis
    if measure == "short":
        return 100 * sum(-amount for amount, _ in amounts.values() if amount < 0) / basis
    if measure == "average":
        known = {
            name: others[name].attributes[rule.get("attribute", "rating")]
            for name in amounts
            if rule.get("attribute", "rating") in others[name].attributes
        }
        total = sum(amounts[name][0] for name in known)
        return sum(amounts[name][0] * value for name, value in known.items()) / total if total else 0.0
    if measure == "sellable":
        out = 0.0
        for name, (amount, _) in amounts.items():
            most = others[name].attributes.get("adv", 0.0) * rule["days"] * rule["participation"] / 100
            out += amount if others[name].kind == "cash" else min(max(amount, 0.0), most)
        return 100 * out / basis
    weights = {group: 100 * sum(amounts.get(n, (0.0,))[0] for n in names) / basis for group, names in groups.items()}
    if measure == "active_share":
        gaps = [abs(weights[group] - sum(others[n].benchmark for n in names)) for group, names in groups.items()]
        return sum(gaps) / 2
    above = rule.get("above", 0.0)
    if measure == "count":
        return sum(weight > above + 1e-7 for weight in weights.values())
    if measure == "sum_above":
        return sum(weight for weight in weights.values() if weight > above + 1e-7)
    return sum(sorted(weights.values(), reverse=True)[: rule["n"]])
