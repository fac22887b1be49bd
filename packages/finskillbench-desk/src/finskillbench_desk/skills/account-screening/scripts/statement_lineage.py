"""Take from filings the figures of each issuer known on a day, with the filing that each comes from.

Payload: as_of; filings, a table with issuer, form, period_end, filed and figures; numerator and denominator, two of its
columns; weights (issuer to a number) for an average. An unknown key is refused.
Result: lineage (by issuer: form, period_end, filed, value of the ratio, and how many filings came before or are of a
later day), weighted_mean over the issuers with a filing and a weight, and without (the issuers with a weight that have
no filing).
"""

import math
from typing import Any

from finskillbench.engines.fields import number, refuse_unknown
from finskillbench.errors import InputError
from finskillbench.sandbox.script import cli, rounded
from finskillbench_desk.engines.books.papers import LARGEST, rows, stated


def main(payload: dict[str, Any]) -> dict[str, Any]:
    """The last filing of each issuer by the day, and the mean of a ratio."""
    refuse_unknown(payload, ("as_of", "filings", "numerator", "denominator", "weights"), "statement_lineage")
    as_of, over, under = (payload.get(key) for key in ("as_of", "numerator", "denominator"))
    if not (isinstance(as_of, str) and isinstance(over, str) and isinstance(under, str)):
        raise InputError("as_of, numerator and denominator must be words: a day, and two columns of filings")
    lineage: dict[str, dict[str, Any]] = {}
    filings = rows(payload, "filings", "issuer", "form", "period_end", "filed", over, under)
    for row in sorted(filings, key=lambda row: (row["filed"], row["period_end"])):
        known = lineage.setdefault(row["issuer"], {"earlier": -1, "later": 0})
        if row["filed"] > as_of:
            known["later"] += 1
            continue
        if row[over] is None or row[under] is None:
            continue
        bottom = number(row, under, "filings", largest=LARGEST)
        ratio = number(row, over, "filings", largest=LARGEST) / bottom if bottom else None
        lineage[row["issuer"]] = {
            "form": row["form"],
            "period_end": row["period_end"],
            "filed": row["filed"],
            "ratio": ratio,
            "earlier": known["earlier"] + 1,
            "later": known["later"],
        }
    weights = stated(payload, "weights")
    pairs = [
        (number(weights, issuer, "weights", largest=LARGEST), found["ratio"])
        for issuer in weights
        if (found := lineage.get(issuer)) is not None and found.get("ratio") is not None
    ]
    total = math.fsum(weight for weight, _ in pairs)
    mean = math.fsum(weight * ratio for weight, ratio in pairs) / total if total else None
    without = sorted(issuer for issuer in weights if lineage.get(issuer, {}).get("ratio") is None)
    return rounded({"lineage": lineage, "weighted_mean": mean, "without": without})


if __name__ == "__main__":
    cli(main)
