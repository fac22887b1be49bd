"""Digests of editions and baseline rows, compared with the committed ones, so that moving code changes no result.

    python benchmarks/golden.py [EDITION ...] [--write] [--base COMMIT [--ignore-text]]

Editions are `seed-1` and `seed-7` (both suites, synthetic) and `real` (both suites, from the collection of raw files in
`../shared/realdata`; skipped with a note where that is absent). Digested are the files under `truth/`, `episodes/` and
`certificates/`, and the rows of three baselines on `seed-1` without timings, versions and digests of configurations.
`--write` replaces `golden.json`. `--base` digests a commit in a separate checkout with the same packages, compares the
present code with it, prints the seconds of both, and leaves `golden.json` alone. `--ignore-text` leaves out texts
(strings with a space) and input tokens, so that a change of wording alone shows no difference. Exit code 1 where a
digest differs. Takes about 10 minutes on two cores. Last digits depend on the processor: where the committed digests
differ, compare with `--base`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import orjson

ROOT = Path(__file__).resolve().parents[1]
REAL = ROOT.parent / "shared" / "realdata"
COMMITTED = Path(__file__).with_suffix(".json")
EDITIONS = {
    "seed-1": ("--seed", "1"),
    "seed-7": ("--seed", "7"),
    "real": ("--seed", "1", "--source", "raw-dir", "--raw-dir", str(REAL)),
}
PARTS = ("truth", "episodes", "certificates")
MODELS = ("baseline/reference", "baseline/heuristic", "baseline/nop")
VARYING = (
    *("started", "ended", "latency_seconds", "queue_seconds", "retry_seconds"),
    *("edition", "mount", "code_version", "commit", "scorer_version", "digest"),
)
"""Columns in which rows of equal results may differ."""
_CLI = "import sys; from finskillbench.cli import main; sys.exit(main())"


def digests(checkout: Path, editions: list[str], folder: Path, *, texts: bool = True) -> dict[str, str]:
    """Return `edition/file` to SHA-256 for the code of `checkout`; editions and runs are written to `folder`."""
    found: dict[str, str] = {}
    for name in editions:
        edition = folder / name
        _call(checkout, "data", "build", "--suite", "all", *EDITIONS[name], "--out", str(edition))
        for part in PARTS:
            for path in sorted((edition / part).rglob("*")):
                if path.is_file():
                    content = path.read_bytes()
                    if not texts and path.suffix == ".jsonl":
                        content = b"\n".join(_without_texts(line) for line in content.splitlines())
                    found[f"{name}/{path.relative_to(edition)}"] = hashlib.sha256(content).hexdigest()
        if name == "seed-1":
            found[f"{name}/rows"] = _rows(checkout, edition, folder / "run", texts=texts)
    return found


def _without_texts(line: bytes) -> bytes:
    """Return a JSON line with sorted keys, in which strings with a space are empty."""

    def stripped(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: stripped(each) for name, each in value.items()}
        if isinstance(value, list):
            return [stripped(each) for each in value]
        return "" if isinstance(value, str) and " " in value else value

    return orjson.dumps(stripped(orjson.loads(line)), option=orjson.OPT_SORT_KEYS)


def _rows(checkout: Path, edition: Path, out: Path, *, texts: bool) -> str:
    """Run the baselines on an edition; return the SHA-256 of the sorted rows."""
    import polars as pl

    models = [word for model in MODELS for word in ("--model", model)]
    options = ("--suite", "all", "--condition", "no_skill", "--condition", "curated", "--limit", "8")
    _call(checkout, "run", "--edition", str(edition), *models, *options, "--out", str(out))
    rows = (
        pl.read_parquet(out / "rows.parquet")
        .drop(VARYING if texts else (*VARYING, "total_input_tokens"))
        .sort("task_id", "condition", "model", "run_idx")
    )
    return hashlib.sha256(rows.write_ndjson().encode()).hexdigest()


def _call(checkout: Path, *arguments: str) -> None:
    sources = os.pathsep.join(str(checkout / part) for part in ("src", "packages/finskillbench-desk/src"))
    environment, begun = {**os.environ, "PYTHONPATH": sources}, time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", _CLI, *arguments], cwd=checkout, env=environment, capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(f"finskillbench {' '.join(arguments)}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    print(f"{checkout.name}: {arguments[0]} {time.perf_counter() - begun:.1f} s", flush=True)


def compare(expected: dict[str, str], found: dict[str, str]) -> list[str]:
    """Return a line for each name that is missing, new or different, among the editions found."""
    editions = {name.split("/")[0] for name in found}
    names = sorted({name for name in expected if name.split("/")[0] in editions} | set(found))
    return [
        f"{name}: {'missing' if name not in found else 'new' if name not in expected else 'different'}"
        for name in names
        if expected.get(name) != found.get(name)
    ]


def main() -> int:
    """Print the comparison; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("editions", nargs="*", metavar="EDITION", default=list(EDITIONS))
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--base", metavar="COMMIT")
    parser.add_argument("--ignore-text", action="store_true")
    options = parser.parse_args()
    if options.ignore_text and not options.base:
        parser.error("--ignore-text needs --base; the committed digests hold texts")
    texts = not options.ignore_text
    editions = [name for name in options.editions if name != "real" or REAL.is_dir()]
    if "real" in options.editions and "real" not in editions:
        print(f"real: skipped, {REAL} is absent")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        found = digests(ROOT, editions, folder / "today", texts=texts)
        expected = json.loads(COMMITTED.read_text()) if COMMITTED.exists() else {}
        if options.base:
            checkout = folder / "checkout"
            subprocess.run(["git", "worktree", "add", "--detach", str(checkout), options.base], cwd=ROOT, check=True)
            try:
                expected = digests(checkout, editions, folder / "base", texts=texts)
            finally:
                subprocess.run(["git", "worktree", "remove", "--force", str(checkout)], cwd=ROOT, check=True)
    if options.write:
        kept = {name: value for name, value in expected.items() if name.split("/")[0] not in editions}
        COMMITTED.write_text(json.dumps(dict(sorted((kept | found).items())), indent=1) + "\n")
        print(f"{len(found)} digests written to {COMMITTED.name}")
        return 0
    differences = compare(expected, found)
    print(*differences, f"{len(found)} digests, {len(differences)} different", sep="\n")
    return 1 if differences else 0


if __name__ == "__main__":
    raise SystemExit(main())
