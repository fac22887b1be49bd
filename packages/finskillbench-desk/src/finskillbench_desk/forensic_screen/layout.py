"""The 82 lines of the statements, by statement, and how they add up."""

from __future__ import annotations

IDENTITIES: dict[str, dict[str, int]] = {
    "net_revenue": {"gross_sales": 1, "returns_and_allowances": -1},
    "cost_of_sales": {"materials": 1, "labour": 1, "production_overhead": 1},
    "gross_profit": {"net_revenue": 1, "cost_of_sales": -1},
    "operating_income": {
        "gross_profit": 1,
        "selling": -1,
        "marketing": -1,
        "general_and_administrative": -1,
        "research_and_development": -1,
        "depreciation": -1,
        "amortisation": -1,
        "lease_cost": -1,
        "restructuring": -1,
        "impairment": -1,
        "other_operating_income": 1,
    },
    "pretax_income": {"operating_income": 1, "interest_income": 1, "interest_expense": -1},
    "net_income": {"pretax_income": 1, "income_tax": -1},
    "receivables_net": {"receivables_gross": 1, "allowance_for_doubtful_accounts": -1},
    "inventory": {"raw_materials": 1, "work_in_progress": 1, "finished_goods": 1},
    "total_current_assets": {
        "cash": 1,
        "short_term_investments": 1,
        "receivables_net": 1,
        "inventory": 1,
        "prepaid_expenses": 1,
        "contract_assets": 1,
        "other_current_assets": 1,
    },
    "ppe_net": {"ppe_gross": 1, "accumulated_depreciation": -1},
    "total_assets": {
        "total_current_assets": 1,
        "ppe_net": 1,
        "right_of_use_assets": 1,
        "capitalised_development": 1,
        "goodwill": 1,
        "deferred_tax_assets": 1,
        "other_assets": 1,
    },
    "total_current_liabilities": {
        "payables": 1,
        "accrued_wages": 1,
        "deferred_revenue": 1,
        "provisions": 1,
        "tax_payable": 1,
        "short_term_debt": 1,
        "other_current_liabilities": 1,
    },
    "total_liabilities": {
        "total_current_liabilities": 1,
        "long_term_debt": 1,
        "lease_liabilities": 1,
        "pension_liabilities": 1,
        "deferred_tax_liabilities": 1,
    },
    "equity": {"total_assets": 1, "total_liabilities": -1},
    "capital_and_reserves": {"equity": 1, "retained_earnings": -1},
    "operating_cash_flow": {
        "net_income": 1,
        "depreciation": 1,
        "amortisation": 1,
        "impairment": 1,
        "change_in_receivables": -1,
        "change_in_inventory": -1,
        "change_in_other_assets": -1,
        "change_in_payables": 1,
        "change_in_deferred_revenue": 1,
        "change_in_provisions": 1,
        "change_in_other_liabilities": 1,
    },
    "investing_cash_flow": {
        "capital_expenditure": -1,
        "development_capitalised": -1,
        "acquisitions": -1,
        "purchases_of_investments": -1,
    },
    "financing_cash_flow": {"debt_raised": 1, "shares_issued": 1, "dividends": -1},
    "change_in_cash": {"operating_cash_flow": 1, "investing_cash_flow": 1, "financing_cash_flow": 1},
    "closing_cash": {"opening_cash": 1, "change_in_cash": 1},
    "cash": {"closing_cash": 1},
}
"""Total to its parts with their signs; the last one ties the balance sheet to the cash flow statement."""


def _names(text: str) -> list[str]:
    return text.split()


INCOME = _names(
    "gross_sales returns_and_allowances net_revenue materials labour production_overhead cost_of_sales gross_profit "
    "selling marketing general_and_administrative research_and_development depreciation amortisation lease_cost "
    "restructuring impairment other_operating_income operating_income interest_income interest_expense pretax_income "
    "income_tax net_income"
)
BALANCE = _names(
    "cash short_term_investments receivables_gross allowance_for_doubtful_accounts receivables_net raw_materials "
    "work_in_progress finished_goods inventory prepaid_expenses contract_assets other_current_assets "
    "total_current_assets ppe_gross accumulated_depreciation ppe_net right_of_use_assets capitalised_development "
    "goodwill deferred_tax_assets other_assets total_assets payables accrued_wages deferred_revenue provisions "
    "tax_payable short_term_debt other_current_liabilities total_current_liabilities long_term_debt lease_liabilities "
    "pension_liabilities deferred_tax_liabilities total_liabilities retained_earnings capital_and_reserves equity"
)
CASH_FLOW = _names(
    "change_in_receivables change_in_inventory change_in_other_assets change_in_payables change_in_deferred_revenue "
    "change_in_provisions change_in_other_liabilities operating_cash_flow capital_expenditure development_capitalised "
    "acquisitions purchases_of_investments investing_cash_flow debt_raised shares_issued dividends "
    "financing_cash_flow change_in_cash opening_cash closing_cash"
)
LAYOUT = {"income_statement": INCOME, "balance_sheet": BALANCE, "cash_flow_statement": CASH_FLOW}
