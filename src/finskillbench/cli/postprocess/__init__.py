"""Commands on finished runs: show, failures, report, compare, rescore and merge."""
