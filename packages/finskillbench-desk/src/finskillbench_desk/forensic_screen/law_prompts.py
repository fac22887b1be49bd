"""Texts of a case whose law is not disclosed: dictionary of the data, and managed accounts described in words."""

from __future__ import annotations

from finskillbench.episode import Prompt
from finskillbench_desk.forensic_screen.difficulty import COMPANIES, INDUSTRIES, KINDS, QUARTERS, RATIOS, WINDOW
from finskillbench_desk.forensic_screen.law_paths import AFTER, BEFORE, CASES, CLEAR, CLEARED
from finskillbench_desk.forensic_screen.reading import ACQUISITION, LEASE, YEAR_END


def prompt(last: str, described: bool) -> Prompt:
    """Return the request and the objective; `last` is the last quarter."""
    names = ", ".join(kind.name for kind in KINDS)
    memo = " A memo (documents.memo) tells what is known of managed accounts." if described else ""
    return Prompt(
        f"Screen {COMPANIES} companies of {len(INDUSTRIES)} industries for managed accounts in the last {WINDOW} "
        f"quarters up to {last}. State for each company how probable it is that it managed its accounts at some time "
        f"in these quarters, and the kind that is likeliest if it did. You have {QUARTERS} quarters of statements for "
        "each (table statements), events, industry tables, an archive of resolved cases and counts of examinations. "
        f"The data notes (documents.data_notes) state what they are: read them first.{memo}",
        'Submit a JSON object {"assessments": [{"company": ..., "probability": ..., "kind": ...}, ...]} with one entry '
        f"per company. probability is between 0 and 1; kind is one of {names}. Seven tenths of the score are the "
        "expected logarithmic score of the probabilities, given all that the data say: 0 is the best number that is "
        "the same for all companies, 1 is what an analyst earns who knows the law by which companies of this list "
        "manage their accounts (not which of them do) and has seen the data. A probability nearer than a thousandth to "
        "0 or 1 counts as one that is a thousandth away, and a company left out as that best constant. Three tenths "
        "are the expected number of managed companies whose kind you name, between naming one kind for all companies "
        "(0) and the best attainable (1). What happens later does not count.",
    )


def documents(material: float, described: bool) -> dict[str, str]:
    """Return the data notes, and the memo if the law is described; `material` is the least size of an acquisition."""
    return {"data_notes": _dictionary(material)} | ({"memo": _description()} if described else {})


def _dictionary(material: float) -> str:
    ratios = "; ".join(f"{ratio.name}: {ratio.numerator} / {ratio.denominator}" for ratio in RATIOS)
    kinds = "; ".join(f"{kind.name}: {kind.description}" for kind in KINDS)
    return f"""Data

- `statements`: a row for each company, quarter and version, {QUARTERS} quarters each, with the lines of `layout`, in \
the unit of column `unit`. The later of two versions of a quarter replaces the earlier one; restatements corrected \
clerical errors and are no evidence of management. `layout.identities` states how lines add up.
- `companies`: company, industry, and the month in which its fiscal year ends at the beginning of the data. Quarters \
such as 2019Q2 are calendar quarters; fiscal quarter 4 is the one that ends in that month.
- `events`: company, quarter, event, value. The value of "{ACQUISITION}" is the target's size in per cent of the \
buyer's total assets: after a target of at least {material:g} per cent of the buyer's total assets the usual level of \
each ratio may be another one; smaller targets change nothing. The value of "{YEAR_END}" is the month in which the \
fiscal year ends from that quarter on. "{LEASE}" holds from its quarter on; it moves one or \
more ratios, each by the same amount at every company that adopts it. Other events have no effect on ratios and are \
no evidence of management.
- `industry_paths` and `seasons`: by industry and quarter, and by industry and fiscal quarter, the part of each log \
ratio that is common to the companies of the industry, in ten-thousandths of a natural logarithm.
- Ratios: {ratios}.
- `examinations`: by industry, companies that were examined in the past, each for a time as long as yours, and in how \
many of them managed accounts were found.
- `archive`: {CASES} resolved cases and {CLEARED} companies that were examined and cleared (kind "{CLEAR}"). For each, \
{BEFORE} quarters before the first managed quarter as reported and {AFTER} from it on (column quarter, 0 is that \
quarter; for cleared companies an arbitrary one), with kind as reported, basis of the finding, industry, \
fiscal_quarter, growth (change of log net_revenue over the quarter less the industry's median, in ten-thousandths), \
size (logarithm of mean revenue, standardised over the companies of its list) and the ten log ratios less industry \
path and season, in ten-thousandths of a natural logarithm. In the archive, ratios are also \
corrected for the growth that the whole industry shares; in the statements they are not.
- Kinds: {kinds}. A company is managed in one way only."""


def _description() -> str:
    return """What is known of managed accounts

Ratios of a company stay near a level of their own and return to it slowly after a surprise; some companies are much \
more restless than others, and in some markets single ratios are restless on their own, or a whole company has one bad \
quarter that means nothing. Ratios move with growth, and some of their surprises are shared.

Management of accounts leaves different traces in different markets. They differ in their course over time, in their \
direction, in how many ratios they take in, and in the companies and quarters in which they show at all; what is usual \
in one market may be unknown in another. Within one list all companies that manage their accounts leave the same sort \
of trace; kinds differ in the ratios that they touch.

Archives are made by people. A case may be booked under another kind than what was done, more often on some bases than \
on others; the reported first quarter may be later than the true one; among cleared companies there may be some that \
were not found out, and then findings of examinations are too few as well. Industries may differ much in how often \
accounts are managed. The mix of kinds in an archive need not be that of today. Nor need each kind's trace be as \
strong today, since managers learn from cases that were found.

Check, before you trust a trace: that statements are consistent and comparable over time; how the same \
statistic behaves where nothing is managed; which form the trace has in the archive, aligned on the reported quarter, \
before you choose one; whether cases of one kind agree with each other, basis by basis; how many ways of looking you \
have tried; and whether your probabilities, on average, are as high as the rate at which accounts are managed."""
