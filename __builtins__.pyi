# What the type checker takes for the builtin. Floats have no sum of their own: its last digits depend on the version of
# Python, and labels and scores would too. They are added by `math.fsum` or `finskillbench.sums.exact_sum`.
from collections.abc import Iterable

def sum(values: Iterable[int], /) -> int: ...  # noqa: A001
