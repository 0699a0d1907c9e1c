"""A real git repository in a folder: what was merged, and a pull request checked out on top of it."""

from __future__ import annotations

import datetime
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path


class GitRepository:
    """Commits on ``main``; ``branch`` starts a pull request. Settings of the machine's own git do not reach it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str, at: datetime.datetime | None = None) -> str:
        dated = {} if at is None else {"GIT_AUTHOR_DATE": at.isoformat(), "GIT_COMMITTER_DATE": at.isoformat()}
        identity = ("-c", "user.name=Somebody", "-c", "user.email=somebody@localhost", "-c", "commit.gpgSign=false")
        done = subprocess.run(
            ["git", *identity, *arguments],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
            env={**os.environ, **dated},
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def write(self, path: str, text: str) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def commit(self, message: str = "a change", *, at: datetime.datetime | None = None) -> str:
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message, at=at)
        return self.git("rev-parse", "HEAD")

    def branch(self, name: str = "pull-request") -> None:
        self.git("checkout", "-q", "-b", name)

    def merge(self, files: Mapping[str, str]) -> None:
        """More files on main, and the pull request begun anew on top of it."""
        self.git("checkout", "-q", "main")
        for path, text in files.items():
            self.write(path, text)
        self.commit()
        self.git("checkout", "-q", "-B", "pull-request")

    def state(self) -> tuple[str, str, bytes]:
        """Everything that a reader must leave alone: the files' state, the references, and the index, byte by byte."""
        index = (self.folder / ".git" / "index").read_bytes()
        return self.git("status", "--porcelain", "--ignored"), self.git("for-each-ref"), index
