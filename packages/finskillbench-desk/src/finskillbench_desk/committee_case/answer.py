"""The input and the answer of a committee case, as the agent is shown them."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from pydantic import Field

from finskillbench.domains.base import Answer
from finskillbench.domains.tables import TableReference


class CommitteeInput(TypedDict):
    """What an agent is given."""

    as_of: str
    documents: dict[str, str]
    custodian: TableReference
    trades: TableReference
    corporate_actions: TableReference
    prices: TableReference
    second_source: TableReference
    reference: TableReference
    benchmark: TableReference
    constituents: TableReference
    filings: TableReference
    cash_balances: dict[str, float]
    fx: dict[str, float]
    quarter_to_date: dict[str, float]
    risk_model: TableReference
    conventions: dict[str, str]


class HeldPosition(Answer):
    """One security of the true book."""

    security: str = Field(description="As the reference file names it, once.")
    quantity: float = Field(description="Units on trade date; negative if sold short.")
    value: float = Field(description="Dollars; of a future its notional, negative if sold.")


class Replaced(Answer):
    """One field of the reference file that does not count."""

    issuer: str = Field(description="The issuer whose field it is.")
    field: Literal["sector", "shares_outstanding"] = Field(description="Which field.")
    value: str | float = Field(description="What counts instead: a sector, or a number of shares.")


class TrueBook(Answer):
    """The book on trade date."""

    positions: list[HeldPosition] = Field(description="Every security held, futures too, cash not.")
    cash: float = Field(description="Dollars, with receivables and payables.")
    pending_purchases: float = Field(description="Dollars of standing purchases that settle later; >= 0.")
    pending_sales: float = Field(description="Dollars of standing sales that settle later; >= 0.")
    replaced: list[Replaced] = Field(description="Empty where the reference file is right throughout.")


class CureTrade(Answer):
    """One trade of the cure."""

    security: str = Field(description="As the reference file names it, once.")
    value: float = Field(description="Dollars bought, negative if sold; of a future its notional.")


class Figures(Answer):
    """The book after the cure, by the definitions in conventions."""

    tracking_error: float = Field(description="Percent a year.")
    beta: float = Field(description="Ratio.")
    largest_issuer: float = Field(description="Percent of net asset value.")
    cash: float = Field(description="Percent of net asset value.")
    turnover: float = Field(description="Percent of net asset value, of the quarter.")
    leverage: float = Field(description="Ratio.")


class CommitteeCase(Answer):
    """Answer: the case in five parts."""

    rules: list[dict[str, Any]] = Field(description="Coded rules in the language of documents.rule_language.")
    book: TrueBook = Field(description="The true book.")
    breaches: list[str] = Field(description='Numbers of clauses in breach, such as "4.2".')
    excluded: list[str] = Field(description="Securities of which nothing may be held or bought.")
    trades: list[CureTrade] = Field(description="The cheapest cure.")
    figures: Figures = Field(description="Of the book after the trades.")
