"""The broker plugin of groups for the sandbox: compiled from its sources, which the package carries, and kept in the cache."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from reconciler.files import bundled_folder
from reconciler.ports import Progress
from reconciler.resolution import GROUP_CALLBACK
from reconciler.sandbox.java import Runtime
from reconciler.sandbox.plugin_jar import plugin_jar

_SOURCES: Final = "callback/src/main/java"
_PLUGIN: Final = f"{GROUP_CALLBACK.replace('.', '/')}.java"
GROUP_SETTINGS: Final[Mapping[str, str]] = MappingProxyType({"client.quota.callback.class": GROUP_CALLBACK})
"""The broker settings with which a broker shares limits by group."""


def group_plugin_jar(runtime: Runtime, *, progress: Progress | None = None, cache: Path | None = None) -> Path:
    """The jar, compiled unless these sources were before.

    Raises ``MissingDependencyError`` without a compiler, ``SandboxError`` when it fails.
    """
    sources = bundled_folder(_SOURCES, with_file=_PLUGIN)
    return plugin_jar("callback", sources, runtime, needed_by="--groups", progress=progress, cache=cache)
