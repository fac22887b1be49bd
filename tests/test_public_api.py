"""The names that the root of the package exports."""

import finskillbench


def test_every_public_name_is_there_and_documented() -> None:
    for name in finskillbench.__all__:
        assert getattr(finskillbench, name).__doc__, name
        assert f"`{name}" in (finskillbench.__doc__ or ""), name
