"""A proposal: a branch on the remote with one commit, and the pull request from it, kept true by each run.

The commit is made from objects alone, so that work tree and index stay as they are. A branch that a person pushed to is left
alone, and what a person closed is not opened again.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from reconciler.errors import FileAccessError, GitError
from reconciler.features.pull_requests.forge import Forge
from reconciler.features.pull_requests.github import GitHub
from reconciler.features.pull_requests.posting import job_forge
from reconciler.model import FileRevision, escaped
from reconciler.ports import SystemClock
from reconciler.render import shorten, size
from reconciler.workflows import Git, repository_around

_REMOTE: Final = "origin"
_HEADS: Final = "refs/heads/"
_NAME: Final = "kafka-quotas"
_EMAIL: Final = "kafka-quotas@localhost"
_IDENTITY: Final = {
    f"GIT_{role}_{part}": value for role in ("AUTHOR", "COMMITTER") for part, value in (("NAME", _NAME), ("EMAIL", _EMAIL))
}
_TRAILER: Final = "Kafka-Quotas-Proposal: "
_SUFFIXES: Final = (".yaml", ".yml")
_PATIENCE_S: Final = 120.0
_MOST_BYTES: Final = 60_000
"""Bytes of a text. GitHub accepts 65,536 characters."""
_MODES: Final = {True: "100755", False: "100644"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalText:
    """A pull request for people, and the commit that it is about."""

    title: str
    body: str
    message: str
    """Of the commit. No name stands in it: forges read mentions and numbers of issues in messages."""
    content: str
    """Identifies what is proposed: the same again changes no branch."""
    purpose: str
    """What it proposes, such as ``to adopt the drift``."""
    subject: str
    """What a person closed it with, such as ``drift``: another one opens a new request."""


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
        self._ref = f"{_HEADS}{name}"

    def state(self) -> BranchState:
        """Read the branch. What is merged already counts as nothing."""
        commit = newest_commit(self._git, self.name)
        if commit is None:
            return BranchState()
        self._git.output("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", _REMOTE, self._ref)
        rows = _lines(self._git.output("log", "--format=%an%x00%ae%x00%cn%x00%ce", f"{self._base}..{commit}"))
        for author, email, committer, other in (row.split("\0") for row in rows):
            if not email == other == _EMAIL:
                return BranchState(commit=commit, stranger=escaped(author if email != _EMAIL else committer))
        if len(rows) > 1:
            return BranchState(commit=commit, stranger="another program")
        lines = self._git.message(commit).splitlines() if rows else []
        content = next((line.removeprefix(_TRAILER) for line in lines if line.startswith(_TRAILER)), None)
        return BranchState(commit=commit, content=content)

    def push(self, revisions: Sequence[FileRevision], *, message: str, content: str, old: str | None) -> None:
        """Make the one commit and push it, unless the branch has moved from ``old``.

        Raises ``FileAccessError`` for a file that differs from the commit ``base``.
        """
        tree = self._tree(revisions)
        text = f"{message}\n\n{_TRAILER}{content}\n"
        commit = self._git.output("commit-tree", tree, "-p", self._base, "-F", "-", given=text.encode(), variables=_IDENTITY)
        self._push(f"{commit.decode().strip()}:{self._ref}", old or "")

    def delete(self, old: str) -> None:
        """Remove the branch, unless it has moved from ``old``."""
        self._push(f":{self._ref}", old)

    def _push(self, what: str, old: str) -> None:
        """Push without the hooks of the clone, and only if the branch has not moved from ``old``."""
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


def newest_commit(git: Git, branch: str) -> str | None:
    """The commit of a branch of the remote. Raises ``GitError``."""
    return _branches(git, branch).get(branch)


def _lines(output: bytes) -> list[str]:
    return [row for row in output.decode("utf-8", errors="replace").split("\n") if row]


def _branches(git: Git, pattern: str) -> dict[str, str]:
    rows = _lines(git.output("ls-remote", _REMOTE, f"{_HEADS}{pattern}"))
    return {name.removeprefix(_HEADS): commit for commit, _, name in (row.partition("\t") for row in rows)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalBase:
    """The commit that proposals are made from: the checked-out one, if it is the newest of the branch to merge into."""

    git: Git
    commit: str
    target: str

    @classmethod
    def find(cls, forge: Forge, folder: str) -> Self:
        """Raises ``GitError``, also for manifests that are not committed, and ``ForgeError``."""
        git = repository_around(folder)
        _require_clean(git, folder)
        return cls(git=git, commit=git.commit("HEAD"), target=forge.default_branch())

    def refusal(self) -> str | None:
        """Return a sentence that states why nothing can be proposed from here, or ``None``."""
        if newest_commit(self.git, self.target) == self.commit:
            return None
        return f"Nothing is proposed: this commit is not the newest of {escaped(self.target)}. Check that out, and run again."

    def branch(self, name: str) -> ProposalBranch:
        """The branch of a proposal."""
        return ProposalBranch(self.git, name, base=self.commit)

    def branches_below(self, folder: str) -> tuple[str, ...]:
        """The branches of the remote whose names begin with ``folder/``."""
        return tuple(sorted(_branches(self.git, f"{folder}/*")))


@contextlib.contextmanager
def proposals_from(folder: str) -> Iterator[tuple[Forge, ProposalBase]]:
    """Connect to the forge of this job, and find the commit of the manifests in ``folder`` that proposals are made from.

    Raises ``ForgeError``, ``GitError``, and ``UsageError`` without a token.
    """
    forge = (job_forge(os.environ) or GitHub).connect(os.environ, clock=SystemClock(), patience=_PATIENCE_S)
    try:
        yield forge, ProposalBase.find(forge, folder)
    finally:
        forge.close()


def stranger_words(branch: ProposalBranch, state: BranchState) -> str | None:
    """Return a sentence that states why a branch is left alone, or ``None`` for a branch of this tool."""
    if state.stranger is None:
        return None
    return f"The branch {branch.name} is left alone: {state.stranger} pushed to it. Merge or delete it to get new proposals."


def keep_request(
    forge: Forge, branch: ProposalBranch, text: ProposalText, revisions: Sequence[FileRevision], *, target: str
) -> Iterator[str]:
    """Open or update the pull request from a branch. Sentences state what was done.

    Raises ``ForgeError``, ``GitError``, and ``FileAccessError`` for a file that differs from the commit.
    """
    state, listed = branch.state(), forge.requests_from(branch.name)
    body = text.body if size((text.body,)) <= _MOST_BYTES else shorten(text.body, _MOST_BYTES // 4)
    if (words := stranger_words(branch, state)) is not None:
        yield words
        return
    current = next((each for each in listed if each.is_open), None)
    if state.content != text.content:
        branch.push(revisions, message=text.message, content=text.content, old=state.commit)
    elif current is None and any(each.commit == state.commit for each in listed):
        closed = f"{forge.name(listed[0].number)} with this {text.subject} was closed"
        yield f"Nothing is proposed: {closed}. A new {text.subject} opens a new one."
        return
    if current is None:
        number = forge.open_request(branch.name, target, text.title, body)
        yield f"{forge.name(number).capitalize()} proposes {text.purpose}."
    elif (current.title, current.body) != (text.title, body):
        forge.change_request(current.number, text.title, body)
        yield f"{forge.name(current.number).capitalize()} is updated."
    else:
        yield f"{forge.name(current.number).capitalize()} proposes this already."


def close_request(forge: Forge, branch: ProposalBranch, *, because: str) -> Iterator[str]:
    """Close the request, if there is one, and remove the branch. Raises ``ForgeError`` and ``GitError``."""
    state = branch.state()
    if (words := stranger_words(branch, state)) is not None:
        yield words
        return
    if state.commit is None:
        return
    for request in forge.requests_from(branch.name):
        if request.is_open:
            forge.close_request(request.number)
            yield f"{because}, so {forge.name(request.number)} is closed."
    branch.delete(state.commit)


def _require_clean(git: Git, folder: str) -> None:
    """Raise ``GitError`` for manifests that are not committed: the proposal is made from a commit."""
    top = git.place(folder)
    places = [f":(top,glob){top}/**/*{suffix}" if top else f":(top,glob)**/*{suffix}" for suffix in _SUFFIXES]
    if git.output("status", "--porcelain", "--untracked-files=all", "--", *places).strip():
        raise GitError(f"{escaped(folder)} has manifests that are not committed. Commit them: a proposal is made from a commit")
