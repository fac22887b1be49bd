"""Print figures of the committee case's documents: similarity, contents, and cost of traps.

    python packages/finskillbench-desk/benchmarks/documents.py [--seeds 0 1] [--documents 40] [--judged 10]

Covers words and paragraphs, pairwise Jaccard similarity of 5-grams of words, kinds of clauses and amendments, and the
independent reader's score. The first `--judged` documents give the loss by trap and processor seconds.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections import Counter
from datetime import date

import numpy as np

from finskillbench_desk.committee_case.documents.amending import draw_guidelines
from finskillbench_desk.committee_case.documents.drafting import rotation
from finskillbench_desk.committee_case.documents.kinds import KINDS
from finskillbench_desk.committee_case.documents.reader import read_guidelines
from finskillbench_desk.committee_case.documents.rendering import Guidelines, ReadingTrap
from finskillbench_desk.committee_case.documents.vocabulary import Vocabulary
from finskillbench_desk.committee_case.rules.judging import clauses_of, coding_truth, judge_rules
from finskillbench_desk.engines.guidelines.language import rule_json

VOCABULARY = Vocabulary({f"IS{i:02d}": f"Issuer {i:02d} Holdings" for i in range(24)})


def documents(seed: int, count: int) -> list[Guidelines]:
    """Draw one edition's documents."""
    return [
        draw_guidelines(np.random.default_rng([seed, i]), VOCABULARY, date(2024, 6, 28), requested=rotation(i))
        for i in range(count)
    ]


def five_grams(text: str) -> set[tuple[str, ...]]:
    """Return runs of five words, in lower case."""
    tokens = text.lower().split()
    return {tuple(tokens[i : i + 5]) for i in range(len(tokens) - 4)}


def contents(drawn: list[Guidelines]) -> None:
    """Print lengths, similarity, kinds and amendments."""
    lengths = [len(each.text.split()) for each in drawn]
    grams = [five_grams(each.text) for each in drawn]
    likeness = [len(a & b) / len(a | b) for a, b in itertools.combinations(grams, 2)]
    kinds = Counter(kind for each in drawn for kind in {clause.kind for clause in (*each.clauses, *each.in_force()[0])})
    rarest = min(KINDS, key=lambda name: kinds[name])
    rules = [len(each.rules()) for each in drawn]
    print(f"words {min(lengths)}-{max(lengths)}, paragraphs {sorted({each.paragraphs for each in drawn})}", end=", ")
    print(f"rules in force {min(rules)}-{max(rules)}, kinds {len(KINDS)}")
    print(f"Jaccard of 5-grams: mean {np.mean(likeness):.3f}, greatest {max(likeness):.3f}")
    print(f"rarest kind: {rarest} in {kinds[rarest]} documents")
    operations = Counter(item.operation for each in drawn for items in each.amendments for item in items)
    print("amendments:", ", ".join(f"{name} {count}" for name, count in operations.most_common()))


def judged(drawn: list[Guidelines]) -> None:
    """Print scores of the reader and losses by trap."""
    lost: dict[str, list[float]] = {}
    reader: list[float] = []
    drawing, judging = 0.0, 0.0
    for i, each in enumerate(drawn):
        hidden = coding_truth(each, VOCABULARY, i)
        start = time.process_time()
        clauses = clauses_of(hidden)
        for clause in clauses.rules:
            clauses.probes(clause)
        drawing += time.process_time() - start
        reader.append(judge_rules(read_guidelines(each.text, VOCABULARY), hidden).value)
        cases = {trap.value: frozenset((trap,)) for trap in ReadingTrap} | {"all of them": frozenset(ReadingTrap)}
        start = time.process_time()
        for name, traps in cases.items():
            value = judge_rules([rule_json(rule) for rule in each.rules(traps)], hidden).value
            lost.setdefault(name, []).append(1 - value)
        judging += time.process_time() - start
    print(f"reader earns {np.mean(reader):.4f} (least {min(reader):.4f})")
    for name, values in lost.items():
        print(f"falling for {name} costs {np.mean(values):.3f} of the rules part (least {min(values):.3f})")
    each_judged = judging / len(drawn) / (len(ReadingTrap) + 1)
    print(f"processor seconds: {drawing / len(drawn):.2f} to draw a document's probes, {each_judged:.3f} to judge")


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--documents", type=int, default=40)
    parser.add_argument("--judged", type=int, default=10)
    options = parser.parse_args()
    for seed in options.seeds:
        print(f"seed {seed}")
        drawn = documents(seed, options.documents)
        contents(drawn)
        judged(drawn[: options.judged])


if __name__ == "__main__":
    main()
