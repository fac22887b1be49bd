"""Export a run for receivers of results: ATIF trajectories, Every Eval Ever records, an Inspect Evals entry.

Files hold no truth, keys or path of the home folder; those with prompts have the canary.
Sources: `harbor.models.trajectories` of Harbor 0.26; `eval.schema.json` and `instance_level_eval.schema.json` of
every-eval-ever 0.3.0; `inspect_evals.metadata.ExternalEvalMetadata`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import zip_longest
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import orjson
import polars as pl
import yaml

from finskillbench.analysis.intervals import estimate_means
from finskillbench.analysis.repeats import FULL
from finskillbench.analysis.results import Results, collect
from finskillbench.edition.store import CANARY
from finskillbench.episode import Profile
from finskillbench.errors import InputError
from finskillbench.harness.model import Message, ToolCall, Usage
from finskillbench.harness.models import ModelKey
from finskillbench.harness.providers.prices import PROGRAMS
from finskillbench.harness.trace import BUILTIN_HARNESS, CallRecord, Trace
from finskillbench.integrations.exports import HEADLINE, read_arms
from finskillbench.redaction import cleaner
from finskillbench.runs.plan.items import arm_folder
from finskillbench.runs.store.journal import read_trajectory
from finskillbench.runs.store.record import FILE, RunRecord
from finskillbench.runs.store.rows import Row, to_frame
from finskillbench.runs.store.version import file_name, make_folder, write_atomic
from finskillbench.scoring.values import is_object

NAME = "finskillbench"
ATIF, EVERY_EVAL_EVER = "ATIF-v1.7", "0.3.0"
"""Versions of the schemas."""
TASK, TASK_FILE = "all", "src/finskillbench/integrations/tasks.py"
"""The Inspect task of all subtasks, and its file in the repository."""
Json = dict[str, Any]


def export_atif(run: Path, out: Path, models: Sequence[str] = (), conditions: Sequence[str] = ()) -> list[Path]:
    """Write one trajectory per attempt below `out`; return the folders, one per model and condition.

    Raises
    ------
    InputError : the folder is not a run, has no such model or condition, or a file cannot be read or written.
    """
    clean = cleaner()
    files: dict[Path, bytes] = {}
    for (entry, condition), rows in read_arms(run, out, models, conditions)[1].items():
        for row in rows:
            document = to_atif(row, read_trajectory(run / row.item.trajectory).trace)
            name = Path(row.item.trajectory).name.removesuffix(".gz")
            files[out / arm_folder(entry, condition) / name] = clean(orjson.dumps(document).decode()).encode()
    _write(files)
    return list(dict.fromkeys(path.parent for path in files))


def _write(files: Mapping[Path, bytes]) -> None:
    """Write all files of an export, after all of its trajectories were read."""
    for path, content in files.items():
        make_folder(path.parent)
        write_atomic(path, content)


def to_atif(row: Row, trace: Trace) -> Json:
    """Return an attempt as a trajectory; its score, status and edition are in `extra`."""
    program = row.model.startswith(PROGRAMS)
    steps = [{"step_id": number, **step} for number, step in enumerate(_steps(trace, program=program), 1)]
    more = {"tools": trace.tools, "arguments": row.arguments}
    agent = {"name": trace.harness, "version": row.code_version, "model_name": row.model, "extra": more}
    totals = {f"total_{name}": value for name, value in _metrics(trace.usage).items()}
    shown = ("score", "score_profile", "status", "condition", "edition", "mount", "sub_task", "run_idx", "started")
    return {
        "schema_version": ATIF,
        "session_id": f"{row.edition[:12]}/{row.item.trajectory}",
        "trajectory_id": row.task_id,
        "agent": agent,
        "steps": steps,
        "notes": CANARY,
        "final_metrics": {**totals, "total_steps": len(steps)},
        "extra": {name: getattr(row, name) for name in shown} | {"ended_by": trace.ended, "error": trace.error},
    }


def _steps(trace: Trace, *, program: bool) -> Iterator[Json]:
    """Yield messages as steps; results of tools belong to the step before them.

    Model calls of the built-in harness are in the order of its turns, others cannot be assigned to turns.
    """
    calls = iter(trace.model_calls if trace.harness == BUILTIN_HARNESS and not program else ())
    messages = trace.messages
    starts = [place for place, message in enumerate(messages) if message.role != "tool"]
    for start, end in zip_longest(starts, starts[1:], fillvalue=len(messages)):
        step: Json = {"source": messages[start].role, "message": messages[start].content}
        if step["source"] == "assistant":
            step["source"] = "agent"
            step |= _turn(messages[start].tool_calls, messages[start + 1 : end], next(calls, None))
            step |= {"llm_call_count": 0} if program else {}
        yield step


def _turn(calls: Sequence[ToolCall], results: Sequence[Message], made: CallRecord | None) -> Json:
    ids = {each.id for each in calls}
    found = [
        {"source_call_id": each.tool_call_id if each.tool_call_id in ids else None, "content": each.content}
        for each in results
    ]
    turn: Json = {"observation": {"results": found}} if found else {}
    if calls:
        turn["tool_calls"] = [
            {"tool_call_id": each.id, "function_name": each.name, "arguments": _arguments(each)} for each in calls
        ]
    if made is not None:
        turn |= {"metrics": _metrics(made.usage), "llm_call_count": 1, "model_name": made.served_model}
    return turn


def _arguments(call: ToolCall) -> Mapping[str, Any]:
    """Return the arguments of a tool call; a text that is no JSON object is kept as `unparsed`."""
    try:
        found = orjson.loads(call.arguments)
    except orjson.JSONDecodeError:
        found = None
    return found if is_object(found) else {"unparsed": call.arguments}


def _metrics(usage: Usage) -> Json:
    tokens = {"prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens}
    return {**tokens, "cached_tokens": usage.cached_tokens, "cost_usd": usage.cost_usd}


def export_every_eval_ever(
    run: Path,
    out: Path,
    organization: str,
    models: Sequence[str] = (),
    conditions: Sequence[str] = (),
    profile: Profile = Profile.CERTIFIED,
) -> list[Path]:
    """Write a record and its samples per model and condition below `out/data/finskillbench`; return the records.

    Names of agents without a developer get that of the organization. A row in error has no score and is only counted.

    Raises
    ------
    InputError : the organization has no name, the folder is not a run, has no such model or condition or no score, or a
        file cannot be read or written.
    """
    if not organization.strip():
        raise InputError("--organization has no name; state who ran the evaluation")
    record, arms = read_arms(run, out, models, conditions)
    clean = cleaner()
    files: dict[Path, bytes] = {}
    for (entry, condition), rows in arms.items():
        results = collect(to_frame(rows), profile)
        if results.episodes.is_empty():
            continue
        model = entry.model if "/" in entry.model else f"{organization.replace(' ', '-')}/{entry.model}"
        developer, *names = (file_name(part) for part in model.split("/"))
        document = _record(run, record, entry, condition, rows, results)
        document["source_metadata"]["source_organization_name"] = organization
        document["model_info"]["id"] = "/".join((developer, *names))
        digest = hashlib.sha256(document["evaluation_id"].encode()).digest()
        path = Path("data", NAME, developer, "_".join(names), str(UUID(bytes=digest[:16], version=4)))
        samples = [
            clean(orjson.dumps(line).decode()).encode() + b"\n" for line in _samples(run, document, rows, results)
        ]
        document["detailed_evaluation_results"] = {
            "format": "jsonl",
            "file_path": f"{path.as_posix()}_samples.jsonl",
            "hash_algorithm": "sha256",
            "checksum": hashlib.sha256(b"".join(samples)).hexdigest(),
            "total_rows": len(samples),
        }
        text = orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()
        files |= {out / f"{path}_samples.jsonl": b"".join(samples), out / f"{path}.json": clean(text).encode()}
    if not files:
        raise InputError(f"{run}: no episode has a score; resume the run, or judge it with finskillbench rescore")
    _write(files)
    return [path for path in files if path.suffix == ".json"]


def _record(
    run: Path, record: RunRecord, entry: ModelKey, condition: str, rows: Sequence[Row], results: Results
) -> Json:
    known = [row.ended for row in rows if row.ended is not None]
    ended = max(known) if known else datetime.fromtimestamp((run / FILE).stat().st_mtime, UTC)
    key = f"{NAME}/{entry}/{condition}/{record.edition_digest[:12]}/{ended.isoformat()}"
    row = rows[0]
    code = {"scorer_version": row.scorer_version, "commit": row.commit or "unknown"}
    details = {"deployment_type": "unknown", "model_availability": "unknown", "harness": row.harness}
    source = {"source_name": "FinSkillBench", "source_type": "evaluation_run", "evaluator_relationship": "other"}
    settings = {"condition": condition, "arguments": entry.arguments}
    return {
        "schema_version": EVERY_EVAL_EVER,
        "evaluation_id": key,
        "retrieved_timestamp": str(ended.timestamp()),
        "evaluation_timestamp": str(ended.timestamp()),
        "source_metadata": source,
        "eval_library": {"name": NAME, "version": record.versions[NAME], "additional_details": code},
        "model_info": {"name": entry.model, "inference_platform": row.provider, "additional_details": details},
        "evaluation_results": [
            {**each, "generation_config": {"additional_details": settings}} for each in _results(key, results)
        ],
    }


def _results(key: str, results: Results) -> Iterator[Json]:
    """Yield the headline, which pools subtasks, and each subtask."""
    metric = {
        "metric_id": f"{NAME}.{results.profile}",
        "metric_name": f"{results.profile} score",
        "metric_unit": "proportion",
        "lower_is_better": False,
        "score_type": "continuous",
        "min_score": 0.0,
        "max_score": "Infinity" if results.profile is Profile.PAPER else 1.0,
    }
    details = {"edition": results.rows["edition"][0], "canary": CANARY}
    parts = [(HEADLINE, pl.col("headline")), *((name, pl.col("sub_task") == name) for name in results.sub_tasks)]
    for name, chosen in parts:
        if (part := results.episodes.filter(chosen)).is_empty():
            continue
        errors = {"rows_in_error": str(int(results.rows.filter(chosen)["failed"].sum()))}
        line = estimate_means(part, "score").row(0, named=True)
        spread: Json = {"num_samples": line["pairs"]}
        if line["low"] is not None:
            spread["standard_error"] = {"value": line["error"], "method": "cluster-robust (CR2)"}
            ends = {"lower": line["low"], "upper": line["high"], "confidence_level": 0.95}
            spread["confidence_interval"] = {**ends, "method": "t, Satterthwaite's degrees of freedom, clustered"}
        yield {
            "evaluation_result_id": f"{key}#{name}",
            "evaluation_name": f"{NAME}.{name}",
            "source_data": {"dataset_name": NAME, "source_type": "other", "additional_details": details},
            "metric_config": metric,
            "score_details": {"score": line["mean"], "details": errors, "uncertainty": spread},
        }


def _samples(run: Path, document: Json, rows: Sequence[Row], results: Results) -> Iterator[Json]:
    """Yield one line per scored row; each belongs to the result of its subtask."""
    columns = results.rows.select("task_id", "run_idx", "score").iter_rows()
    scores = {(task, repeat): score for task, repeat, score in columns}
    for row in rows:
        if (score := scores[row.task_id, row.run_idx]) is None:
            continue
        trace = read_trajectory(run / row.item.trajectory).trace
        calls = {"num_turns": max(row.turns, 1), "tool_calls_count": row.tool_calls}
        shown = ("difficulty", "condition", "status", "run_idx")
        yield {
            "schema_version": EVERY_EVAL_EVER,
            "evaluation_id": document["evaluation_id"],
            "model_id": document["model_info"]["id"],
            "evaluation_name": f"{NAME}.{row.sub_task}",
            "evaluation_result_id": f"{document['evaluation_id']}#{row.sub_task}",
            "sample_id": row.task_id,
            "interaction_type": "agentic",
            "input": {"raw": trace.messages[1].content, "reference": []},
            "messages": [_message(place, each) for place, each in enumerate(trace.messages)],
            "answer_attribution": _answer(trace),
            "evaluation": {"score": score, "is_correct": score >= FULL, **calls},
            "token_usage": _tokens(row),
            "metadata": {**{name: str(getattr(row, name)) for name in shown}, "canary": CANARY},
        }


def _tokens(row: Row) -> Json | None:
    used, made = row.total_input_tokens, row.total_output_tokens
    if used is None or made is None:
        return None
    return {"input_tokens": used, "output_tokens": made, "total_tokens": used + made}


def _message(place: int, message: Message) -> Json:
    """Return a message; the format takes texts only as arguments of tools."""
    turn: Json = {"turn_idx": place, "role": message.role, "content": message.content}
    if message.tool_call_id is not None:
        turn["tool_call_id"] = [message.tool_call_id]
    if message.tool_calls:
        turn["tool_calls"] = [
            {
                "id": call.id,
                "name": call.name,
                "arguments": {name: _text(each) for name, each in _arguments(call).items()},
            }
            for call in message.tool_calls
        ]
    return turn


def _text(value: object) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _answer(trace: Trace) -> list[Json]:
    turns = [place for place, each in enumerate(trace.messages) if each.role == "assistant"]
    if trace.answer is None or not turns:
        return []
    where = {"turn_idx": turns[-1], "source": f"messages[{turns[-1]}].tool_calls", "extraction_method": "submit_answer"}
    return [{**where, "extracted_value": trace.answer, "is_terminal": True}]


def export_register_entry(run: Path, out: Path, repository: str, commit: str | None = None) -> Path:
    """Write `finskillbench/eval.yaml` for the folder `register` of Inspect Evals; models of the run are its report.

    `repository` is the web address of the code, `commit` the pinned one, by default that of all rows.

    Raises
    ------
    InputError : the folder is not a run, the address has no owner, no one clean commit is known or `commit` is not one,
        or a file cannot be read or written.
    """
    record, arms = read_arms(run, out)
    address = urlsplit(repository)
    owner = address.path.strip("/").partition("/")[0]
    if not owner or address.scheme != "https":
        raise InputError(f"--repository {repository}: not an address like https://github.com/OWNER/REPOSITORY")
    if commit is not None and not re.fullmatch("[0-9a-f]{40}", commit):
        raise InputError(f"--commit {commit}: not the 40 hexadecimal digits of a commit; name the published one")
    commits = {row.commit for rows in arms.values() for row in rows}
    pinned = commit or (commits.pop() if len(commits) == 1 else None)
    if pinned is None or pinned.endswith("-dirty"):
        raise InputError(f"{run}: its rows do not share one clean commit; name the published one with --commit")
    models = [(entry, name, rows) for (entry, name), rows in arms.items() if not entry.model.startswith(PROGRAMS)]
    reported = [line for each in models for line in _reported(*each)]
    report = {"commit": pinned, "version": record.versions[NAME], "results": reported}
    samples = len({item.task_id for item in record.items()})
    document = {
        "full_title": "FinSkillBench: AI agents and domain skills for investment management",
        "common_title": "FinSkillBench",
        "description": "Portfolio construction, risk management and filings: proved labels, with and without skills",
        "contributors": [owner],
        "tasks": [{"name": TASK, "task_path": TASK_FILE, "dataset_samples": samples}],
        "source": {"repository_url": repository, "repository_commit": pinned},
        **({"evaluation_report": report} if reported else {}),
    }
    make_folder(out / NAME)
    text = yaml.safe_dump(document, sort_keys=False, width=1000)
    write_atomic(out / NAME / "eval.yaml", cleaner()(text).encode())
    return out / NAME / "eval.yaml"


def _reported(entry: ModelKey, condition: str, rows: Sequence[Row]) -> Iterator[Json]:
    """Yield the headline of a model under a condition, if it has one."""
    counted = collect(to_frame(rows)).episodes.filter("headline")
    if counted.height:
        line = estimate_means(counted, "score").row(0, named=True)
        metrics = {"certified_headline": line["mean"], "stderr": line["error"], "episodes": line["pairs"]}
        values = [{"key": name, "value": value} for name, value in metrics.items() if value is not None]
        yield {"model": str(entry), "task": TASK, "condition": condition, "metrics": values}
