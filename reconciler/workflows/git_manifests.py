"""The manifests of a commit: read from git into a temporary folder, loaded from there as any others, and the folder removed.

Places in them are named as they are in the repository, or left out to compare values alone.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from reconciler.errors import GitError, ManifestError, UntrustedError
from reconciler.logs import log_event
from reconciler.manifest import REPOSITORY_FILE
from reconciler.model import Finding, Message, Severity, Span, parts_of
from reconciler.text import shown
from reconciler.workflows.git_repository import Git, TreeEntry, repository_around
from reconciler.workflows.load import LoadedManifests, find_repository_root, load_manifests

if TYPE_CHECKING:
    from reconciler.workflows.trusted import TrustedFiles

_log: Final = logging.getLogger(__name__)
_MOST_BYTES: Final = 512 * 1024 * 1024
_SUFFIXES: Final = (".yaml", ".yml")
_MOST_LINKS: Final = 40
"""How many links the operating system follows for one path."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestsAt:
    """What the manifests declared at a commit. ``ref`` as the user wrote it; places read ``ref:path``, as git itself spells them.

    Where they are trusted, their clusters, Repository manifest, findings baseline and root apply in place of the work tree's.

    ``root`` is the folder of the Repository file there, relative to the top (``""`` for the top); ``None`` without one.
    """

    ref: str
    commit: str
    git: Git
    loaded: LoadedManifests = field(default_factory=LoadedManifests)
    root: str | None = None
    folder: str = ""
    """Where the files were while they were read; places in ``loaded.documents`` still name it."""

    def path(self, span: Span) -> str:
        """The file of a place, relative to the top of the repository."""
        # Places of Cluster and Repository manifests, and so of profiles, read ref:path already.
        return os.path.relpath(span.file, self.folder) if os.path.isabs(span.file) else span.file.removeprefix(f"{self.ref}:")

    def span(self, span: Span) -> Span:
        """A place of a document as ``ref:path``."""
        return span._replace(file=f"{self.ref}:{self.path(span)}")

    def path_of(self, place: str) -> str:
        """The work tree's path of a file that a place ``ref:path`` names."""
        return os.path.normpath(os.path.join(self.git.top, place.removeprefix(f"{self.ref}:")))

    @property
    def files(self) -> TrustedFiles:
        """The files that options and manifests name, as far as this reference is trusted."""
        from reconciler.workflows.trusted import files_at

        return files_at(self.git, ref=self.ref, commit=self.commit)

    def require_good(self, findings: Iterable[Finding]) -> None:
        """Raise ``ManifestError``, with places as ``ref:path``, when one of the findings is an error."""
        errors = [self._named(finding) for finding in findings if finding.severity is Severity.ERROR]
        if not errors:
            return
        first = errors[0]
        where = f"{first.span}: " if first.span else ""
        msg = f"the manifests at {self.ref} have errors, so their limits are not known: {where}{first.message} [{first.id}]"
        raise ManifestError(msg, findings=errors)

    def _named(self, finding: Finding) -> Finding:
        named = relocate_spans(finding, self.span)
        parts = (replace(part, text=part.text.replace(f"{self.folder}/", f"{self.ref}:")) for part in parts_of(finding.message))
        return replace(named, message=Message(parts))


def manifests_at(ref: str, paths: Sequence[str], *, same_links: bool = False) -> ManifestsAt:
    """Load what these paths of the work tree held at a reference; paths that were not there yet have nothing.

    With ``same_links`` no link may lead the way to a path unless the commit has it, too. Raises ``GitError`` when the reference
    cannot be read, ``UntrustedError`` for such a link, ``UsageError`` for a path outside of the repository, and ``ManifestError``
    when the manifests there have errors: what they meant is then not known.
    """
    git = repository_around(paths[0])
    places = [git.place(path) for path in paths]
    git = replace(git, top=_top_as_written(paths[0], places[0]))
    commit = git.commit(ref)
    if same_links:
        for place in places:
            _require_same_links(git, commit, place, ref=ref)
    with _exported(git, commit, places) as folder:
        read = [os.path.join(folder, place) if place else folder for place in places]
        root = find_repository_root(read, within=folder)
        wanted = [root] if root is not None else [path for path in read if os.path.lexists(path)]
        loaded = load_manifests(wanted, within=folder) if wanted else LoadedManifests()
    log_event(_log, "git reference read", level=logging.INFO, ref=ref, commit=commit, files=len(loaded.files))
    made = ManifestsAt(ref=ref, commit=commit, git=git, folder=folder)
    # A folder that held no manifest yet is a good answer here.
    made.require_good(finding for finding in loaded.findings if finding.id != "no-manifests")
    warnings = tuple(finding for finding in loaded.findings if finding.severity is not Severity.ERROR)
    # The documents themselves keep their places: there are many of them, and only what they declare is asked for.
    clusters, repository = relocate_spans((loaded.proposed, loaded.proposed_repository), made.span)
    loaded = replace(loaded, findings=warnings, root=None, files=(), proposed=clusters, proposed_repository=repository)
    relative = None if root is None else os.path.relpath(root, folder)
    return replace(made, loaded=loaded, root="" if relative == "." else relative)


def _require_same_links(git: Git, commit: str, place: str, *, ref: str) -> None:
    steps = place.split("/")
    for count in range(1, len(steps) + 1):
        way = "/".join(steps[:count])
        link = os.path.join(git.top, way)
        if place and os.path.islink(link) and os.fsencode(os.readlink(link)) != git.link(commit, way):
            msg = f"{shown(way)} is a symbolic link here, and {ref} does not have it. A link counts only after merge"
            raise UntrustedError(msg)


def _top_as_written(path: str, place: str) -> str:
    """The top folder in the user's own words, so that paths below it compare equal also where a link leads to it."""
    top = os.path.abspath(path)
    for _ in filter(None, place.split("/")):
        top = os.path.dirname(top)
    return top


@contextlib.contextmanager
def _exported(git: Git, commit: str, places: Sequence[str]) -> Iterator[str]:
    """A private folder with the YAML files and the links of a commit, as far as the places need them; removed at the end."""
    with tempfile.TemporaryDirectory(prefix="kafka-quotas-") as name:
        folder = os.path.realpath(name)
        entries = {entry.path: entry for entry in git.entries(commit, _needed(git, commit, places))}
        links = [entry for entry in entries.values() if entry.link]
        targets = {entry.path: os.fsdecode(target) for entry, target in zip(links, git.blobs(links), strict=True)}
        linked = {resolved_link(entry.path, targets) for entry in links}
        files = [e for e in entries.values() if not e.link and (e.path.endswith(_SUFFIXES) or e.path in linked)]
        if sum(entry.size for entry in files) > _MOST_BYTES:
            msg = f"the YAML files of commit {commit} are larger than {_MOST_BYTES} bytes together"
            raise GitError(msg)
        for entry, content in zip(files, git.blobs(files), strict=True):
            _write(folder, entry, content)
        # Links come last, so that no file is written through one.
        for entry in links:
            _link(folder, entry, targets)
        yield folder


def _needed(git: Git, commit: str, places: Sequence[str]) -> list[str]:
    """The places, or the topmost folder above one that may be the root."""
    above = {str(parent) for place in places for parent in (PurePosixPath(place), *PurePosixPath(place).parents)}
    candidates = [REPOSITORY_FILE if folder == "." else f"{folder}/{REPOSITORY_FILE}" for folder in above]
    roots = [str(PurePosixPath(entry.path).parent) for entry in git.entries(commit, candidates) if entry.path in candidates]
    return ["" if path == "." else path for path in {*places, *roots}]


def _write(folder: str, entry: TreeEntry, content: bytes) -> None:
    path = _inside(folder, entry)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "xb") as file:
        file.write(content)


def write_files_of(git: Git, commit: str, folder: str) -> None:
    """Write every file of a commit below a folder, and no link. Raises ``GitError`` for more than half a gibibyte."""
    files = [entry for entry in git.entries(commit, [""]) if not entry.link]
    if sum(entry.size for entry in files) > _MOST_BYTES:
        raise GitError(f"the files of commit {commit} are larger than {_MOST_BYTES} bytes together")
    for entry, content in zip(files, git.blobs(files), strict=True):
        _write(folder, entry, content)


def _link(folder: str, entry: TreeEntry, targets: Mapping[str, str]) -> None:
    """A link that stays inside; any other becomes one that leads nowhere, which loading reports when it is a manifest's."""
    path = _inside(folder, entry)
    inside = resolved_link(entry.path, targets) is not None
    os.makedirs(os.path.dirname(path), exist_ok=True)
    os.symlink(targets[entry.path] if inside else "outside-of-the-commit", path)


def resolved_link(path: str, targets: Mapping[str, str]) -> str | None:
    """Follow a path of a commit, as the operating system does. Return ``None`` for out of the commit, or a loop.

    ``targets``: what each link of the commit points to.
    """
    steps, at, followed = path.split("/")[::-1], list[str](), 0
    while steps:
        step = steps.pop()
        if step in ("", "."):
            continue
        if step == "..":
            if not at:
                return None
            at.pop()
            continue
        target = targets.get("/".join((*at, step)))
        if target is None:
            at.append(step)
            continue
        followed += 1
        if followed > _MOST_LINKS or target.startswith("/"):
            return None
        steps += target.split("/")[::-1]
    return "/".join(at)


def _inside(folder: str, entry: TreeEntry) -> str:
    """Git's own checks keep such names out; a commit made by hand could still have them."""
    parts = entry.path.split("/")
    if any(part in ("", ".", "..") for part in parts):
        msg = f"the commit has a file of the name {shown(entry.path)}, which cannot be"
        raise GitError(msg)
    return os.path.join(folder, *parts)


def relocate_spans(value: T, place: Callable[[Span], Span | None]) -> T:
    """``value``, a tree of dataclasses, tuples and mappings, with every ``Span`` in it replaced by ``place(span)``."""
    return cast("T", _relocate(value, place))


def without_spans(value: T) -> T:
    """``value`` with no ``Span`` left, to compare what is stated and not where."""
    return relocate_spans(value, lambda _: None)


def _relocate(value: Any, place: Callable[[Span], Span | None]) -> Any:
    if isinstance(value, Span):
        return place(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if f.init}
        changed = {name: new for name, old in fields.items() if (new := _relocate(old, place)) is not old}
        return dataclasses.replace(value, **changed) if changed else value
    if isinstance(value, tuple):
        items = tuple(_relocate(item, place) for item in value)
        if all(new is old for new, old in zip(items, value, strict=True)):
            return value
        return type(value)(*items) if hasattr(value, "_fields") else items
    if isinstance(value, Mapping):
        return {key: _relocate(item, place) for key, item in value.items()}
    return value
