"""Which commit manifests come from, when they are in git and git is installed; both are optional."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from reconciler.model.plan import Source


def source_of(path: Path) -> Source:
    """The commit of the repository around ``path``, and whether anything below ``path`` differs from it."""
    git = shutil.which("git")
    folder = path if path.is_dir() else path.parent
    if git is None or not folder.is_dir():
        return Source()
    commit = _git(git, folder, "rev-parse", "--verify", "-q", "HEAD")
    if commit is None:
        return Source()
    status = _git(git, folder, "status", "--porcelain", "--", ".")
    return Source(commit=commit.strip(), dirty=None if status is None else bool(status.strip()))


def _git(git: str, folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run([git, "-C", str(folder), *arguments], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
