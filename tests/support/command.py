"""Runs the command as a user would: a process of its own, with its own stdout, stderr and exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COMMAND = (sys.executable, "-m", "reconciler")


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """How a run of the command ended."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        """Stdout as the one JSON document it must be."""
        return json.loads(self.out)


def run(*arguments: str, cwd: Path, env: Mapping[str, str] | None = None, timeout: float = 120) -> Done:
    """Run ``kafka-quotas`` with these arguments, no terminal, and nothing on stdin; never with a traceback."""
    done = subprocess.run(
        [*COMMAND, *arguments],
        cwd=cwd,
        env=environment(env),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert "Traceback" not in done.stderr or "-v" in arguments, done.stderr
    return Done(code=done.returncode, out=done.stdout, err=done.stderr)


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment without what would change the command's output, and with this source tree importable."""
    kept = {k: v for k, v in os.environ.items() if k not in {"CI", "NO_COLOR", "FORCE_COLOR"}}
    return {**kept, **(extra or {})}
