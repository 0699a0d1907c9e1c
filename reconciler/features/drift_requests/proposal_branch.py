"""The branch of a proposal on a remote: made from objects alone, so that work tree and index stay as they are."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from reconciler.errors import FileAccessError, GitError
from reconciler.model import FileRevision, escaped
from reconciler.workflows import Git

_REMOTE: Final = "origin"
_NAME: Final = "kafka-quotas"
_EMAIL: Final = "kafka-quotas@localhost"
_IDENTITY: Final = {
    f"GIT_{role}_{part}": value for role in ("AUTHOR", "COMMITTER") for part, value in (("NAME", _NAME), ("EMAIL", _EMAIL))
}
_TRAILER: Final = "Kafka-Quotas-Drift: "
_SUFFIXES: Final = (".yaml", ".yml")
_MODES: Final = {True: "100755", False: "100644"}


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchState:
    """What the branch has on the remote. ``commit``: ``None`` without the branch."""

    commit: str | None = None
    content: str | None = None
    """What its one commit of this tool proposes; ``None`` without one that is not merged."""
    stranger: str | None = None
    """Who else pushed to it."""


class ProposalBranch:
    """One branch, from the commit ``base``. Methods raise ``GitError``."""

    def __init__(self, git: Git, name: str, *, base: str) -> None:
        self.name = name
        self._git = git
        self._base = base
        self._ref = f"refs/heads/{name}"

    def newest_of(self, branch: str) -> str | None:
        """The commit of any branch of the remote."""
        listed = self._git.output("ls-remote", _REMOTE, f"refs/heads/{branch}").decode()
        return listed.partition("\t")[0] or None

    def state(self) -> BranchState:
        """Read the branch. What is merged already counts as nothing."""
        commit = self.newest_of(self.name)
        if commit is None:
            return BranchState()
        self._git.output("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", _REMOTE, self._ref)
        listed = self._git.output("log", "--format=%an%x00%ae%x00%cn%x00%ce%x00%B%x00%x01", f"{self._base}..{commit}").decode(
            "utf-8", errors="replace"
        )
        commits = [each.strip("\n").split("\0") for each in listed.split("\x01") if each.strip("\n")]
        for author, email, committer, committer_email, _ in (each[:5] for each in commits):
            if _EMAIL not in (email, committer_email) or email != committer_email:
                return BranchState(commit=commit, stranger=escaped(author if email != _EMAIL else committer))
        if not commits:
            return BranchState(commit=commit)
        if len(commits) > 1:
            return BranchState(commit=commit, stranger="another program")
        lines = commits[0][4].splitlines()
        content = next((line.removeprefix(_TRAILER) for line in lines if line.startswith(_TRAILER)), None)
        return BranchState(commit=commit, content=content)

    def push(self, revisions: Sequence[FileRevision], *, message: str, content: str, old: str | None) -> str:
        """Make the one commit and push it, unless the branch is no longer at ``old``. Returns the commit.

        Raises ``FileAccessError`` for a file that differs from the commit ``base``.
        """
        tree = self._tree(revisions)
        text = f"{message}\n\n{_TRAILER}{content}\n"
        commit = self._git.output("commit-tree", tree, "-p", self._base, "-F", "-", given=text.encode(), variables=_IDENTITY)
        name = commit.decode().strip()
        self._push(f"{name}:{self._ref}", old or "")
        return name

    def delete(self, old: str) -> None:
        """Remove the branch, unless it is no longer at ``old``."""
        self._push(f":{self._ref}", old)

    def _push(self, what: str, old: str) -> None:
        """Without the hooks of the clone, and only if the branch is where it was."""
        self._git.output("push", "--quiet", "--no-verify", f"--force-with-lease={self._ref}:{old}", _REMOTE, what)

    def _tree(self, revisions: Sequence[FileRevision]) -> str:
        with tempfile.TemporaryDirectory() as folder:
            index: Mapping[str, str] = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
            self._git.output("read-tree", self._base, variables=index)
            for revision in revisions:
                path = self._git.place(revision.target)
                if revision.before and self._git.file(self._base, path) != revision.before:
                    raise FileAccessError(f"{escaped(revision.path)} differs from the commit {self._base[:12]}. Commit it first")
                blob = self._git.output("hash-object", "-w", "--no-filters", "--stdin", given=revision.after).decode().strip()
                is_program = bool(revision.before) and os.access(revision.target, os.X_OK)
                self._git.output("update-index", "--add", "--cacheinfo", f"{_MODES[is_program]},{blob},{path}", variables=index)
            return self._git.output("write-tree", variables=index).decode().strip()


def require_clean(git: Git, folder: str) -> None:
    """Raise ``GitError`` for manifests that are not committed: the proposal is made from a commit."""
    top = git.place(folder)
    places = [f":(top,glob){top}/**/*{suffix}" if top else f":(top,glob)**/*{suffix}" for suffix in _SUFFIXES]
    if git.output("status", "--porcelain", "--untracked-files=all", "--", *places).strip():
        raise GitError(f"{escaped(folder)} has manifests that are not committed. Commit them: a proposal is made from a commit")
