"""Find truth that an agent can read instead of computing it.

In **text** (prompts, answer schema, tool descriptions, skill documents, metadata) any number of the truth that the
input does not hold as data is a leak. In **data** (tool results, script inputs) such a number may be a source of the
answer, like filed revenue or a mandate's limit. So the place is changed and the answer derived again: if the answer
does not change, the place is no input of the answer, and its number is a leak.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from itertools import cycle
from typing import Any, cast, get_args, get_type_hints, is_typeddict

import orjson

from finskillbench.domains.tables import EpisodeTable
from finskillbench.edition.checks.agent_view import EpisodeView
from finskillbench.edition.checks.reads import flatten, leaves, numeric_leaves
from finskillbench.edition.withheld import truth_in_metadata
from finskillbench.findings import Findings
from finskillbench.scoring.values import is_array, is_object

_DIGITS = 3
"""Minimum significant digits of a number in text; shorter ones match by chance."""
_DATA_DIGITS = 5
"""Minimum for data, which hold more numbers."""
_EXACT_DIGITS = 13
_DOCUMENT_DIGITS = 6
"""Minimum for documents, which are shared by all episodes."""
_SCALES = (1.0, 1e2, 1e3, 1e4, 1e6, 1e9)
_NUMBER = re.compile(r"(?<![\w.])[-+\u2212]?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w])", re.ASCII)
_NOT_FIGURES = re.compile(r"\d{4}-\d{2}(?:-\d{2})?", re.ASCII)
_SHORT_TEXT = 20
_MOVES = (1.01, 0.97, 1.06, 0.92, 1.13)
"""Factors applied to a changed place: not all equal, since ratios would stay the same. A long text is emptied."""


def check_leak(view: EpisodeView, findings: Findings) -> None:
    """Check that no number, name or key of the truth is visible without computation."""
    truth = view.label.truth.expected_output
    numbers = {(path, value) for path, value in numeric_leaves(truth) if _digits(value) >= _DIGITS}
    _search_prompt(view, findings, numbers)
    _search_documents(view, findings, numbers)
    _search_metadata(view, findings)
    _search_data(view, findings, numbers)
    findings.add("numbers", len(numbers))


def _digits(value: float) -> int:
    text = f"{abs(value):.15g}".partition("e")[0].replace(".", "").strip("0")
    return len(text)


def _search_prompt(view: EpisodeView, findings: Findings, numbers: set[tuple[str, float]]) -> None:
    """Find numbers of the truth in the prompt text that the input does not hold."""
    prompt, data = view.episode.prompt, {value for _, value in view.flat.numbers}
    input_figures: set[str] = set()
    for _, leaf in leaves(view.episode.input):
        if isinstance(leaf, str):
            input_figures |= _figures(leaf)
    for place in ("task_description", "output_instructions"):
        for figure in _figures(getattr(prompt, place)) - input_figures:
            for path, value in sorted(numbers):
                if _stated(figure, value) and not any(_stated(figure, held) for held in data):
                    message = f"contains {figure}, which is {path} of the truth ({value:.6g})"
                    findings.fail(view.task_id, message, f"prompt.{place}")


def _search_documents(view: EpisodeView, findings: Findings, numbers: set[tuple[str, float]]) -> None:
    for place, text in view.context.documents(view.episode.skill).items():
        if view.task_id in text:
            findings.fail(view.task_id, "names this episode", place)
        for figure in _document_figures(text):
            for path, value in sorted(numbers):
                if float(figure) == float(f"{value:.{_digits(float(figure))}g}"):
                    findings.fail(view.task_id, f"contains {figure}, which is {path} of the truth", place)


@cache
def _document_figures(text: str) -> frozenset[str]:
    return frozenset(figure for figure in _figures(text) if _digits(float(figure)) >= _DOCUMENT_DIGITS)


def _figures(text: str) -> set[str]:
    """Return the numbers of a text with enough digits to be recognised; dates are excluded."""
    found = {match.replace(",", "").replace("\u2212", "-") for match in _NUMBER.findall(_NOT_FIGURES.sub(" ", text))}
    return {figure for figure in found if _digits(float(figure)) >= _DIGITS}


def _stated(figure: str, value: float) -> bool:
    """Return True if a printed number equals the value to its digits, ignoring sign and unit."""
    stated, precision = abs(float(figure)), _digits(float(figure))
    for scale in _SCALES:
        for scaled in (abs(value) * scale, abs(value) / scale):
            if float(f"{scaled:.{precision}g}") == stated:
                return True
    return False


def _search_metadata(view: EpisodeView, findings: Findings) -> None:
    """Find parts of the truth in metadata, which are published with the episodes."""
    truth = view.label.truth.expected_output
    for path, wrong in truth_in_metadata(view.episode, view.label.truth, {leaf for _, leaf in view.flat.texts}):
        findings.fail(view.task_id, wrong, f"metadata.{path}")
    numbers = [(path, value) for path, value in numeric_leaves(truth) if _digits(value) >= _DIGITS]
    subjects = _answer_keys(view)
    for path, leaf in leaves(view.episode.metadata):
        if isinstance(leaf, int | float) and not isinstance(leaf, bool):
            for truth_path, value in numbers:
                if _digits(leaf) >= (_DATA_DIGITS if isinstance(leaf, int) else _DIGITS) and _stated(repr(leaf), value):
                    findings.fail(view.task_id, f"holds {leaf}, {truth_path} of the truth", f"metadata.{path}")
    for path, key in flatten(view.episode.metadata).keys.items():
        if _stems(key) & subjects:
            findings.fail(view.task_id, "has a name that reveals the answer", f"metadata.{path}")


_COMMON = frozenset(
    {"type", "num", "n", "count", "number", "top", "total", "value", "estimated", "tier", "optimizer", "call"}
)
_LOADED = frozenset({"flag", "violation", "risk", "trade", "compliant", "driver"})


def _stems(key: str) -> set[str]:
    """Return the informative words of a key in the singular."""
    return {word.removesuffix("s") for word in key.lower().split("_")} - _COMMON


def _answer_keys(view: EpisodeView) -> set[str]:
    stems = {stem for key in view.label.truth.expected_output for stem in _stems(key)}
    return stems & _LOADED


def _search_data(view: EpisodeView, findings: Findings, numbers: set[tuple[str, float]]) -> None:
    """Find places of the data that hold the truth, or have its name, and are no input of the answer."""
    rounded = {
        float(f"{value:.{precision}g}"): path
        for path, value in sorted(numbers)
        for precision in range(_DATA_DIGITS, _EXACT_DIGITS)
    }
    # A probability of 0.9999996 rounds to 1 in five digits, as many other numbers do.
    wanted = {value: path for value, path in rounded.items() if _digits(value) >= _DIGITS}
    wanted |= {value: path for path, value in sorted(numbers)}
    suspects: dict[str, str] = {}
    for path, value in view.flat.numbers:
        if value in wanted:
            suspects.setdefault(path, wanted[value])
    for path, text in view.flat.texts:
        if len(text) > _SHORT_TEXT:
            for figure in (one for one in _figures(text) if _digits(float(one)) >= _DATA_DIGITS):
                of = next((name for name, value in sorted(numbers) if _stated(figure, value)), None)
                if of is not None:
                    suspects.setdefault(path, of)
    answer_keys = {key.rstrip("s") for key in view.label.truth.expected_output}
    named = {path: key for path, key in view.flat.keys.items() if key.rstrip("s") in answer_keys}
    suspects |= named
    if view.context.shared.built or _derivable(view):
        used = {path for path in suspects if _is_input(view, path)}
        values = dict(view.flat.numbers)
        # Two limits of a mandate may be the same number: a binding one explains the other.
        limits = {(_field(path), values[path]) for path in used if path in values}
        suspects = {
            path: of
            for path, of in suspects.items()
            if path not in used and (path in named or (_field(path), values.get(path)) not in limits)
        }
    else:  # without a derivation: only places with an answer's name that no input of ours has
        known = _declared(view.subtask.input) if view.subtask is not None else frozenset[str]()
        suspects = {path: key for path, key in named.items() if key not in known}
    for path, of in suspects.items():
        findings.fail(view.task_id, f"holds {of} of the truth, but is no input of the answer", path)


def _field(path: str) -> str:
    return path.partition(".")[0]


def _derivable(view: EpisodeView) -> bool:
    try:
        return bool(_answer(view, view.fields))
    except Exception:  # noqa: BLE001 - an imported input may lack anything
        return False


@cache
def _declared(kind: object) -> frozenset[str]:
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
"""True for places that affect a subtask's answer, found once per process."""


def _is_input(view: EpisodeView, path: str) -> bool:
    key = view.episode.sub_task, path
    if not _used.get(key):
        _used[key] = _moves_answer(view, path)
    return _used[key]


def _moves_answer(view: EpisodeView, path: str) -> bool:
    """Return True if the answer changes with the value at a path, or if the change makes the derivation fail."""
    changed: dict[str, Any] = {
        name: value if isinstance(value, EpisodeTable) else orjson.loads(orjson.dumps(value))
        for name, value in view.fields.items()
    }
    _move(changed, path)
    try:
        return _answer(view, changed) != _answer(view, view.fields)
    except Exception:  # noqa: BLE001 - a derivation that fails on a changed input has read it
        return True


def _answer(view: EpisodeView, task_input: Mapping[str, Any]) -> Any:
    """Derive the answer to an input, independently or, without such a derivation, by the skill's script."""
    assert view.subtask is not None
    if view.subtask.rederive is not None:
        return view.subtask.rederive(task_input)
    return view.replayed(task_input)


def _move(value: object, path: str) -> None:
    """Change every number below a path in place, each by another factor; texts are extended or emptied."""
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
