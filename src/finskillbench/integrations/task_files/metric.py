# /// script
# dependencies = []
# ///
"""Mean reward of a Harbor job; a trial without a reward counts 0."""

import argparse
import json
from pathlib import Path
from statistics import fmean


def main(rewards: Path, out: Path) -> None:
    """Read rewards as JSON lines, an object or null for each trial, and write their mean."""
    lines: list[dict[str, float] | None] = [
        json.loads(line) for line in rewards.read_text(encoding="utf-8").splitlines()
    ]
    values = [0.0 if line is None else line.get("reward", 0.0) for line in lines]
    out.write_text(json.dumps({"mean": fmean(values) if values else 0.0}), encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("-i", "--input-path", type=Path, required=True)
    parser.add_argument("-o", "--output-path", type=Path, required=True)
    options = parser.parse_args()
    main(options.input_path, options.output_path)
