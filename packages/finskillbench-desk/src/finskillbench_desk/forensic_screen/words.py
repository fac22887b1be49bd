"""What an agent reads of a case: the house memo, the data notes, the disclosed numbers and the request."""

from __future__ import annotations

from typing import Any

import numpy as np

from finskillbench.episode import Prompt
from finskillbench_desk.engines.posterior.model import Model
from finskillbench_desk.forensic_screen.dials import FLOOR, INDUSTRIES, KINDS, RATIOS
from finskillbench_desk.forensic_screen.generator.draws import USABLE
from finskillbench_desk.forensic_screen.layout import IDENTITIES, LAYOUT
from finskillbench_desk.forensic_screen.reading import ACQUISITION, LEASE, SLIP, YEAR_END, Rules


def disclosed(model: Model) -> dict[str, Any]:
    """The disclosed numbers by ratio and kind, as an agent and the second derivation read them."""
    ratios = [
        {
            "name": ratio.name,
            "numerator": ratio.numerator,
            "denominator": ratio.denominator,
            "persistence": float(model.persistence[place]),
            "innovation_sd": float(model.deviation[place]),
            "growth_effect": float(model.growth[place]),
            "lease_effect": float(model.lease[place]),
        }
        for place, ratio in enumerate(RATIOS)
    ]
    kinds = [
        {
            "name": kind.name,
            "what": kind.words,
            "share": float(model.shares[place]),
            "profile": np.trim_zeros(model.profiles[place], "b").tolist(),
        }
        for place, kind in enumerate(KINDS)
    ]
    return {
        "ratios": ratios,
        "correlation_of_innovations": model.correlation.tolist(),
        "kinds": kinds,
        "volatility_degrees_of_freedom": model.freedom,
        "own_level_sds": float(model.own[0] / model.deviation[0]),
        "acquired_level_sds": float(model.acquired[0] / model.deviation[0]),
        "case_spread_sds": model.spread,
        "prior_mean_sds": model.prior,
        "possible_starts": model.starts,
    }


def documents(model: Model, rules: Rules) -> dict[str, str]:
    """The memo on how accounts behave, and the notes on the data."""
    return {"memo": _memo(model, rules), "data_notes": _notes()}


def _memo(model: Model, rules: Rules) -> str:
    return f"""House memo: screening for managed accounts

1. Base rate. Of companies like those in the list, {100 * model.base_rate:g} per cent managed their accounts at \
some time in the last {model.starts} quarters: we reckon with a base rate of {100 * model.base_rate:g} per cent. \
It is the same in every industry. Management began in one of the last {model.starts} quarters, each as likely as \
the other, and a company is managed in one way only; `model.kinds` gives each kind's share among managed \
companies. The archive's mix of kinds is a matter of what courts had time for and says nothing of today's mix.

2. How ratios move. Take natural logarithms. A log ratio is the sum of its industry's path (table \
`industry_paths`), the industry's season for the fiscal quarter (table `seasons`), its growth effect times the \
quarter's growth, that is the change of log net_revenue over the quarter (0 in the first quarter), announced \
changes (4), the company's own level, and a deviation. The deviation is autoregressive with the ratio's \
persistence. Innovations are normal with the ratio's innovation_sd and `correlation_of_innovations`, times the \
company's volatility: its variance factor v is inverse gamma with shape and scale both half of \
volatility_degrees_of_freedom, so that companies differ a good deal. The first quarter's deviation has the \
stationary distribution. The own level is normal about 0 with a standard deviation of own_level_sds \
innovation_sds times the company's volatility, independently by ratio.

3. What management does. A managed company's innovations are shifted from the first managed quarter on: by its \
shift, one number per ratio, times the kind's profile, whose first entry belongs to that first quarter; past its \
end there is nothing, though by its persistence the deviation stays moved for a while. Shifts of cases of one \
kind are normal about the kind's mean with a standard deviation of case_spread_sds innovation_sds per ratio, \
independently by ratio. What the mean is, the archive must tell; before it, each ratio's is normal about 0 with \
prior_mean_sds innovation_sds. For a company of today the shift is drawn, independently of other companies, from \
what the usable archive predicts: normal about the mean's posterior expectation, which is not scaled by the company's \
volatility, with a covariance of (the mean's posterior covariance plus that of cases) times the company's variance \
factor v: both covariances are multiplied by v.

4. Announced changes (table `events`). A company for which "{LEASE}" stands has every log ratio moved by its \
lease_effect from that quarter on. After "{ACQUISITION}" of a target of at least {rules.material:g} per cent of \
the buyer's total assets (column value, in per cent), the company's own levels change from that quarter on by a \
normal amount with acquired_level_sds innovation_sds times its volatility, independently by ratio; that is \
blending, not management. Smaller targets change nothing. "{YEAR_END}" means that from that quarter on the \
fiscal year ends in the month in column value. All other events, proposals and deferrals among them, change no \
ratio and say nothing about management.

5. The archive. Table `archive` has 300 resolved cases, in quarters counted from the first managed one (0). Each \
ratio's innovation is in hundredths of its innovation_sd, with everything of section 2 taken out, the own level \
too, but for the correlation of innovations, which remains in them; \
the volatility of archived companies is 1. A case may be used if {USABLE[0]} or {USABLE[1]} found what was \
done. What a settlement or the press calls a case is what was easiest to allege, often another kind than what \
was done: we do not use them. Nor do we use financial companies, whose ratios mean other things."""


def _notes() -> str:
    return f"""Data notes

- Table `statements` has a row for each company, quarter and version, with the lines of `layout`, in the unit of \
column `unit`; the unit of a company never changes. `layout.identities` says how lines add up.
- A restated quarter stands there twice. The later version is right. Restatements in this collection cured \
clerical errors: that a company restated says nothing about management, and its first figures are not to be \
used.
- Now and then a typist enters a whole balance sheet in single dollars where the rest of the row is in \
thousands: all its lines are then {SLIP} times too high, and `cash` is no longer `closing_cash`. Dividing them \
by {SLIP} cures it exactly.
- Table `companies` has each company's industry and the month in which its fiscal year ends at the beginning of \
the data. Quarters such as 2019Q2 are calendar quarters. Fiscal quarter 1 is the first of the fiscal year: with \
a year end in month 12 it is Q1, with one in month 3 it is Q2.
- Tables `industry_paths` and `seasons` are in ten-thousandths of a natural logarithm. The path already has the \
usual level of the ratio in it, and not the season.
- Rounding to whole thousands moves no log ratio by more than a thousandth; nothing hangs on it."""


def layout() -> dict[str, Any]:
    """Names of lines by statement, and identities: total to its parts with their signs."""
    return {**LAYOUT, "identities": IDENTITIES}


def prompt(quarters: list[str]) -> Prompt:
    """The request; the harness adds the compacted input, the answer's schema and the budget."""
    names = ", ".join(kind.name for kind in KINDS)
    return Prompt(
        f"Screen 200 companies of {len(INDUSTRIES)} industries for managed accounts in the last quarters up to "
        f"{quarters[-1]}. You have forty quarters of statements for each (table statements), the archive of resolved "
        "cases, events, industry tables, a house memo (documents.memo) and data notes (documents.data_notes): read both"
        " first. State for each company how probable it is that it managed its accounts, and the kind that is likeliest"
        " if it did.",
        'Submit a JSON object {"assessments": [{"company": ..., "probability": ..., "kind": ...}, ...]} with one entry '
        f"per company. probability is between 0 and 1, three decimals are enough; kind is one of {names}. Seven tenths "
        "of the score are the expected logarithmic score of the probabilities given what you could see, between the "
        "base rate for all (0) and the best attainable (1); probabilities are clipped to "
        f"lie at least {FLOOR} within 0 and 1, and a company left out counts as the base rate. Three tenths are the "
        "expected number of managed companies whose kind you name, between naming for all companies the one kind "
        "that earns most that way (0) and the best attainable (1); a company left out has no kind named and "
        "earns nothing of it.",
    )
