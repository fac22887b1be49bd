"""Build a leaderboard from bundles: a static page without network requests, tables as CSV, and JSON."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import date
from pathlib import Path

import orjson

from finskillbench.edition import Edition
from finskillbench.edition.store import new_folder
from finskillbench.episode import Profile
from finskillbench.harness.models import ModelKey
from finskillbench.publish.bundle.judge import JudgedBundle, headline_tasks
from finskillbench.publish.leaderboard.gather import (
    JudgedSubmissions,
    LeaderboardEntry,
    Refusal,
    condition_label,
    gather_bundles,
)
from finskillbench.publish.leaderboard.ranking import Leaderboard, make_leaderboard
from finskillbench.reports.formats import Format, to_json, write_tables
from finskillbench.reports.page.render import leaderboard_page
from finskillbench.reports.tables.common import slug
from finskillbench.runs.store.version import code_version, scorer_version, write_atomic

__all__ = ["JudgedSubmissions", "Refusal", "gather_bundles", "write_site"]

INDEX = "index.html"
JSON = "leaderboard.json"
TABLES = "tables"
_MOST_ITEMS = 40
_HOW = (
    "All scores on this page are recomputed from the submitted answers and the truth of the edition. Scores that "
    "submitters claim are compared, but never used.",
    "Not checked: the author of the answers, and the submitter's statements on cost, tokens and training. Episodes can "
    "be solved from their input by programs that follow the published procedures. Interactive episodes are not "
    "counted, because their records cannot be verified.",
)


def write_site(
    gathered: JudgedSubmissions,
    edition: Edition,
    out: Path,
    *,
    today: date,
    title: str = "FinSkillBench leaderboard",
    profile: Profile = Profile.CERTIFIED,
) -> Leaderboard:
    """Write the leaderboard into a new folder, completely or not at all; InputError if that is not possible."""
    leaderboard = make_leaderboard(gathered, headline_tasks(edition.episodes()), profile)
    page = leaderboard_page(_content(leaderboard, gathered, edition, today=today, title=title, profile=profile))
    with new_folder(out) as folder:
        for suite in leaderboard.suites:
            (folder / TABLES / slug(suite.name)).mkdir(parents=True)
            write_tables(suite.tables, Format.CSV, folder / TABLES / slug(suite.name))
        write_atomic(folder / JSON, _json(leaderboard, gathered, edition, today=today, profile=profile))
        write_atomic(folder / INDEX, page.encode())
    return leaderboard


def _content(
    leaderboard: Leaderboard,
    gathered: JudgedSubmissions,
    edition: Edition,
    *,
    today: date,
    title: str,
    profile: Profile,
) -> Mapping[str, object]:
    days = [episode.as_of_date for episode in edition.episodes()]
    synthetic = edition.manifest["source"]["kind"] == "synthetic"
    return {
        "title": title,
        "subtitle": (
            f"{len(leaderboard.entries)} entries in {len(gathered.taken)} bundles; profile {profile}; written {today}"
        ),
        "sentences": _HOW,
        "facts": [
            ("Edition", edition.digest),
            ("Latest as-of date", str(max(days))),
            (
                "Contamination",
                "everything in this edition is fictional, so dates are irrelevant; a new seed gives a new edition"
                if synthetic
                else "an episode dated after a model's training cut-off uses some figures published after training",
            ),
            ("Judged by", f"FinSkillBench {code_version()}, scorers {scorer_version()}"),
        ],
        "suites": [
            {"id": slug(suite.name), "title": f"{suite.name.capitalize()} suite", "tables": suite.tables}
            for suite in leaderboard.suites
        ],
        "entries": [
            {"name": each.label, "url": part.bundle.manifest.submitter.url, "facts": list(_facts(each, part))}
            for each in leaderboard.entries
            for part in each.parts
        ],
        "refused": gathered.refused,
        "footer": "Written by FinSkillBench. All of it as JSON:",
    }


def _facts(listed: LeaderboardEntry, judged: JudgedBundle) -> Iterator[tuple[str, str]]:
    """Yield the displayed facts of an entry in one of its bundles."""
    bundle = judged.bundle
    manifest, signer = bundle.manifest, bundle.signer
    yield "Submitted by", manifest.submitter.name
    if manifest.submitter.contact:
        yield "Contact", manifest.submitter.contact
    owner = "" if signer is None or signer.owner is None else f" of {signer.owner}"
    yield "Signature", "none" if signer is None else f"{signer.key}{owner}"
    yield "Run on", played(judged)
    yield "Arguments", listed.entry.arguments
    rows = listed.rows(judged)
    yield "Harness", ", ".join(sorted({row.harness for row in rows}))
    yield "Code", _join_first({f"{row.code_version} ({row.commit or 'no commit'})" for row in rows})
    for condition, name in dict.fromkeys((row.condition, condition_label(row)) for row in rows):
        mounted = manifest.mounts[condition].packages
        packages = {f"{package} {digest[:12]}" for package, digest in mounted.items()}
        yield f"Skills under {name}", _join_first(packages) or "none"
    stated = {ModelKey(each.model, each.arguments): each.cutoff for each in manifest.entrants}
    yield "Stated cut-off", str(stated[listed.entry] or "not stated")
    if manifest.partial is not None:
        yield "Episodes missing", manifest.partial
    yield "Remarks", "; ".join(judged.remarks) or "none"
    yield "Manifest", bundle.digest


def _join_first(items: Collection[str]) -> str:
    displayed, more = sorted(items)[:_MOST_ITEMS], len(items) - _MOST_ITEMS
    return ", ".join(displayed) + (f" and {more} more" if more > 0 else "")


def played(judged: JudgedBundle) -> str:
    """Return the days on which the episodes of a bundle ended."""
    days = sorted({row.ended.date() for row in judged.rows if row.ended is not None})
    if not days:
        return "not recorded"
    return str(days[0]) if days[0] == days[-1] else f"{days[0]} to {days[-1]}"


def _json(
    leaderboard: Leaderboard, gathered: JudgedSubmissions, edition: Edition, *, today: date, profile: Profile
) -> bytes:
    document = {
        "edition": edition.digest,
        "written": today.isoformat(),
        "profile": profile,
        "scorer_version": scorer_version(),
        "suites": {suite.name: [to_json(table) for table in suite.tables] for suite in leaderboard.suites},
        "entries": [_entry(each, part) for each in leaderboard.entries for part in each.parts],
        "refused": [{"name": each.name, "reason": each.reason} for each in gathered.refused],
    }
    return orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n"


def _entry(listed: LeaderboardEntry, part: JudgedBundle) -> dict[str, object]:
    bundle = part.bundle
    signer = bundle.signer
    return {
        "name": listed.label,
        "model": listed.entry.model,
        "arguments": listed.entry.arguments,
        "submitter": bundle.manifest.submitter.name,
        "key": None if signer is None else signer.key,
        "owner": None if signer is None else signer.owner,
        "manifest": bundle.digest,
        "remarks": list(part.remarks),
    }
