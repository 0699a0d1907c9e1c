"""The processes of this machine, by words of their command lines."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def commands_with(text: str) -> dict[int, str]:
    """The command line of each other process that has the text, by process id."""
    commands = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            commands[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
    return {pid: command for pid, command in commands.items() if text in command and pid != os.getpid()}
