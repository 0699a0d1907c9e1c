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
from typing import Final

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
class _BranchState:
    """What the branch has on the remote. ``commit``: ``None`` without the branch."""

    commit: str | None = None
    content: str | None = None
    """What its one commit of this tool proposes; ``None`` without one that is not merged."""
    stranger: str | None = None
    """Who else pushed to it."""


class Proposals:
    """Branches from the checked-out commit with one commit each, and the requests from them. Methods raise ``GitError``."""

    def __init__(self, forge: Forge, folder: str) -> None:
        """Raises ``GitError``, also for manifests that are not committed, and ``ForgeError``."""
        self._forge = forge
        self._git = repository_around(folder)
        _require_clean(self._git, folder)
        self._base = self._git.commit("HEAD")
        self._target = forge.default_branch()

    def refusal(self) -> str | None:
        """Return a sentence that states why nothing can be proposed from here, or ``None``."""
        if self._branches(self._target).get(self._target) == self._base:
            return None
        return f"Nothing is proposed: this commit is not the newest of {escaped(self._target)}. Check that out, and run again."

    def below(self, folder: str) -> tuple[str, ...]:
        """The branches of the remote whose names begin with ``folder/``."""
        return tuple(sorted(self._branches(f"{folder}/*")))

    def keep(self, branch: str, text: ProposalText, revisions: Sequence[FileRevision]) -> Iterator[str]:
        """Open or update the pull request from a branch. Sentences state what was done.

        Raises ``ForgeError``, ``GitError``, and ``FileAccessError`` for a file that differs from the commit.
        """
        forge, state, listed = self._forge, self._state(branch), self._forge.requests_from(branch)
        body = text.body if size((text.body,)) <= _MOST_BYTES else shorten(text.body, _MOST_BYTES // 4)
        if state.stranger is not None:
            yield _left_alone(branch, state.stranger)
            return
        current = next((each for each in listed if each.is_open), None)
        if state.content != text.content:
            commit = self._commit(revisions, f"{text.message}\n\n{_TRAILER}{text.content}\n")
            self._push(branch, commit, state.commit or "")
        elif current is None and any(each.commit == state.commit for each in listed):
            closed = f"{forge.name(listed[0].number)} with this {text.subject} was closed"
            yield f"Nothing is proposed: {closed}. A new {text.subject} opens a new one."
            return
        if current is None:
            number = forge.open_request(branch, self._target, text.title, body)
            yield f"{forge.name(number).capitalize()} proposes {text.purpose}."
        elif (current.title, current.body) != (text.title, body):
            forge.change_request(current.number, text.title, body)
            yield f"{forge.name(current.number).capitalize()} is updated."
        else:
            yield f"{forge.name(current.number).capitalize()} proposes this already."

    def close(self, branch: str, *, because: str) -> Iterator[str]:
        """Close the request, if there is one, and remove the branch. Raises ``ForgeError`` and ``GitError``."""
        state = self._state(branch)
        if state.stranger is not None:
            yield _left_alone(branch, state.stranger)
            return
        if state.commit is None:
            return
        for request in self._forge.requests_from(branch):
            if request.is_open:
                self._forge.close_request(request.number)
                yield f"{because}, so {self._forge.name(request.number)} is closed."
        self._push(branch, "", state.commit)

    def _branches(self, pattern: str) -> dict[str, str]:
        rows = _lines(self._git.output("ls-remote", _REMOTE, f"{_HEADS}{pattern}"))
        return {name.removeprefix(_HEADS): commit for commit, _, name in (row.partition("\t") for row in rows)}

    def _state(self, branch: str) -> _BranchState:
        """Read a branch. What is merged already counts as nothing."""
        commit = self._branches(branch).get(branch)
        if commit is None:
            return _BranchState()
        self._git.output("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", _REMOTE, f"{_HEADS}{branch}")
        rows = _lines(self._git.output("log", "--format=%an%x00%ae%x00%cn%x00%ce", f"{self._base}..{commit}"))
        for author, email, committer, other in (row.split("\0") for row in rows):
            if not email == other == _EMAIL:
                return _BranchState(commit=commit, stranger=escaped(author if email != _EMAIL else committer))
        if len(rows) > 1:
            return _BranchState(commit=commit, stranger="another program")
        lines = self._git.message(commit).splitlines() if rows else []
        content = next((line.removeprefix(_TRAILER) for line in lines if line.startswith(_TRAILER)), None)
        return _BranchState(commit=commit, content=content)

    def _push(self, branch: str, commit: str, old: str) -> None:
        """Push without the hooks of the clone, and only if the branch has not moved from ``old``. No commit removes it."""
        lease = f"--force-with-lease={_HEADS}{branch}:{old}"
        self._git.output("push", "--quiet", "--no-verify", lease, _REMOTE, f"{commit}:{_HEADS}{branch}")

    def _commit(self, revisions: Sequence[FileRevision], message: str) -> str:
        """Make a commit of objects alone. Raises ``FileAccessError`` for a file that differs from the checked-out commit."""
        git = self._git
        with tempfile.TemporaryDirectory() as folder:
            index: Mapping[str, str] = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
            git.output("read-tree", self._base, variables=index)
            for revision in revisions:
                path = git.place(revision.target)
                if revision.before and git.file(self._base, path) != revision.before:
                    raise FileAccessError(f"{escaped(revision.path)} differs from the commit {self._base[:12]}. Commit it first")
                blob = git.output("hash-object", "-w", "--no-filters", "--stdin", given=revision.after).decode().strip()
                is_program = bool(revision.before) and os.access(revision.target, os.X_OK)
                git.output("update-index", "--add", "--cacheinfo", f"{_MODES[is_program]},{blob},{path}", variables=index)
            tree = git.output("write-tree", variables=index).decode().strip()
        made = git.output("commit-tree", tree, "-p", self._base, "-F", "-", given=message.encode(), variables=_IDENTITY)
        return made.decode().strip()


@contextlib.contextmanager
def proposals_from(folder: str) -> Iterator[Proposals]:
    """Connect to the forge of this job, to propose changes of the manifests in ``folder``.

    Raises ``ForgeError``, ``GitError``, and ``UsageError`` without a token.
    """
    forge = (job_forge(os.environ) or GitHub).connect(os.environ, clock=SystemClock(), patience=_PATIENCE_S)
    with contextlib.closing(forge):
        yield Proposals(forge, folder)


def _left_alone(branch: str, stranger: str) -> str:
    return f"The branch {branch} is left alone: {stranger} pushed to it. Merge or delete it to get new proposals."


def _lines(output: bytes) -> list[str]:
    return [row for row in output.decode("utf-8", errors="replace").split("\n") if row]


def _require_clean(git: Git, folder: str) -> None:
    """Raise ``GitError`` for manifests that are not committed: the proposal is made from a commit."""
    top = git.place(folder)
    places = [f":(top,glob){top}/**/*{suffix}" if top else f":(top,glob)**/*{suffix}" for suffix in _SUFFIXES]
    if git.output("status", "--porcelain", "--untracked-files=all", "--", *places).strip():
        raise GitError(f"{escaped(folder)} has manifests that are not committed. Commit them: a proposal is made from a commit")
