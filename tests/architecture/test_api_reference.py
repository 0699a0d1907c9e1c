"""Nothing public is without words on the pages of the Python interface."""

from reconciler import client
from tests.support.tools import load_script


def test_everything_that_is_exported_is_in_it_with_words():
    tool = load_script("tools/site/python_page.py")
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
