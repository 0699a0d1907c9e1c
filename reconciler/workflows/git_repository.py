"""A git repository, read through git itself: no work tree, index or configuration of it is touched.

What is read may come from a stranger's pull request, so nothing in the work tree may choose the repository: the working directory
does. Links below it are not followed to another one, embedded bare repositories are not entered, and from a submodule the way
leads up to the outermost repository.
"""

from __future__ import annotations

import contextlib
import datetime
import logging
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from reconciler.errors import GitError, UnknownCommitError, UsageError
from reconciler.logs import timed_event
from reconciler.model import ManifestCommit
from reconciler.text import shown

_log: Final = logging.getLogger(__name__)
_SECONDS: Final = 60
_ENVIRONMENT: Final = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
_NOT_INHERITED: Final = frozenset({"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR"})
"""What a hook's environment states of its repository, where the folder that is asked about decides here."""
_AFTER_NAME: Final = re.compile(r"[~^:]|@\{")
"""Where the name of a reference ends, and the way from there to another commit begins."""
_COMMIT_ID: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_SETTINGS: Final = ("-c", "safe.bareRepository=explicit", "-c", "core.fsmonitor=false", "-c", "core.quotePath=false")
"""What the configuration of a repository must not decide: which one it is, and what programs are run."""
BLOB: Final = "blob"
_LINK_MODE: Final = "120000"
_UNKNOWN: Final = 1
"""What ``git rev-parse --verify --quiet`` exits with for a name that stands for nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeEntry:
    """A file of a commit. ``path`` is relative to the top, with ``/``; ``link`` for symbolic links, whose content is a path."""

    path: str
    blob: str
    size: int
    link: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BlamedLine:
    """The commit that wrote a line, and the line's number there. ``parent``: of the commit; ``None``: it has none."""

    commit: str
    line: int
    committed: datetime.datetime
    author: str
    subject: str
    parent: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Git:
    """The repository with this work tree. ``top`` is absolute."""

    program: str
    top: str

    def commit(self, ref: str) -> str:
        """The commit that a reference names. Raises ``UnknownCommitError``, with what to do in a shallow clone."""
        if not ref or ref.startswith("-") or "\0" in ref:
            msg = f"{shown(ref)} is not a git reference"
            raise UsageError(msg)
        self._require_one_meaning(ref)
        answer = _run(self.program, self.top, "rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")
        if answer.returncode == 0:
            return _text(answer.stdout).strip()
        msg = f"git knows no commit {shown(ref)} in {self.top}"
        if self.shallow():
            msg += ". This is a shallow clone, so fetch it first (in GitHub Actions: actions/checkout with fetch-depth: 0)"
        elif "/" in ref:
            msg += ". Fetch it first, or correct the reference"
        raise UnknownCommitError(msg)

    def _require_one_meaning(self, ref: str) -> None:
        """A tag named like a branch would quietly win, and its author may lack the right to push the branch."""
        name = _AFTER_NAME.split(ref)[0]
        meanings = [f"refs/{kind}/{name}" for kind in ("tags", "heads", "remotes")]
        known = _text(self.output("for-each-ref", "--format=%(refname)", *meanings)).split("\n")
        both = [meaning for meaning in meanings if meaning in known]
        if len(both) > 1:
            msg = f"{shown(ref)} is ambiguous: there are {' and '.join(both)}. Write the one you mean in full"
            raise GitError(msg)

    def dirty(self, folder: str) -> bool:
        """True when anything at or below a folder differs from the checked-out commit."""
        place = self.relative(folder)
        chosen = (f":(top,literal){place}",) if place else ()
        return bool(self.output("status", "--porcelain", "--untracked-files=normal", "--", *chosen).strip())

    def shallow(self) -> bool:
        """True when the history is cut off somewhere."""
        return _text(_run(self.program, self.top, "rev-parse", "--is-shallow-repository").stdout).strip() == "true"

    def relative(self, path: str) -> str | None:
        """The path as the top folder sees it (``""`` for the top), or ``None`` outside; links below the top are not followed."""
        absolute = os.path.abspath(path)
        rest: list[str] = []
        while True:
            if _same(absolute, self.top):
                return "/".join(reversed(rest))
            parent, name = os.path.split(absolute)
            if parent == absolute:
                return None
            rest.append(name)
            absolute = parent

    def place(self, path: str) -> str:
        """The same as ``relative``. Raises ``UsageError`` for a path outside, and for one that a link leads outside."""
        place = self.relative(path)
        if place is None:
            msg = (
                f"{shown(path)} is not in the git repository {self.top} of the working directory, so it has no "
                "state at a reference. Change to the repository that the path is in"
            )
            raise UsageError(msg)
        physical = os.path.realpath(os.path.abspath(path))
        if not Path(physical).is_relative_to(os.path.realpath(self.top)):
            msg = f"{shown(path)} leads out of the git repository {self.top}, to {shown(physical)}. Give a path inside it"
            raise UsageError(msg)
        return place

    def entries(self, commit: str, below: Sequence[str]) -> tuple[TreeEntry, ...]:
        """All files of a commit at or below these paths; submodules are left out."""
        wanted = [] if "" in below else below
        listed = self.output("ls-tree", "-r", "-l", "-z", "--full-tree", commit, "--", *wanted)
        return tuple(entry for row in listed.split(b"\0") if row and (entry := _entry(row)) is not None)

    def file(self, commit: str, path: str) -> bytes | None:
        """The content of one plain file of a commit; ``None`` when there is none (a link is none)."""
        entry = next((entry for entry in self.entries(commit, [path]) if entry.path == path), None)
        return None if entry is None or entry.link else self.blobs([entry])[0]

    def link(self, commit: str, path: str) -> bytes | None:
        """Return where a symbolic link of a commit points to, ``None`` when the path is not one."""
        entry = next((entry for entry in self.entries(commit, [path]) if entry.path == path), None)
        return self.blobs([entry])[0] if entry is not None and entry.link else None

    def tracked(self, path: str) -> tuple[str, ...]:
        """The files, links and submodules of the index at or below a path."""
        listed = self.output("ls-files", "--cached", "-z", "--full-name", "--", f":(top,literal){path}")
        return tuple(os.fsdecode(path) for path in listed.split(b"\0") if path)

    def blobs(self, entries: Sequence[TreeEntry]) -> tuple[bytes, ...]:
        """The contents, as they are in the repository: no filter and no attribute changes them."""
        if not entries:
            return ()
        request = "".join(f"{entry.blob}\n" for entry in entries).encode()
        answer = self.output("cat-file", "--batch", given=request)
        contents, at = [], 0
        for entry in entries:
            end = answer.index(b"\n", at)
            header = answer[at:end].split()
            if len(header) != 3 or header[1] != BLOB.encode():
                msg = f"git does not have the content of {shown(entry.path)}. Fetch the whole commit"
                raise GitError(msg)
            start = end + 1
            contents.append(answer[start : start + int(header[2])])
            at = start + int(header[2]) + 1
        return tuple(contents)

    def tracks(self, path: str) -> bool:
        """True when the index has this file, or a link or submodule on the way to it, or when git cannot answer."""
        steps = path.split("/")
        ways = ("/".join(steps[: count + 1]) for count in range(len(steps)))
        return any(
            _run(self.program, self.top, "rev-parse", "--verify", "--quiet", f":0:{way}").returncode != _UNKNOWN for way in ways
        )

    def work_trees(self) -> tuple[str, ...]:
        """The top folders of all work trees of the repository, this one first."""
        listed = self.output("worktree", "list", "--porcelain").split(b"\n")
        folders = (os.fsdecode(line.removeprefix(b"worktree ")) for line in listed if line.startswith(b"worktree "))
        return tuple(dict.fromkeys((self.top, *folders)))

    def message(self, commit: str) -> str:
        """Return the message of a commit."""
        return _text(self.output("show", "--no-patch", "--no-show-signature", "--format=%B", commit))

    def contains(self, commit: str, earlier: str) -> bool:
        """True when a commit is the earlier one or descends from it; one that is not here is in none."""
        if not _COMMIT_ID.fullmatch(earlier):
            return False
        return _run(self.program, self.top, "merge-base", "--is-ancestor", earlier, commit).returncode == 0

    def was_newest(self, branch: str, commit: str) -> bool:
        """True when a branch that is at ``branch`` now was at ``commit`` once. It never was at commits that a merge brought."""
        if not _COMMIT_ID.fullmatch(commit):
            return False
        return commit in _text(self.output("rev-list", "--first-parent", branch)).split("\n")

    def dated_commits(
        self, *, until: datetime.datetime, places: Sequence[str], since: datetime.datetime | None = None, most: int | None = None
    ) -> list[tuple[str, datetime.datetime]]:
        """Commits of the checked-out branch that changed one of these places, with their dates, the newest first."""
        limits = [f"--before={int(until.timestamp())}"]
        limits += [f"--after={int(since.timestamp())}"] if since is not None else []
        limits += [f"--max-count={most}"] if most is not None else []
        wanted = [] if "" in places else [f":(top,literal){place}" for place in places]
        rows = _text(self.output("rev-list", "--timestamp", "--first-parent", *limits, "HEAD", "--", *wanted)).split("\n")
        pairs = [row.split(" ") for row in rows if row]
        return [(commit, datetime.datetime.fromtimestamp(int(at), tz=datetime.UTC)) for at, commit in pairs]

    def blame_line(self, commit: str | None, path: str, line: int) -> BlamedLine:
        """The commit that last changed one line of a file, as that is in ``commit``. White space does not count.

        ``commit`` ``None``: the file of the work tree, where git gives the time now to a line that is not committed.
        """
        place = f"-L{line},{line}"
        answer = _text(self.output("blame", "--porcelain", "-w", place, *(() if commit is None else (commit,)), "--", path))
        rows = answer.split("\n")
        number, first, *_ = rows[0].split(" ")
        known = dict(row.partition(" ")[::2] for row in rows[1:] if not row.startswith("\t"))
        is_committed = bool(number.strip("0"))
        parents = _text(self.output("rev-list", "--parents", "--max-count=1", number)).split() if is_committed else []
        return BlamedLine(
            commit=number,
            line=int(first),
            committed=datetime.datetime.fromtimestamp(int(known["committer-time"]), tz=datetime.UTC),
            author=known.get("author", ""),
            subject=known.get("summary", ""),
            parent=parents[1] if len(parents) > 1 else None,
        )

    def missing_commits(self, *, base: str) -> int:
        """Count the commits of ``base`` that the checked-out commit lacks. Raises ``GitError`` when there is none yet."""
        return int(self.output("rev-list", "--count", base, "^HEAD"))

    def output(self, *arguments: str, given: bytes | None = None, variables: Mapping[str, str] | None = None) -> bytes:
        """Run git and return what it prints. ``given``: its standard input. Raises ``GitError``."""
        done = _run(self.program, self.top, *arguments, given=given, variables=variables)
        if done.returncode != 0:
            msg = f"git {arguments[0]} failed in {self.top}: {_reason(done.stderr)}"
            raise GitError(msg)
        return done.stdout


def repository_around(path: str) -> Git:
    """The repository of the working directory, with that of its work trees which a file or folder lies in.

    Files of a pull request must not choose the repository, and any of its folders may be a link: so the path has to lie in the
    work tree both as it is written and where it leads to. A working directory in no repository leaves the choice to the folders
    above the path, from the top down. Raises ``GitError`` when no repository is there, or no git, and ``UsageError`` for a path
    outside of it.
    """
    try:
        home = _outermost(os.getcwd())
    except GitError:
        home = _first_on_the_way(path)
    trees = [replace(home, top=top) for top in home.work_trees()]
    around = [(place.count("/") if place else -1, git) for git in trees if (place := git.relative(path)) is not None]
    # A linked work tree may lie inside the main one.
    git = min(around, key=lambda candidate: candidate[0])[1] if around else home
    git.place(path)
    return git


def nearest_repository(path: str) -> Git:
    """The repository that a file or folder is in, which may be a submodule. Raises ``GitError`` without a repository."""
    return _nearest(_existing_folder(path))[0]


def source_of(path: Path) -> ManifestCommit:
    """The commit of the repository around ``path``, and whether anything at or below its folder differs from it.

    Nothing is known where there is no repository, no commit, or no git.
    """
    folder = path if path.is_dir() else path.parent
    physical = folder.resolve()
    if not folder.is_dir() or not any(os.path.lexists(each / ".git") for each in (physical, *physical.parents)):
        return ManifestCommit()
    known = ManifestCommit()
    with contextlib.suppress(GitError):
        git = nearest_repository(str(folder))
        known = ManifestCommit(commit=git.commit("HEAD"))
        known = replace(known, dirty=git.dirty(str(folder)))
    return known


def _outermost(folder: str) -> Git:
    """The repository around a folder, outside of all submodules."""
    while True:
        nearest, above = _nearest(folder)
        if above is None:
            return nearest
        folder = above


def _first_on_the_way(path: str) -> Git:
    """The first repository on the way from the root of the file system down to a path, as that is written."""
    absolute = Path(os.path.abspath(path))
    for folder in reversed((absolute, *absolute.parents)):
        if os.path.lexists(folder / ".git"):
            return _nearest(str(folder))[0]
    return nearest_repository(path)


def _nearest(folder: str) -> tuple[Git, str | None]:
    """The repository, and the work tree that it is a submodule of."""
    program = shutil.which("git")
    if program is None:
        msg = "a git reference was given, and there is no git on the PATH to read it with"
        raise GitError(msg)
    answer = _run(program, folder, "rev-parse", "--show-toplevel", "--absolute-git-dir", "--show-superproject-working-tree")
    lines = [os.fsdecode(line) for line in answer.stdout.split(b"\n") if line]
    if answer.returncode != 0 or len(lines) < 2:
        msg = f"{folder} is not in a git work tree that git reads: {_reason(answer.stderr)}"
        raise GitError(msg)
    if _is_above(lines[1], folder):
        msg = f"{lines[1]} looks like a git repository inside the files of another. kafka-quotas does not trust it"
        raise GitError(msg)
    return Git(program=program, top=lines[0]), lines[2] if len(lines) > 2 else None


def _run(
    program: str, folder: str, *arguments: str, given: bytes | None = None, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    command = [program, *_SETTINGS, "-C", folder, *arguments]
    inherited = {name: value for name, value in os.environ.items() if name not in _NOT_INHERITED}
    try:
        with timed_event(_log, "git ran", folder=folder, arguments=arguments) as data:
            done = subprocess.run(
                command,
                input=given if given is not None else b"",
                capture_output=True,
                timeout=_SECONDS,
                check=False,
                env={**inherited, **_ENVIRONMENT, **(variables or {})},
            )
            data["exit_code"] = done.returncode
            return done
    except (OSError, ValueError) as error:
        msg = f"git cannot be run: {error}"
        raise GitError(msg) from error
    except subprocess.TimeoutExpired:
        msg = f"git {arguments[0]} did not end within {_SECONDS} seconds"
        raise GitError(msg) from None


def _entry(row: bytes) -> TreeEntry | None:
    head, _, path = row.partition(b"\t")
    mode, kind, blob, size = _text(head).split()
    if kind != BLOB:
        return None
    return TreeEntry(path=os.fsdecode(path), blob=blob, size=int(size), link=mode == _LINK_MODE)


def _existing_folder(path: str) -> str:
    folder = os.path.abspath(path)
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    return folder


def _is_above(git_folder: str, folder: str) -> bool:
    """An embedded bare repository is found because its own folder, or one in it, was entered; ``.git`` never is."""
    return Path(os.path.realpath(folder)).is_relative_to(os.path.realpath(git_folder))


def _same(path: str, other: str) -> bool:
    try:
        return os.path.samefile(path, other)
    except OSError:
        return False


def _text(content: bytes) -> str:
    return content.decode("utf-8", errors="replace")


def _reason(stderr: bytes) -> str:
    lines = _text(stderr).strip().splitlines()
    return lines[0].removeprefix("fatal: ") if lines else "no reason was given"
