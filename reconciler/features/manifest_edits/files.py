"""Manifests with other values, where each value stands: revised in memory, then written whole."""

from __future__ import annotations

import contextlib
import logging
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from reconciler.errors import FileAccessError, GitError
from reconciler.files import write_whole
from reconciler.logs import log_event
from reconciler.model import FileRevision, Span, escaped
from reconciler.text import shown
from reconciler.workflows import LoadedManifests, nearest_repository
from reconciler.yaml import ScalarEditError

_log: Final = logging.getLogger(__name__)


@contextlib.contextmanager
def in_place(file: str) -> Iterator[None]:
    """Raise ``FileAccessError`` for an edit of a file that cannot be made in place."""
    try:
        yield
    except ScalarEditError as error:
        place = Span(file=file, line=error.edit.line, column=error.edit.column)
        msg = f"{place}: {shown(error.edit.old)} cannot be replaced in place. Write {error.edit.new} there by hand"
        raise FileAccessError(msg) from None


def rewrite_file(file: str, before: bytes, after: bytes, *, paths: Sequence[str]) -> FileRevision:
    """A file of the manifests in ``paths`` with other content; nothing is written.

    Raises ``FileAccessError`` for a file that cannot be written, or that is a link out of the repository.
    """
    target = _target(file, paths)
    _require_writable(file, target)
    return FileRevision(path=file, target=target, before=before, after=after)


def _target(file: str, paths: Sequence[str]) -> str:
    """Follow links. Raises ``FileAccessError`` for a place outside of the repository and of the named folders."""
    target = os.path.realpath(file)
    folders = [path if Path(path).is_dir() else str(Path(path).parent) for path in paths]
    with contextlib.suppress(GitError):
        folders.append(nearest_repository(folders[0]).top)
    allowed = [os.path.realpath(folder) for folder in folders]
    if not any(target.startswith(folder.rstrip(os.sep) + os.sep) for folder in allowed):
        msg = f"{escaped(file)} is a symbolic link to {escaped(target)}, outside of the repository. Nothing was written"
        raise FileAccessError(msg)
    return target


def write_revisions(revisions: Sequence[FileRevision]) -> None:
    """Write each file whole, with its permissions. Raises ``FileAccessError``; the message names files written before it."""
    written: list[str] = []
    for revision in revisions:
        target = Path(revision.target)
        try:
            mode = stat.S_IMODE(target.stat().st_mode)
            write_whole(target, [revision.after.decode("utf-8")], mode=mode)
        except (OSError, FileAccessError) as error:
            before = f". Written before it: {', '.join(map(escaped, written))}" if written else ". Nothing was written"
            msg = f"{escaped(revision.path)}: {error}{before}"
            raise FileAccessError(msg) from error
        written.append(revision.path)
        log_event(_log, "manifest written", level=logging.INFO, file=revision.path, target=revision.target)


def read_manifest(file: str) -> bytes:
    """Raises ``FileAccessError``."""
    try:
        return Path(file).read_bytes()
    except OSError as error:
        msg = f"{escaped(file)} cannot be read: {error.strerror}"
        raise FileAccessError(msg) from error


def _require_writable(file: str, target: str) -> None:
    # A file without any permission to write is protected on purpose, also from root.
    has_permission = bool(Path(target).stat().st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))
    if not has_permission or not os.access(target, os.W_OK) or not os.access(Path(target).parent, os.W_OK):
        msg = f"{escaped(file)} is read-only. Nothing was written: allow writing, or change the values by hand"
        raise FileAccessError(msg)


def clusters_of_values(loaded: LoadedManifests, *, but: str | None) -> Mapping[Span, tuple[str, ...]]:
    """Return the clusters that take a value from each place, without one cluster."""
    clusters: dict[Span, list[str]] = {}
    for name in sorted(loaded.clusters.keys() - {but}):
        spec = loaded.clusters[name]
        for span in {quota.source for each in loaded.desired(spec).entities.values() for quota in each.quotas.values()}:
            clusters.setdefault(span, []).append(name)
    return {span: tuple(names) for span, names in clusters.items()}
