"""Coded rules in a committee case: what they are (the engine), and how an agent's are judged (`judging`, `probes`).

The language, the book and the evaluator are pure and live in `finskillbench_desk.engines.guidelines`, where scripts of
the skill packages reach them:

- `engines.guidelines.book`: `Instrument`, `Position(instrument, value, notional=0, bought=False)`, `Trading` (the
  quarter's purchases and sales, used and pending) and `Book(positions, others, trading)`. Net asset value is the sum of
  the positions' values, so accrued cash and payables are positions of kind "cash". `others` are instruments that are
  not held and still matter: the benchmark's, and what funds hold.
- `engines.guidelines.language`: `Rule`; `rule_json(rule)` writes it as JSON.
- `engines.guidelines.parsing`: `parse_rules(json) -> (rules, problems)`, `parse_rule`, and `SCHEMA`, the words that the
  prompt shows. Neither raises on any JSON.
- `engines.guidelines.evaluation`: `evaluate(rules, book) -> [Outcome(rule, measured, limit, where, state)]` with the
  states "ok", "passive" (beyond a limit that is tested at purchase, nothing of it being bought: no breach), "report"
  (a reporting threshold, no breach) and "breach"; `exceeded(rule, books)` for many books at once.

Judging: `withheld(guidelines, vocabulary, seed)` is stored with the truth, and `judge(given, withheld)` says what coded
rules earn, clause by clause, and which traps of reading were fallen for; it never raises on any JSON.

Weights and limits are in percent. A clause is in breach where any of its rules is.
"""
