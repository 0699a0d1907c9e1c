"""The tests of this folder need more than Python, Java, make and git; they run only when ``-m`` speaks of ``interop``."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """``make test-all`` asks for them."""
    if "interop" in config.option.markexpr:
        return
    ours = [item for item in items if item.path.is_relative_to(HERE)]
    if ours:
        config.hook.pytest_deselected(items=ours)
        items[:] = [item for item in items if item not in ours]
