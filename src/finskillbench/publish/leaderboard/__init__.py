"""A leaderboard from bundles: a page without network requests, its tables as CSV, and all of it as JSON."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import date
from pathlib import Path

import orjson

from finskillbench.edition import Edition
from finskillbench.edition.store import new_folder
from finskillbench.episode import Profile
from finskillbench.harness.models import ModelKey
from finskillbench.publish.bundle.judge import Judged, required
from finskillbench.publish.leaderboard.gather import Gathered, Listed, Refusal, gather, shown
from finskillbench.publish.leaderboard.ranking import Leaderboard, make_leaderboard
from finskillbench.reports.formats import Format, to_json, write_tables
from finskillbench.reports.page.render import board_page
from finskillbench.reports.tables.common import slug
from finskillbench.runs.store.version import code_version, scorer_version, write_atomic

__all__ = ["Gathered", "Refusal", "gather", "write_site"]

INDEX = "index.html"
JSON = "leaderboard.json"
TABLES = "tables"
_MOST_WORDS = 40
_HOW = (
    "Every score on this page was computed here, from the answers that were submitted, held against the truth of the "
    "edition. Scores that entrants claim are compared and never used.",
    "What is not checked: who wrote the answers, and what an entrant says of cost, tokens and training. Episodes can "
    "be solved from what they show by whoever follows the published procedures. Not counted are episodes that are "
    "played move by move: what was done in them would be the entrant's word.",
)


def write_site(
    gathered: Gathered,
    edition: Edition,
    out: Path,
    *,
    today: date,
    title: str = "FinSkillBench leaderboard",
    profile: Profile = Profile.CERTIFIED,
) -> Leaderboard:
    """Write the page of some bundles into a new folder.

    Raises
    ------
    InputError : the folder is not empty, or cannot be written. Nothing is left half-written.
    """
    board = make_leaderboard(gathered, required(edition.episodes()), profile)
    page = board_page(_content(board, gathered, edition, today=today, title=title, profile=profile))
    with new_folder(out) as folder:
        for suite in board.suites:
            (folder / TABLES / slug(suite.name)).mkdir(parents=True)
            write_tables(suite.tables, Format.CSV, folder / TABLES / slug(suite.name))
        write_atomic(folder / JSON, _json(board, gathered, edition, today=today, profile=profile))
        write_atomic(folder / INDEX, page.encode())
    return board


def _content(
    board: Leaderboard, gathered: Gathered, edition: Edition, *, today: date, title: str, profile: Profile
) -> Mapping[str, object]:
    days = [episode.as_of_date for episode in edition.episodes()]
    synthetic = edition.manifest["source"]["kind"] == "synthetic"
    return {
        "title": title,
        "subtitle": (
            f"{len(board.entries)} entries in {len(gathered.taken)} bundles; profile {profile}; written {today}"
        ),
        "sentences": _HOW,
        "facts": [
            ("Edition", edition.digest),
            ("Newest day that is asked of", str(max(days))),
            (
                "Contamination",
                "everything in this edition is fictional; days tell nothing, and a new seed makes a new one"
                if synthetic
                else "an episode asked after a model's cut-off rests on figures that were not all out in training",
            ),
            ("Judged by", f"FinSkillBench {code_version()}, scorers {scorer_version()}"),
        ],
        "suites": [
            {"id": slug(suite.name), "title": f"{suite.name.capitalize()} suite", "tables": suite.tables}
            for suite in board.suites
        ],
        "entries": [
            {"name": each.label, "url": part.bundle.manifest.submitter.url, "facts": list(_facts(each, part))}
            for each in board.entries
            for part in each.parts
        ],
        "refused": gathered.refused,
        "footer": "Written by FinSkillBench. All of it as JSON:",
    }


def _facts(listed: Listed, judged: Judged) -> Iterator[tuple[str, str]]:
    """What is said of an entry in one of its bundles."""
    bundle = judged.bundle
    manifest, signer = bundle.manifest, bundle.signer
    yield "Submitted by", manifest.submitter.name
    if manifest.submitter.contact:
        yield "Contact", manifest.submitter.contact
    owner = "" if signer is None or signer.owner is None else f" of {signer.owner}"
    yield "Signature", "none" if signer is None else f"{signer.key}{owner}"
    yield "Played", played(judged)
    yield "Arguments", listed.entry.arguments
    own = listed.rows(judged)
    yield "Harness", ", ".join(sorted({row.harness for row in own}))
    yield "Code", _some_words({f"{row.code_version} ({row.commit or 'no commit'})" for row in own})
    for condition, name in dict.fromkeys((row.condition, shown(row)) for row in own):
        mounted = manifest.mounts[condition].packages
        packages = {f"{package} {digest[:12]}" for package, digest in mounted.items()}
        yield f"Skills under {name}", _some_words(packages) or "none"
    stated = {ModelKey(each.model, each.arguments): each.cutoff for each in manifest.entrants}
    yield "Stated cut-off", str(stated[listed.entry] or "not stated")
    if manifest.partial is not None:
        yield "Not whole", manifest.partial
    yield "Remarks", "; ".join(judged.remarks) or "none"
    yield "Manifest", bundle.digest


def _some_words(words: Collection[str]) -> str:
    """Words in their order, as many as a page takes."""
    shown_here, more = sorted(words)[:_MOST_WORDS], len(words) - _MOST_WORDS
    return ", ".join(shown_here) + (f" and {more} more" if more > 0 else "")


def played(judged: Judged) -> str:
    """The days on which the episodes of a bundle ended."""
    days = sorted({row.ended.date() for row in judged.rows if row.ended is not None})
    if not days:
        return "not told"
    return str(days[0]) if days[0] == days[-1] else f"{days[0]} to {days[-1]}"


def _json(board: Leaderboard, gathered: Gathered, edition: Edition, *, today: date, profile: Profile) -> bytes:
    told = {
        "edition": edition.digest,
        "written": today.isoformat(),
        "profile": profile,
        "scorer_version": scorer_version(),
        "suites": {suite.name: [to_json(table) for table in suite.tables] for suite in board.suites},
        "entries": [_entry(each, part) for each in board.entries for part in each.parts],
        "refused": [{"name": each.name, "reason": each.reason} for each in gathered.refused],
    }
    return orjson.dumps(told, option=orjson.OPT_INDENT_2) + b"\n"


def _entry(listed: Listed, part: Judged) -> dict[str, object]:
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
