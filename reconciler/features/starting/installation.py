"""Where the running kafka-quotas was installed from, as pip, pipx and uv record it (``direct_url.json``, PEP 610)."""

from __future__ import annotations

import json
import re
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from typing import Any, Final

DISTRIBUTION: Final = "kafka-quota-reconciler"
_ON_GITHUB: Final = re.compile(r"(?:https://|ssh://git@)github\.com/(?P<repository>[\w-]{1,39}/[\w.-]{1,100}?)(?:\.git)?/?")
_COMMIT: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """``folder``: the checkout, if it was one. ``repository`` and ``commit``: on GitHub, if pip installed a commit from there."""

    folder: str | None = None
    repository: str | None = None
    commit: str | None = None


def installed_from(distribution: metadata.Distribution | None = None) -> Installation:
    """``distribution``: kafka-quotas' own when none is given. A wheel or a package index leaves nothing that is known."""
    try:
        text = (distribution or metadata.distribution(DISTRIBUTION)).read_text("direct_url.json")
        recorded = json.loads(text) if text else {}
    except (metadata.PackageNotFoundError, OSError, ValueError):
        return Installation()
    return _installation(recorded) if isinstance(recorded, Mapping) else Installation()


def _installation(recorded: Mapping[str, Any]) -> Installation:
    url, of_git = str(recorded.get("url", "")), recorded.get("vcs_info")
    if "dir_info" in recorded:
        return Installation(folder=urllib.parse.unquote(url.removeprefix("file://")))
    match = _ON_GITHUB.fullmatch(url)
    commit = str(of_git.get("commit_id", "")) if isinstance(of_git, Mapping) else ""
    if match is None or _COMMIT.fullmatch(commit) is None:
        return Installation()
    return Installation(repository=match["repository"], commit=commit)
