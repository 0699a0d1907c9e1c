"""The tests of this folder take as long as they are told to; they run only when the command line's ``-m`` speaks of ``soak``."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """``make soak`` asks for them."""
    if "soak" in config.option.markexpr:
        return
    ours = [item for item in items if item.path.is_relative_to(HERE)]
    if ours:
        config.hook.pytest_deselected(items=ours)
        items[:] = [item for item in items if item not in ours]
