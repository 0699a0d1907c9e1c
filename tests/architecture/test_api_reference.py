"""Nothing public is without words on the pages of the Python interface."""

import importlib.util
import sys
from pathlib import Path

import pytest

from reconciler import client

ROOT = Path(__file__).parents[2]
TOOL = ROOT / "tools" / "site" / "python_page.py"


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("python_page", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def test_everything_that_is_exported_is_in_it_with_words(tool):
    text = tool.python_page() + tool.values_page().replace("\n## ", "\n### ")
    for name in dir(client):
        _, _, after = text.partition(f"\n### {name}\n\n")
        described = after.partition("\n### ")[0].replace("```python", "", 1)
        assert any(line and not line.startswith(("-", "`", "#", ")", " ")) for line in described.splitlines()), name


def test_every_method_of_our_own_classes_has_words():
    ours = [getattr(client, name) for name in dir(client) if getattr(client, name).__class__ is type]
    silent = [
        f"{one.__name__}.{name}"
        for one in ours
        if one.__module__.startswith("reconciler.client")
        for name, member in vars(one).items()
        if not name.startswith("_") and callable(member) and not member.__doc__
    ]
    assert silent == []
