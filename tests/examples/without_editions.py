"""A plugin for pytest that leaves out every test which needs an edition: `-p tests.examples.without_editions`."""

from __future__ import annotations

import pytest

EDITIONS = {"edition", "synthetic_edition", "real_edition"}


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = [item for item in items if EDITIONS & set(getattr(item, "fixturenames", ()))]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]
