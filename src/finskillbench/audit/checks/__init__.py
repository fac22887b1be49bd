"""The checks of an audit, one subject each; `finskillbench.audit.catalog` lists them."""
