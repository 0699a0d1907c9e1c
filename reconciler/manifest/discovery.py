"""From the PATHs of a command to the bytes of files: the root, the folders below it, and what is left out on purpose.

With a Repository file at or above the PATHs, everything under its folder is read and the PATHs only choose what is shown and
planned; without one, the PATHs themselves are the whole.

A file is read within bounds: never a pipe or a device, never more than the limit. In a path pattern ``*`` and ``?`` match within
a folder, ``**`` matches across folders.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final, TypeAlias

from reconciler.errors import UsageError
from reconciler.manifest.reading import finding
from reconciler.model import Finding, Span
from reconciler.text import shown as quoted

REPOSITORY_FILE: Final = "kafka-quotas.yaml"
_SUFFIXES: Final = (".yaml", ".yml")


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestFile:
    """A file to read. ``path`` as the user would type it; ``relative`` to the root, with ``/``, for patterns."""

    path: str
    relative: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovery:
    """The files in the order of their paths, and what could not be followed.

    ``selected`` are the paths that the user asked for when that is not all (``None``: all). ``filtered`` is true when a plan of
    them is not complete.
    """

    files: tuple[ManifestFile, ...]
    findings: tuple[Finding, ...]
    root: str | None
    selected: frozenset[str] | None
    filtered: bool


def file_span(path: str) -> Span:
    """The place of a finding about a whole file: its first character."""
    return Span(file=path, line=1, column=1)


def find_root(paths: Sequence[str], is_root: Callable[[str], bool], *, within: str | None = None) -> str | None:
    """The folder with the Repository file, at or above every PATH; ``None`` without one.

    ``is_root`` is given the path of each candidate file; nothing above the folder ``within`` is looked at. Raises ``UsageError``
    when PATHs belong to different roots.
    """
    roots: set[str | None] = set()
    for path in paths:
        folder = os.path.abspath(path)
        if not os.path.isdir(folder):
            folder = os.path.dirname(folder)
        while not (os.path.isfile(candidate := os.path.join(folder, REPOSITORY_FILE)) and is_root(candidate)):
            parent = os.path.dirname(folder)
            if folder in (parent, within):
                roots.add(None)
                break
            folder = parent
        else:
            roots.add(folder)
    if len(roots) > 1:
        named = ", ".join(sorted(quoted(root) if root else "none" for root in roots))
        msg = (
            f"the paths belong to different roots ({named}). Give paths of one repository at a time, or put one Repository "
            "manifest above them, in place of theirs, that lists them in spec.include"
        )
        raise UsageError(msg)
    return next(iter(roots), None)


def discover(
    paths: Sequence[str], *, root: str | None, excluded: Callable[[str], bool] | None = None, include: IncludedFiles | None = None
) -> Discovery:
    """The files to read: with ``include`` and a root, only those and the Repository file.

    Paths that do not exist, loops and things that are not files come back as findings.
    """
    walk = _Walk(excluded)
    selected: frozenset[str] | None = None
    shown_root: str | None = None
    if root is None:
        folders = [path for path in paths if os.path.isdir(path)]
        walk.tops = frozenset(map(os.path.realpath, folders))
        for path in folders:
            walk.add_tree(path)
        for path in paths:
            if path not in folders:
                walk.add_file(os.path.normpath(path), os.path.basename(path))
        filtered = len(folders) < len(paths)
    else:
        walk.include = include
        shown_root = root if any(os.path.isabs(path) for path in paths) else os.path.relpath(root)
        walk.tops = frozenset({os.path.realpath(root)})
        walk.add_tree(shown_root)
        filtered = not any(os.path.abspath(path) == root for path in paths)
        selected = frozenset(walk.chosen_by(paths)) if filtered else None
    files = tuple(sorted(walk.files.values(), key=lambda file: file.path if root is None else file.relative))
    return Discovery(files=files, findings=tuple(walk.findings), root=shown_root, selected=selected, filtered=filtered)


class IncludedFiles:
    """The files that the Repository manifest includes, such as ``services/*/kafka-quotas.yaml`` in a repository of other things.

    Folders that can have none of them are not entered.
    """

    def __init__(self, patterns: Sequence[str], matches: Callable[[str], bool]) -> None:
        self._matches = matches
        self._starts = tuple(literal_start(pattern) for pattern in patterns)

    def wants(self, relative: str, *, is_folder: bool) -> bool:
        """True for a file to read, and for a folder that may have one."""
        if not is_folder:
            return relative == REPOSITORY_FILE or self._matches(relative)
        inner = f"{relative}/"
        return any(inner.startswith(start) or start.startswith(inner) for start in self._starts)


def literal_start(pattern: str) -> str:
    """The folders that a pattern begins with, up to the first that has a wildcard."""
    parts = [part for part in pattern.removeprefix("./").split("/") if part]
    literal: list[str] = []
    for part in parts:
        if "*" in part or "?" in part:
            break
        literal.append(f"{part}/")
    return "".join(literal)


Identity: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Folder:
    """A folder still to be walked; ``above`` are the identities of the folders that led to it."""

    path: str
    relative: str
    above: tuple[Identity, ...] = ()


class _Walk:
    """Collects files of folders, each folder once. ``tops`` are the real paths of the folders that links may lead into."""

    def __init__(self, excluded: Callable[[str], bool] | None) -> None:
        self.excluded = excluded
        self.include: IncludedFiles | None = None
        self.tops: frozenset[str] = frozenset()
        self.files: dict[str, ManifestFile] = {}
        self.findings: list[Finding] = []
        self.visited: set[Identity] = set()
        self.pending: list[_Folder] = []
        self.links: list[_Folder] = []

    def add_file(self, path: str, relative: str) -> None:
        absolute = os.path.abspath(path)
        # Below a root that is above the working directory, "../here/file" is "file".
        shown = os.path.relpath(absolute) if path.startswith("..") else path
        self.files.setdefault(absolute, ManifestFile(path=shown, relative=relative))

    def add_tree(self, top: str) -> None:
        """Real folders first and links after them, so that a file is called by its real path."""
        self.pending.append(_Folder(path=os.path.normpath(top), relative=""))
        while self.pending or self.links:
            folder = self.pending.pop() if self.pending else self.links.pop(0)
            try:
                self.walk(folder)
            except OSError as error:
                self.note("file-not-readable", f"the folder cannot be read: {error.strerror}", folder.path)

    def walk(self, folder: _Folder) -> None:
        status = os.stat(folder.path)
        identity = (status.st_dev, status.st_ino)
        if identity in folder.above:
            self.note("symlink-loop", "this link points to a folder above it. Nothing follows it", folder.path)
        if identity in self.visited:
            return
        self.visited.add(identity)
        with os.scandir(folder.path) as entries:
            children = list(entries)
        for entry in children:
            relative = f"{folder.relative}{entry.name}"
            if self.excluded is None or not self.excluded(relative):
                self.child(entry, os.path.normpath(entry.path), relative, (*folder.above, identity))

    def child(self, entry: os.DirEntry[str], path: str, relative: str, above: tuple[Identity, ...]) -> None:
        try:
            is_folder = entry.is_dir()
        except OSError:
            # A link that leads to itself: reading it as a file then says what is wrong.
            is_folder = False
        if entry.name.startswith(".") if is_folder else not entry.name.endswith(_SUFFIXES):
            return
        if self.include is not None and not self.include.wants(relative, is_folder=is_folder):
            return
        if entry.is_symlink() and self.leads_out(path):
            self.note("link-out-of-tree", "this symbolic link leads out of the folder that is read. Nothing follows it", path)
        elif is_folder:
            inner = _Folder(path=path, relative=f"{relative}/", above=above)
            (self.links if entry.is_symlink() else self.pending).append(inner)
        else:
            self.add_file(path, relative)

    def leads_out(self, path: str) -> bool:
        target = os.path.realpath(path)
        return not any(target == top or target.startswith(top.rstrip(os.sep) + os.sep) for top in self.tops)

    def chosen_by(self, paths: Sequence[str]) -> Iterator[str]:
        """The files found that are one of these paths, or below one."""
        for path in paths:
            absolute = os.path.abspath(path)
            if absolute in self.files:
                yield self.files[absolute].path
            elif os.path.isdir(absolute):
                prefix = absolute + os.sep
                yield from (file.path for place, file in self.files.items() if place.startswith(prefix))
            elif os.path.lexists(absolute):
                self.note("file-not-read", "not read: excluded by the Repository document, in a hidden folder, or not YAML", path)
            else:
                self.note("file-not-found", "no such file or folder", path)

    def note(self, rule_id: str, message: str, path: str) -> None:
        self.findings.append(finding(rule_id, message, file_span(path)))


MAX_BYTES: Final = 32 * 1024 * 1024
"""Largest file that is read; 100,000 entries are about 12 MB."""


class UnreadableError(Exception):
    """A file that cannot be read; ``rule_id`` is the finding, the text states why."""

    def __init__(self, rule_id: str, message: str) -> None:
        super().__init__(message)
        self.rule_id = rule_id


def read_file(path: str) -> bytes:
    """The bytes of a file. Raises ``UnreadableError``."""
    try:
        # Not blocking: opening a pipe would otherwise wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0))
    except (OSError, ValueError) as error:
        raise UnreadableError(*_why(error, path)) from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise UnreadableError("not-a-file", f"this is {kind_of(status.st_mode)}, not a file")
        if status.st_size > MAX_BYTES:
            message = f"the file has {status.st_size} bytes. At most {MAX_BYTES} are read, so split it"
            raise UnreadableError("file-too-large", message)
        with open(descriptor, "rb", closefd=False) as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UnreadableError(*_why(error, path)) from error
    finally:
        os.close(descriptor)
    if len(content) > MAX_BYTES:
        raise UnreadableError("file-too-large", f"the file has more than {MAX_BYTES} bytes. Split it")
    return content


def kind_of(mode: int) -> str:
    """Return the kind of a path, from its mode: "a folder", "a named pipe"."""
    kinds = (
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISFIFO, "a named pipe"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISCHR, "a device"),
        (stat.S_ISBLK, "a device"),
    )
    return next((word for test, word in kinds if test(mode)), "something else")


def _why(error: OSError | ValueError, path: str) -> tuple[str, str]:
    if isinstance(error, FileNotFoundError):
        if Path(path).is_symlink():
            return "file-not-readable", "this link leads nowhere"
        return "file-not-found", "no such file or folder"
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return "file-not-readable", f"cannot be read: {reason}"


def path_matcher(patterns: Sequence[str]) -> Callable[[str], bool]:
    """A test for paths relative to the root, with ``/`` between parts; a pattern that matches a folder takes all below it."""
    compiled = [_compiled(pattern) for pattern in patterns]
    return lambda path: any(pattern.fullmatch(path) for pattern in compiled)


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern. Between two stars the leftmost match is as good as any, so it is atomic: no pattern is slow."""
    parts = [part for part in pattern.removeprefix("./").split("/") if part]
    runs: list[list[str]] = [[]]
    for part in parts:
        if part == "**":
            runs.append([])
        else:
            runs[-1].append(_part(part))
    first, *others = runs
    if not others:
        return re.compile("/".join(first) + "(?:/.*)?", re.DOTALL)
    text = "".join(f"{part}/" for part in first)
    for run in others[:-1]:
        if run:
            text += f"(?>(?:[^/]+/)*?{'/'.join(run)}/)"
    last = others[-1]
    text += f"(?:[^/]+/)*?{'/'.join(last)}(?:/.*)?" if last else ".*"
    return re.compile(text, re.DOTALL)


def _part(part: str) -> str:
    chunks = ["".join("[^/]" if c == "?" else re.escape(c) for c in chunk) for chunk in re.split(r"\*+", part)]
    first, *others = chunks
    if not others:
        return first
    middle = "".join(f"(?>[^/]*?{chunk})" for chunk in others[:-1] if chunk)
    # The last chunk is at the end of the part.
    return f"{first}{middle}[^/]*{others[-1]}(?=/|\\Z)"
