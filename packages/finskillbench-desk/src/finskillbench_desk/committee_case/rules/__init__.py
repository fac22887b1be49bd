"""Judge coded rules of a committee case by their behaviour on hidden probe portfolios (`judging`, `probes`).

The rule language, book and evaluator are in `finskillbench_desk.engines.guidelines`, where skill scripts can use them:

- `book`: `Instrument`, `Position`, `Trading` (purchases and sales of the quarter, used and pending) and
  `Book(positions, others, trading)`. Net asset value is the sum of position values; accrued cash and payables are
  positions of kind "cash". `others` are instruments not held: those of the benchmark and the holdings of funds.
- `language`: `Rule`; `rule_json(rule)` writes it as JSON.
- `parsing`: `parse_rules(json) -> (rules, problems)`, `parse_rule`, and `SCHEMA` for the prompt. No JSON makes it
  raise.
- `evaluation`: `evaluate(rules, book) -> [Outcome]` with states "ok", "passive" (beyond a limit tested at purchase,
  without a purchase: no breach), "report" (a reporting threshold: no breach) and "breach"; `exceeded(rule, books)`.

`coding_truth` is stored with the truth; `judge_rules` scores submitted rules by clause. Weights and limits are in
percent. A clause is in breach if any of its rules is.
"""
