"""What the log readers of CI systems take for commands, as their own parsers do: proof that a log has none of a stranger's.

Sources: ``ActionCommand.cs`` (both forms) of actions/runner 2.3xx, ``Command.cs`` of microsoft/azure-pipelines-agent, GitLab's
``Gitlab::Regex.build_trace_section_regex``, TeamCity's page on service messages.
"""

from __future__ import annotations

import re
from typing import Final

_LINE: Final = re.compile(r"\r\n|\r|\n")
_SKIPPED: Final = re.compile("[\u00ad\u034f\u200b-\u200f\u2060-\u2064\ufe00-\ufe0f\ufeff]")
"""Some of what .NET skips in a search that minds the culture, as both C# parsers do."""
_AZURE: Final = re.compile(r"##vso\[[^\].]+\.[^\].]+[^\]]*\]")
_TEAMCITY: Final = re.compile(r"##teamcity\[")
_GITLAB: Final = re.compile(r"section_(?:start|end):\d+:[a-zA-Z0-9_.-]+")


def commands_in(log: str) -> list[str]:
    """Every line that one of the readers would obey, whichever words the command has (a stopped reader listens for any)."""
    return [line for line in _LINE.split(log) if is_command(line)]


def is_command(line: str) -> bool:
    """Whether one of the readers takes the line for a command."""
    seen = _SKIPPED.sub("", line)
    start = seen.lstrip()
    return (
        (start.startswith("::") and "::" in start[2:])
        or ("##[" in seen and "]" in seen.partition("##[")[2])
        or any(reader.search(seen) for reader in (_AZURE, _TEAMCITY, _GITLAB))
    )
