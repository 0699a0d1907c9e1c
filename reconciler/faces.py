"""The public names of a package, imported from their modules when they are first used (PEP 562), so that commands start fast."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Callable


def lazy_face(package: str) -> Callable[[str], object]:
    """The ``__getattr__`` of ``package``: its ``if TYPE_CHECKING:`` block names the module of each public name.

    It is the one list of them, so ``__all__`` is read from it, too. The block is read from the loader, which works in an archive.
    PEP 810 (``lazy import``) will replace it.
    """
    homes: dict[str, tuple[str, str]] = {}

    def attribute(name: str) -> object:
        if not homes and not name.startswith("__"):
            homes.update(_homes(package))
        if name == "__all__":
            return sorted(_homes(package))
        if name not in homes:
            msg = f"module {package!r} has no attribute {name!r}"
            raise AttributeError(msg, name=name, obj=sys.modules[package])
        module, own_name = homes[name]
        value: object = getattr(importlib.import_module(module), own_name)
        setattr(sys.modules[package], name, value)
        return value

    return attribute


def _homes(package: str) -> dict[str, tuple[str, str]]:
    """The module of each public name of ``package``, and its name there: ``import ROWS as ROW_SCHEMA`` gives it another one."""
    spec = sys.modules[package].__spec__
    source = spec.loader.get_source(package)  # type: ignore[union-attr]  # every loader of source files has it
    blocks = [node for node in ast.parse(source).body if isinstance(node, ast.If)]
    imports = [node for block in blocks for node in block.body if isinstance(node, ast.ImportFrom)]
    return {name.asname or name.name: (node.module, name.name) for node in imports if node.module for name in node.names}
