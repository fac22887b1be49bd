"""Tables 2 to 7 of the paper by the words of its sections 6 and 7."""

from __future__ import annotations

from collections.abc import Callable

from tests.oracles.report.cells import HEADLINE_EXCLUDES, Cell, Pair, Row, cells, macro, mean, median, micro, pairs

CONDITIONS = ("no_skill", "curated", "self_generated")
Line = dict[str, float | int | str | None]


def _mean(found: list[Cell]) -> float | None:
    return micro([(cell.sub_task, cell.score) for cell in found])


def _macro(found: list[Cell]) -> float | None:
    return macro([(cell.sub_task, cell.score) for cell in found])


def _delta(found: list[Pair]) -> float | None:
    return micro([(pair.sub_task, pair.difference) for pair in found])


def table_2(rows: list[Row], profile: str | None = None, exclude: tuple[str, ...] = ()) -> dict[str, Line]:
    """Per condition: mean over all evaluations, and the mean of the paired differences to no skill."""
    found = cells(rows, profile, exclude)
    table: dict[str, Line] = {}
    for condition in CONDITIONS:
        here = [cell for cell in found if cell.condition == condition]
        table[condition] = {"mean": _mean(here), "macro": _macro(here), "n": len(here)}
        if condition != "no_skill":
            found_pairs = pairs(found, condition)
            table[condition] |= {
                "delta": _delta(found_pairs),
                "macro_delta": macro([(pair.sub_task, pair.difference) for pair in found_pairs]),
                "pairs": len(found_pairs),
            }
    return table


def _grouped(found: list[Cell], of: Callable[[Cell], str]) -> dict[str, list[Cell]]:
    groups: dict[str, list[Cell]] = {}
    for cell in found:
        groups.setdefault(of(cell), []).append(cell)
    return groups


def _conditions(here: list[Cell]) -> Line:
    line: Line = {}
    for condition in CONDITIONS:
        line[condition] = _mean([cell for cell in here if cell.condition == condition])
    for condition in CONDITIONS[1:]:
        line[f"delta_{condition}"] = _delta(pairs(here, condition))
    return line


def table_3(rows: list[Row], profile: str | None = None, exclude: tuple[str, ...] = ()) -> dict[str, Line]:
    """Per domain: condition means and both paired differences."""
    groups = _grouped(cells(rows, profile, exclude), lambda cell: cell.domain)
    return {domain: _conditions(here) for domain, here in groups.items()}


def table_4(rows: list[Row], profile: str | None = None, exclude: tuple[str, ...] = ()) -> list[Line]:
    """Per subtask, sorted by curated minus no skill, largest first; what has no difference comes last."""
    groups = _grouped(cells(rows, profile, exclude), lambda cell: cell.sub_task)
    lines = [{"sub_task": sub_task, "domain": here[0].domain, **_conditions(here)} for sub_task, here in groups.items()]
    return _sorted(lines)


def _sorted(lines: list[Line]) -> list[Line]:
    known = [line for line in lines if line["delta_curated"] is not None]
    unknown = [line for line in lines if line["delta_curated"] is None]
    return sorted(known, key=lambda line: -float(line["delta_curated"] or 0.0)) + unknown


def table_5(rows: list[Row], profile: str | None = None, exclude: tuple[str, ...] = ()) -> list[Line]:
    """Per model: each condition's unweighted mean over subtasks, and the mean of the three ("overall")."""
    lines: list[Line] = []
    for (model, arguments), here in _entries(cells(rows, profile, exclude)).items():
        line: Line = {"model": model, "arguments": arguments}
        known: list[float] = []
        for condition in CONDITIONS:
            value = _macro([cell for cell in here if cell.condition == condition])
            line[condition] = value
            if value is not None:
                known.append(value)
        line["overall"] = mean(known) if len(known) == len(CONDITIONS) else None
        line["delta_curated"] = macro([(pair.sub_task, pair.difference) for pair in pairs(here)])
        lines.append(line)
    return _sorted(lines)


def _entries(found: list[Cell]) -> dict[tuple[str, str], list[Cell]]:
    """A model under whichever harness: the paper's table 5 has no column for it."""
    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell in found:
        groups.setdefault((cell.model, cell.entry[2]), []).append(cell)
    return groups


def table_6(rows: list[Row], exclude: tuple[str, ...] = ()) -> dict[str, Line]:
    """Per condition: tokens (input and output), seconds and turns of each judged episode."""
    table: dict[str, Line] = {}
    for condition in CONDITIONS:
        here = [
            row
            for row in rows
            if row["condition"] == condition and row["status"] != "error"
            if row["model"] not in exclude and row["sub_task"] != HEADLINE_EXCLUDES
        ]
        tokens = [
            row["total_input_tokens"] + row["total_output_tokens"]
            for row in here
            if row["total_input_tokens"] is not None and row["total_output_tokens"] is not None
        ]
        seconds = [row["latency_seconds"] for row in here if row["latency_seconds"] is not None]
        turns = [row["turns"] for row in here if row["turns"] is not None]
        table[condition] = {
            "median_tokens": median(tokens),
            "mean_tokens": mean(tokens),
            "median_latency": median(seconds),
            "mean_turns": mean(turns),
        }
    return table


def table_7(
    rows: list[Row], harness: str, profile: str | None = None, exclude: tuple[str, ...] = ()
) -> dict[tuple[str, str], Line]:
    """For one harness, overall, per domain and per model: means over all evaluations of either condition, which need
    not be the same episodes, and the difference of the two means."""
    found = [cell for cell in cells(rows, profile, exclude) if cell.harness == harness]
    groups: dict[tuple[str, str], list[Cell]] = {("overall", "all"): found}
    for cell in found:
        groups.setdefault(("domain", cell.domain), []).append(cell)
        groups.setdefault(("model", cell.model), []).append(cell)
    table: dict[tuple[str, str], Line] = {}
    for name, here in groups.items():
        without = [cell for cell in here if cell.condition == "no_skill"]
        curated = [cell for cell in here if cell.condition == "curated"]
        low, high = _mean(without), _mean(curated)
        table[name] = {
            "n_no_skill": len(without),
            "no_skill": low,
            "n_curated": len(curated),
            "curated": high,
            "delta": None if low is None or high is None else high - low,
        }
    return table
