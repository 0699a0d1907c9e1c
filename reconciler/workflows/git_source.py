"""Which commit manifests come from, when they are in git and git is installed; both are optional."""

from __future__ import annotations

from pathlib import Path

from reconciler.errors import GitError
from reconciler.model import Source
from reconciler.workflows.git_repository import nearest_repository


def source_of(path: Path) -> Source:
    """The commit of the repository around ``path``, and whether anything at or below its folder differs from it."""
    folder = path if path.is_dir() else path.parent
    if not folder.is_dir():
        return Source()
    try:
        git = nearest_repository(str(folder))
        commit = git.commit("HEAD")
    except GitError:
        return Source()
    try:
        return Source(commit=commit, dirty=git.dirty(str(folder)))
    except GitError:
        return Source(commit=commit)
