"""Subject of the validation: models, episodes, the provenance of both, and the guidance that the pack refers to.

Topics of SR 26-2 are those in the summary of OCC Bulletin 2026-13; principles of SS1/23 are those of its title page.
Neither is cited by paragraph.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import date

import polars as pl

from finskillbench.analysis.results import Results, distinct_values
from finskillbench.edition import Edition
from finskillbench.publish.pack.chapters import Chapter, captioned, facts_table
from finskillbench.reports.page.lineage import Lineage
from finskillbench.reports.read import RunRows
from finskillbench.reports.tables.base import Cell, Column, Kind, Table, columns_of
from finskillbench.reports.tables.common import order_of

REVIEWED = date(2026, 11, 26)
"""Date of the last review of these references against their sources; update it with every review."""
BASIS = (
    "The structure follows two references. SR 26-2 (Board of Governors of the Federal Reserve System) and OCC Bulletin "
    "2026-13 (Model Risk Management: Revised Guidance) were issued on 17 April 2026. They replaced SR 11-7 and OCC "
    "Bulletin 2011-12. SS1/23, Model risk management principles for banks (PRA), has been in effect since 17 May 2024.",
    "Generative and agentic AI are outside the scope of SR 26-2 and OCC Bulletin 2026-13. The guidance "
    "leaves controls of such tools to the risk management and governance of the organisation. This pack follows its "
    "principles voluntarily and claims no compliance with it. The firm determines whether SS1/23 applies.",
    f"These references were last reviewed on {REVIEWED.isoformat()}.",
)
_DEVELOPMENT = "Model development and model use"
_VALIDATION = "Model validation and monitoring"
_GOVERNANCE = "Governance and controls"
EXPECTATIONS = Table(
    "expectations",
    "Supervisory expectations and where they are addressed",
    (
        *columns_of(Kind.TEXT, expectation="Expectation", us="Topic of SR 26-2, OCC 2026-13", uk="SS1/23 principle"),
        Column("where", "In this pack"),
    ),
    (
        ("Identification and inventory", None, "1", "Purpose, scope and regulatory basis"),
        ("Intended use", _DEVELOPMENT, "3", "To be completed by the firm"),
        ("Data quality and lineage", _DEVELOPMENT, "3", "Data lineage; appendix"),
        ("Conceptual soundness", _VALIDATION, "3, 4", "Soundness of the labels (of the test, not of the model)"),
        ("Outcomes analysis", _VALIDATION, "4", "Outcomes analysis; acceptance criteria"),
        ("Benchmarking", _VALIDATION, "4", "Challenger analysis"),
        ("Stability and sensitivity", _VALIDATION, "3, 4", "Stability; sensitivity"),
        ("Error analysis", _VALIDATION, "4", "Failure analysis"),
        ("Limitations", _VALIDATION, "3, 5", "Limitations"),
        ("Independent review and effective challenge", _VALIDATION, "4", "Sign-off"),
        ("Ongoing monitoring", _VALIDATION, "4", "Not addressed: finskillbench compare with its gates"),
        ("Vendor and third-party models", "Vendor and other third-party products", None, "Inventory names providers"),
        ("Risk tier, governance and controls", _GOVERNANCE, "1, 2, 5", "Not addressed: the firm's responsibility"),
    ),
    ("n/a: no topic or principle is claimed for the expectation.",),
)


_GRANTED = {
    "no_skill": "no skills",
    "curated": "documents and scripts of the benchmark's skills",
    "self_generated": "skills that the agent writes in the episode",
    "docs_only": "documents of the skills without scripts",
    "scripts_only": "scripts of the skills without documents",
    "inline": "documents of the skills in the prompt",
    "placebo": "unrelated skills",
    "self_generated_persistent": "skills that the agent writes and keeps",
    "code": "code of the agent, no skills",
    "code_curated": "code of the agent, with the benchmark's skills",
}
_ELSEWHERE = ("Profile", "Rows", "Harness")
"""Facts that the cover and the first chapter state."""
_SERVED = "Served as: names that the provider returned with its answers."
_PROGRAMS = "Models named baseline/... are programs. Where a language model was run, they serve as challengers."


def reference_of(rows: pl.DataFrame) -> str:
    """Return the first 16 digits of the SHA-256 over the rows, independent of their order."""
    known = "digest" if "digest" in rows.columns and not rows["digest"].has_nulls() else None
    lines = rows["digest"].to_list() if known else [str(row) for row in rows.iter_rows()]
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()[:16]


def scope_chapter(results: Results) -> Chapter:
    """Return purpose, regulatory basis, scope and the inventory of models."""
    return Chapter(
        "scope",
        "Purpose, scope and regulatory basis",
        (
            "This pack is evidence for an independent validation of the models listed below. It is not the validation: "
            "the opinion, the intended use and the materiality are determined by the firm.",
            *BASIS,
            "A model is an AI agent: a language model with its arguments, in a loop that provides point-in-time data, "
            "tools and, under some conditions, skills (written procedures with tested scripts). It performs an "
            "investment manager's task and submits one answer, which is scored against a known label. The pack "
            "measures analytical correctness, not investment performance, and is not advice.",
            "An episode is one task. A row is one attempt of it by one model under one condition. A cluster is a group "
            "of episodes that share a market date, a mandate or a company. The headline score is the mean over "
            f"episodes of the headline subtasks, under the profile {results.profile.value}. A verdict is a score; n/a "
            "is a value that is absent or cannot be computed.",
            "Profiles: certified gives credit for provable merit; paper and strict are the published scorers and their "
            f"stricter variants. Conditions: {_conditions(results)}.",
        ),
        tables=(
            EXPECTATIONS,
            *captioned(
                _inventory(results), "Inventory of models", "all rows of the runs; unit: rows", _PROGRAMS, _SERVED
            ),
            *captioned(
                _episodes(results), "Episodes by subtask", "all rows of the runs; unit: distinct episodes, clusters"
            ),
        ),
    )


def extent_of(results: Results) -> str:
    """Return rows, episodes and days of the evidence, for the cover."""
    rows, days = results.rows, _days(results.rows)
    when = f", run on {days}" if days else ""
    return f"{rows.height:,} rows of {rows['episode'].n_unique():,} episodes{when}"


def _conditions(results: Results) -> str:
    return "; ".join(f"{name}, {_GRANTED.get(name, 'skills supplied by the user')}" for name in results.conditions)


def _inventory(results: Results) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for (model, harness), each in results.rows.group_by("model", "harness", maintain_order=True):
        repeats = each.group_by("condition", "episode").len()["len"]
        rows.append(
            (
                str(model),
                str(harness),
                _values(each, "provider"),
                _values(each.explode("served_models"), "served_models") if "served_models" in each.columns else None,
                _values(each, "arguments"),
                ", ".join(distinct_values(each, "condition")),
                each.height,
                repeats.sort()[-1],
                _days(each),
            )
        )
    columns = (
        *columns_of(Kind.TEXT, model="Model", harness="Harness", provider="Provider", served="Served as"),
        *columns_of(Kind.TEXT, arguments="Arguments", conditions="Conditions"),
        *columns_of(Kind.COUNT, rows="Rows", repeats="Most repeats"),
        Column("days", "Dates"),
    )
    return Table("inventory", "", columns, tuple(rows))


def _values(rows: pl.DataFrame, column: str) -> str | None:
    values = rows[column].drop_nulls().unique().sort().to_list() if column in rows.columns else []
    return ", ".join(map(str, values)) or None


def _days(rows: pl.DataFrame) -> str | None:
    days = rows["ended"].drop_nulls().dt.date().unique().sort() if "ended" in rows.columns else pl.Series()
    return None if not days.len() else " to ".join(dict.fromkeys((str(days[0]), str(days[-1]))))


def _episodes(results: Results) -> Table:
    rows = tuple(
        (
            each["domain"][0],
            str(name),
            each["episode"].n_unique(),
            each["cluster"].n_unique(),
            ", ".join(f"{level} {count}" for level, count in _levels(results, each)),
            "yes" if each["headline"][0] else "no",
        )
        for (name,), each in results.rows.group_by("sub_task", maintain_order=True)
    )
    columns = (
        *columns_of(Kind.TEXT, domain="Domain", sub_task="Subtask"),
        *columns_of(Kind.COUNT, episodes="Episodes", clusters="Clusters"),
        *columns_of(Kind.TEXT, difficulty="By difficulty", headline="In the headline"),
    )
    return Table("episodes", "", columns, rows)


def _levels(results: Results, rows: pl.DataFrame) -> Iterator[tuple[str, int]]:
    for name in order_of(results, "difficulty"):
        if count := rows.filter(pl.col("difficulty") == name)["episode"].n_unique():
            yield name, count


def lineage_chapter(lineage: Lineage, runs: Sequence[RunRows], editions: Mapping[str, Edition | str]) -> Chapter:
    """Return data lineage, with every digest in the appendix."""
    paragraphs = (
        "An edition is immutable and identified by the SHA-256 of its files. Every row names its edition, the skills "
        "of its condition (the mount), the scorers and the code. Rows of a run folder carry a digest over the values "
        "that determine a table; a row altered later is refused when a pack is produced.",
    )
    facts = facts_table("lineage", "Provenance", (fact for fact in lineage.facts if fact[0] not in _ELSEWHERE))
    return Chapter(
        "lineage",
        "Data lineage",
        paragraphs,
        tables=captioned(facts, facts.title, "all rows of the runs; unit: as named"),
        appendix=tuple(_digests(runs, editions)),
    )


def _digests(runs: Sequence[RunRows], editions: Mapping[str, Edition | str]) -> Iterator[Table]:
    for run in runs:
        if run.record is None:
            continue
        record = run.record
        facts = [("Prompts", record.prompts_digest), ("Scorers", record.scorer_version)]
        for name, mount in record.mounts.items():
            facts.append((f"Mount of {name}", ", ".join(dict.fromkeys(mount["digest"].values()))))
            facts += [(f"{name}: package {package}", str(digest)) for package, digest in mount["packages"].items()]
        facts += [(f"Version of {name}", version) for name, version in record.versions.items()]
        facts += [(f"Sandbox guard: {name}", "held" if held else "not held") for name, held in record.sandbox.items()]
        facts += [(f"Interpreter of {name}", who) for name, who in record.interpreters.items()]
        yield facts_table("run", f"Run {run.path.name}", facts)
    for digest, edition in editions.items():
        if not isinstance(edition, str):
            files = ((name, str(each)) for name, each in edition.manifest["files"].items())
            noted = tuple((text,) for text in edition.manifest["notes"])
            if noted:
                yield Table("noted", f"Notes of the build of edition {digest[:12]}", (Column("note", "Note"),), noted)
            yield facts_table("files", f"Files of edition {digest[:12]} (SHA-256)", files)
