"""Truth that an agent can read instead of computing it.

Two kinds of places are searched. In **words** (prompt text, answer schema, tool descriptions, skill documents,
metadata) no number of the truth may stand that the input does not hold as data. In **data** (what tools return or
inject into scripts) a number of the truth may stand where the answer is made from it: revenue is a fact as filed, a
limit is the mandate's. So a place of the data that holds one is changed and the answer derived again: if nothing of it
moves, the place is no input of the answer, and what it holds is the answer itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from itertools import cycle
from typing import Any, cast, get_args, get_type_hints, is_typeddict

import orjson

from finskillbench.domains.tables import Table
from finskillbench.edition.checks.agent_view import Seen
from finskillbench.edition.checks.reads import flatten, leaves, numeric_leaves
from finskillbench.edition.withheld import truth_values_shown
from finskillbench.findings import Findings
from finskillbench.scoring.values import is_array, is_object

_DIGITS = 3
"""Significant digits from which on a number in words can be told from chance."""
_DATA_DIGITS = 5
"""The same in data, of which there is more."""
_EXACT_DIGITS = 13
_DOCUMENT_DIGITS = 6
"""The same in documents, which are read beside every episode."""
_SCALES = (1.0, 1e2, 1e3, 1e4, 1e6, 1e9)
_NUMBER = re.compile(r"(?<![\w.])[-+\u2212]?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w])", re.ASCII)
_NOT_FIGURES = re.compile(r"\d{4}-\d{2}(?:-\d{2})?", re.ASCII)
_SHORT_TEXT = 20
_MOVES = (1.01, 0.97, 1.06, 0.92, 1.13)
"""What a place is multiplied by: not all by the same, since ratios would not move. A long text is emptied."""


def leak(seen: Seen, findings: Findings) -> None:
    """No number, name or key of the truth stands where it was not computed."""
    truth = seen.label.truth.expected_output
    numbers = {(path, value) for path, value in numeric_leaves(truth) if _digits(value) >= _DIGITS}
    _search_words(seen, findings, numbers)
    _search_documents(seen, findings, numbers)
    _search_metadata(seen, findings)
    _search_data(seen, findings, numbers)
    findings.add("numbers", len(numbers))


def _digits(value: float) -> int:
    """Significant digits of a number, without closing zeros."""
    text = f"{abs(value):.15g}".partition("e")[0].replace(".", "").strip("0")
    return len(text)


def _search_words(seen: Seen, findings: Findings, numbers: set[tuple[str, float]]) -> None:
    """A number of the truth in the words of the prompt, unless it stands in the input as well."""
    prompt, data = seen.episode.prompt, {value for _, value in seen.flat.numbers}
    told: set[str] = set()
    for _, leaf in leaves(seen.episode.input):
        if isinstance(leaf, str):
            told |= _figures(leaf)
    for place in ("task_description", "output_instructions"):
        for figure in _figures(getattr(prompt, place)) - told:
            for path, value in sorted(numbers):
                if _stated(figure, value) and not any(_stated(figure, held) for held in data):
                    message = f"says {figure}, which is {path} of the truth ({value:.6g})"
                    findings.fail(seen.task_id, message, f"prompt.{place}")


def _search_documents(seen: Seen, findings: Findings, numbers: set[tuple[str, float]]) -> None:
    """A number of the truth, or the episode's name, in what every episode of the domain is given to read."""
    for place, text in seen.bench.documents(seen.episode.skill).items():
        if seen.task_id in text:
            findings.fail(seen.task_id, "names this episode", place)
        for figure in _document_figures(text):
            for path, value in sorted(numbers):
                if float(figure) == float(f"{value:.{_digits(float(figure))}g}"):
                    findings.fail(seen.task_id, f"says {figure}, which is {path} of the truth", place)


@cache
def _document_figures(text: str) -> frozenset[str]:
    return frozenset(figure for figure in _figures(text) if _digits(float(figure)) >= _DOCUMENT_DIGITS)


def _figures(text: str) -> set[str]:
    """The numbers of a text that have enough digits to be recognised; dates are none."""
    found = {match.replace(",", "").replace("\u2212", "-") for match in _NUMBER.findall(_NOT_FIGURES.sub(" ", text))}
    return {figure for figure in found if _digits(float(figure)) >= _DIGITS}


def _stated(figure: str, value: float) -> bool:
    """Whether a printed number is the value to the digits it has, whatever its sign and unit."""
    stated, precision = abs(float(figure)), _digits(float(figure))
    for scale in _SCALES:
        for scaled in (abs(value) * scale, abs(value) / scale):
            if float(f"{scaled:.{precision}g}") == stated:
                return True
    return False


def _search_metadata(seen: Seen, findings: Findings) -> None:
    """Metadata is handed out with the episodes, so that nothing of the truth may stand in it."""
    truth = seen.label.truth.expected_output
    for path, wrong in truth_values_shown(seen.episode, seen.label.truth, {leaf for _, leaf in seen.flat.texts}):
        findings.fail(seen.task_id, wrong, f"metadata.{path}")
    numbers = [(path, value) for path, value in numeric_leaves(truth) if _digits(value) >= _DIGITS]
    subjects = _answer_keys(seen)
    for path, leaf in leaves(seen.episode.metadata):
        if isinstance(leaf, int | float) and not isinstance(leaf, bool):
            for truth_path, value in numbers:
                if _digits(leaf) >= (_DATA_DIGITS if isinstance(leaf, int) else _DIGITS) and _stated(repr(leaf), value):
                    findings.fail(seen.task_id, f"holds {leaf}, {truth_path} of the truth", f"metadata.{path}")
    for path, key in flatten(seen.episode.metadata).keys.items():
        if _stems(key) & subjects:
            findings.fail(seen.task_id, "tells of the answer by its name", f"metadata.{path}")


_COMMON = frozenset(
    {"type", "num", "n", "count", "number", "top", "total", "value", "estimated", "tier", "optimizer", "call"}
)
_LOADED = frozenset({"flag", "violation", "risk", "trade", "compliant", "driver"})


def _stems(key: str) -> set[str]:
    """The words of a key in the singular, without those that say nothing."""
    return {word.removesuffix("s") for word in key.lower().split("_")} - _COMMON


def _answer_keys(seen: Seen) -> set[str]:
    """Words that name parts of the answer, as a key of the metadata would."""
    stems = {stem for key in seen.label.truth.expected_output for stem in _stems(key)}
    return stems & _LOADED


def _search_data(seen: Seen, findings: Findings, numbers: set[tuple[str, float]]) -> None:
    """Places of the data that hold the truth, or bear its name, and that the answer is not made from."""
    rounded = {
        float(f"{value:.{precision}g}"): path
        for path, value in sorted(numbers)
        for precision in range(_DATA_DIGITS, _EXACT_DIGITS)
    }
    # A probability of 0.9999996 is 1 in five digits, and so is much else.
    wanted = {value: path for value, path in rounded.items() if _digits(value) >= _DIGITS}
    wanted |= {value: path for path, value in sorted(numbers)}
    suspects: dict[str, str] = {}
    for path, value in seen.flat.numbers:
        if value in wanted:
            suspects.setdefault(path, wanted[value])
    for path, text in seen.flat.texts:
        if len(text) > _SHORT_TEXT:
            for figure in (one for one in _figures(text) if _digits(float(one)) >= _DATA_DIGITS):
                of = next((name for name, value in sorted(numbers) if _stated(figure, value)), None)
                if of is not None:
                    suspects.setdefault(path, of)
    answer_keys = {key.rstrip("s") for key in seen.label.truth.expected_output}
    named = {path: key for path, key in seen.flat.keys.items() if key.rstrip("s") in answer_keys}
    suspects |= named
    if seen.bench.shared.built or _derivable(seen):
        used = {path for path in suspects if _is_input(seen, path)}
        values = dict(seen.flat.numbers)
        # Two limits of a mandate may be the same number: one that binds explains the other.
        limits = {(_field(path), values[path]) for path in used if path in values}
        suspects = {
            path: of
            for path, of in suspects.items()
            if path not in used and (path in named or (_field(path), values.get(path)) not in limits)
        }
    else:  # nothing shows what the answer is made from: only what bears its name and no input of ours has
        known = _declared(seen.subtask.input) if seen.subtask is not None else frozenset[str]()
        suspects = {path: key for path, key in named.items() if key not in known}
    for path, of in suspects.items():
        findings.fail(seen.task_id, f"holds {of} of the truth, and the answer is not made from it", path)


def _field(path: str) -> str:
    """The field of the input in which a path lies."""
    return path.partition(".")[0]


def _derivable(seen: Seen) -> bool:
    try:
        return bool(_answer(seen, seen.fields))
    except Exception:  # noqa: BLE001 - an imported input may lack anything
        return False


@cache
def _declared(kind: object) -> frozenset[str]:
    """Every key that an input type declares, however deep."""
    found: set[str] = {"type"}
    pending: list[Any] = [kind]
    seen: set[int] = set()
    while pending:
        one = pending.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        pending += get_args(one)
        if is_typeddict(one):
            hints = get_type_hints(one)
            found |= hints.keys()
            pending += hints.values()
    return frozenset(found)


_used: dict[tuple[str, str], bool] = {}
"""Whether the answer of a subtask is made from a place, found once per process."""


def _is_input(seen: Seen, path: str) -> bool:
    key = seen.episode.sub_task, path
    if not _used.get(key):
        _used[key] = _moves_answer(seen, path)
    return _used[key]


def _moves_answer(seen: Seen, path: str) -> bool:
    """Whether the answer changes with what stands at a path; an input that cannot be changed at all is used."""
    changed: dict[str, Any] = {
        name: value if isinstance(value, Table) else orjson.loads(orjson.dumps(value))
        for name, value in seen.fields.items()
    }
    _move(changed, path)
    try:
        return _answer(seen, changed) != _answer(seen, seen.fields)
    except Exception:  # noqa: BLE001 - whatever a derivation says to a wrong input, it has read it
        return True


def _answer(seen: Seen, task_input: Mapping[str, Any]) -> Any:
    """The answer to an input: by the second derivation or, where there is none, by the skill's script."""
    assert seen.subtask is not None
    if seen.subtask.rederive is not None:
        return seen.subtask.rederive(task_input)
    return seen.replayed(task_input)


def _move(value: object, path: str) -> None:
    """Change every number below a path in place, each by another factor; texts get a letter more or are emptied."""
    factors = cycle(_MOVES)

    def moved(part: object, rest: str) -> object:
        if is_object(part):
            inner = cast("dict[str, object]", part)
            for key in inner:
                if not rest or rest == key or rest.startswith((f"{key}.", f"{key}[")):
                    inner[key] = moved(inner[key], rest[len(key) :].removeprefix("."))
            return inner
        if is_array(part):
            return [moved(item, rest.removeprefix("[*]").removeprefix(".")) for item in cast("list[object]", part)]
        if rest:
            return part
        return _changed(part, next(factors))

    moved(value, path)


def _changed(leaf: object, factor: float) -> object:
    if isinstance(leaf, bool) or leaf is None:
        return not leaf
    if isinstance(leaf, int | float):
        return leaf * factor
    return "" if len(str(leaf)) > _SHORT_TEXT else f"{leaf}x"
