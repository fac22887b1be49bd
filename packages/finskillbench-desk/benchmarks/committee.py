"""Print figures of the committee cases: build time, baselines by tier, cost of each trap, share of signed cases.

    export PYTHONPATH=.:packages/finskillbench-desk/tests
    python packages/finskillbench-desk/benchmarks/committee.py --seeds 1 2 --cases 40

Programs call the scripts' functions directly, without the agent loop.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from desk_tests.committee_case.slips import with_field

import finskillbench_desk
from finskillbench.domains.building import BuildContext, BuiltTask
from finskillbench.domains.interactive import ProcedureCall
from finskillbench.domains.tables import EpisodeTable, dump
from finskillbench.errors import FinSkillBenchError
from finskillbench.panels import Panels, build_panels
from finskillbench.sources.edgar.collection import load_filings
from finskillbench.sources.market.collection import load_market
from finskillbench.sources.synthetic import write_collection
from finskillbench_desk.committee_case import build, procedures
from finskillbench_desk.committee_case.judging.scorer import score_committee_case
from finskillbench_desk.market import market

PLAYERS: dict[str, Callable[[], Any]] = {
    "reference": procedures.reference,
    "asks nothing": partial(procedures.play_case, reconciles=False),
    "fifteen lines": partial(procedures.play_case, largest=15),
    "textbook": procedures.textbook,
    "trapped": procedures.trapped,
}
"""Programs by name: the baselines, a reader who does not reconcile documents, and one who sums the fifteen largest
lines.
"""
_ROOT = Path(finskillbench_desk.__file__).parent


def main() -> None:
    """Print the figures of each seed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--cases", type=int, default=build.EPISODES)
    arguments = parser.parse_args()
    build.EPISODES = arguments.cases
    for seed in arguments.seeds:
        print(f"seed {seed}")
        panels = _panels(seed)
        start = time.process_time()
        context = BuildContext(panels, seed, synthetic=True)
        tasks = list(build.build(context, market(context)))
        print(f"  {len(tasks)} cases built in {time.process_time() - start:.1f} s of one core; {context.notes}")
        sizes = [sum(len(frame.write_csv()) for frame in task.tables.values()) for task in tasks]
        lots = [task.tables["custodian"].height for task in tasks]
        print(f"  tables of a case: {np.mean(sizes) / 1e3:.0f} kB as text; {min(lots)} to {max(lots)} lots")
        _baselines(tasks)
        _traps(tasks)


def _panels(seed: int) -> Panels:
    with tempfile.TemporaryDirectory() as folder:
        write_collection(Path(folder), seed=seed, names=30)
        return build_panels(load_market(Path(folder), names=30), load_filings(Path(folder)))


def _baselines(tasks: Sequence[BuiltTask]) -> None:
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    signed: dict[str, list[bool]] = defaultdict(list)
    for task in tasks:
        task_input = _input(task)
        answers = {name: _played(player, task_input) for name, player in PLAYERS.items()} | {"nothing": {}}
        for name, answer in answers.items():
            judged = score_committee_case(orjson.loads(orjson.dumps(answer)), task.truth, task_input)
            found[name, "all"].append(judged.value)
            found[name, task.episode.difficulty].append(judged.value)
            signed[name].append(judged.details["signed"])
    for name in (*PLAYERS, "nothing"):
        tiers = "  ".join(f"{tier} {np.mean(found[name, tier]):.3f}" for tier in build.TIERS if found[name, tier])
        values = found[name, "all"]
        error = np.std(values, ddof=1) / np.sqrt(len(values))
        print(f"  {name:14} {np.mean(values):.4f} +- {error:.4f}  {tiers}  signed {np.mean(signed[name]):.2f}")


def _traps(tasks: Sequence[BuiltTask]) -> None:
    """Print the cost of each trap for its part, and the time to judge such answers.

    The first wrong answer of a case also draws the probes of its differing clauses.
    """
    costs: dict[str, list[float]] = defaultdict(list)
    seconds: list[float] = []
    for task in tasks:
        for kind, part, answer in _misled(task):
            start = time.process_time()
            costs[kind].append(1 - score_committee_case(answer, task.truth, {}).details["parts"][part])
            seconds.append(time.process_time() - start)
    for kind, found in sorted(costs.items()):
        print(f"  {kind:20} in {len(found):2} cases  costs {min(found):.3f} at least, {np.mean(found):.3f} on average")
    middle, late, worst = np.quantile(seconds, [0.5, 0.95, 1.0])
    over = sum(one > 0.25 for one in seconds)
    print(
        f"  {len(seconds)} wrong answers judged: median {middle:.3f} s, 95 % within {late:.3f} s, {worst:.3f} s at most"
    )
    print(f"  {over} of them took more than 0.25 s")


def _misled(task: BuiltTask) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield each kind of trap, its part, and the true answer with that trap only; then all misreadings at once."""
    expected, hidden = task.truth.expected_output, task.truth.verification
    for planted in hidden["planted"]:
        if planted["trap"]:
            yield planted["kind"], "book", with_field(dict(expected), planted, planted["fallen"])
    slips = {trap: dict(changed) for trap, changed in hidden["coding"]["misread"].items() if changed}
    slips["all misreadings"] = {clause: rules for wrong in slips.values() for clause, rules in wrong.items()}
    for trap, wrong in slips.items():
        rules = [rule for rule in expected["rules"] if rule["clause"] not in wrong]
        rules += [rule for replaced in wrong.values() for rule in replaced]
        yield trap, "rules", {**expected, "rules": rules}


def _input(task: BuiltTask) -> dict[str, Any]:
    tables = {name: EpisodeTable(frame) for name, frame in task.tables.items()}
    return {**task.episode.input, **tables}


def _played(procedure: Callable[[], Any], task_input: dict[str, Any]) -> Any:
    playing = procedure()
    asks = next(playing)
    while True:
        try:
            asks = playing.send([_served(ask, task_input) for ask in asks])
        except StopIteration as end:
            return end.value


def _served(ask: ProcedureCall, task_input: dict[str, Any]) -> Any:
    arguments = ask.arguments
    if ask.tool == "get_task_data":
        return {"value": json.loads(dump(_field(task_input, arguments["field"])))}
    if ask.tool == "read_table":
        return json.loads(orjson.dumps(task_input[arguments["table"]].page(arguments["first"], rows=200)))
    if ask.tool != "run_skill_script":
        return {}
    fields = {name: _field(task_input, name) for name in arguments["inject_task_fields"]}
    try:
        output = _script(arguments["script_path"]).main(json.loads(dump({**fields, **arguments["input_data"]})))
    except FinSkillBenchError as error:
        return {"error": str(error)}
    return {"output": json.loads(orjson.dumps(output))}


def _field(task_input: Any, name: str) -> Any:
    for part in name.split("."):
        task_input = task_input[part]
    return task_input


@cache
def _script(path: str) -> Any:
    file = _ROOT / "skills" / path
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main()
