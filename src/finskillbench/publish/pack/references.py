"""Supervisory guidance that a pack refers to, and where each expectation is met.

Topics of SR 26-2 are those that the summary of OCC Bulletin 2026-13 lists; principles of SS1/23 are those of its title
page. Neither is cited by paragraph.
"""

from __future__ import annotations

from datetime import date

from finskillbench.reports.tables.base import Column, Table

REVIEWED = date(2026, 11, 26)
"""Date on which these references were last held against their sources; bring it forward with every review."""
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
        Column("expectation", "Expectation"),
        Column("us", "Topic of SR 26-2, OCC 2026-13"),
        Column("uk", "SS1/23 principle"),
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
