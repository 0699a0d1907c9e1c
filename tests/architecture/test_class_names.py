"""A class name means one thing: no two modules of the package define classes of the same name."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "reconciler"


CLASS = re.compile(r"^ *class (\w+)[(:]", re.MULTILINE)
"""The house format writes every class so."""


def test_no_class_name_is_used_twice() -> None:
    found: dict[str, list[str]] = defaultdict(list)
    for file in PACKAGE.rglob("*.py"):
        for name in CLASS.findall(file.read_text("utf-8")):
            found[name].append(str(file.relative_to(PACKAGE)))
    assert len(found) > 300
    assert {name: files for name, files in found.items() if len(files) > 1} == {}
