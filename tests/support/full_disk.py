"""Runs the command where files can grow only so far, as on a disk that is full.

The limit is the process's own (``RLIMIT_FSIZE``), so it needs no rights and no mount, in any container. A write beyond it fails
where one to a full disk does: the part that fits is written, the rest is not. It says "File too large" in place of "No space left
on device"; that is what ``/dev/full`` says, of the first byte.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from tests.support.command import COMMAND, PROGRESS, Done, environment

FULL = Path("/dev/full")

# Started by a program of its own: the limit would hold for the output of the tests, too.
_LIMITED = """
import os, resource, sys
room = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
os.execv(sys.argv[2], sys.argv[2:])
"""


def run_with_room(
    room: int, *arguments: str, cwd: Path, streams: Mapping[str, TextIO] | None = None, timeout: float = 600
) -> Done:
    """Run ``kafka-quotas`` where no file can have more than ``room`` bytes; ``streams``: a stdout or stderr that is no pipe."""
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **(streams or {})}
    command = [sys.executable, "-c", _LIMITED, str(room), *COMMAND, *arguments]
    bytecode = {"PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        command, cwd=cwd, env=environment(bytecode), stdin=subprocess.DEVNULL, text=True, timeout=timeout, check=False, **pipes
    )
    assert "Traceback" not in (done.stderr or ""), done.stderr
    return Done(code=done.returncode, out=done.stdout or "", err=PROGRESS.sub("", done.stderr or ""))
