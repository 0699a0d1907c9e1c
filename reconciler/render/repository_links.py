"""Files of the repository as a comment or a page names them: their paths, links to their lines, fingerprints of findings in them.

Addresses (of the repository, the run, the backtest's page) are data that the caller knows. One that is not a plain web address is
treated as unknown, and gives no link.
"""

from __future__ import annotations

import posixpath
import re
import urllib.parse
from dataclasses import dataclass, field
from typing import Final

from reconciler.model import Span
from reconciler.render.markdown_text import NAME_LIMIT, code

_ADDRESS: Final = re.compile(r"https?://[A-Za-z0-9.:-]+/[A-Za-z0-9._~/%#?=&+-]*")
_BRANCH: Final = re.compile(r"(?:refs/heads|refs/remotes/[^/:]+|origin)/(?P<branch>[^:]+):(?P<path>.+)", re.DOTALL)
"""A file of a branch, as places of a trusted reference spell it."""
_SHORT_COMMIT: Final = 7
_SHORT_DIGEST: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class RepoPaths:
    """Turns paths as the user typed them into paths below the repository. Both folders are absolute, with ``/``.

    Without folders, paths are only tidied (``./a//b`` becomes ``a/b``).
    """

    working_folder: str = "/"
    root: str = "/"
    others: tuple[str, ...] = ()
    """Roots of other work trees of the repository, absolute."""

    def relative(self, file: str) -> str:
        """The path from the root, with ``/``; a file outside the root keeps the path it was given."""
        tidy = posixpath.normpath(file)
        path = posixpath.normpath(posixpath.join(self.working_folder, file))
        for root in map(posixpath.normpath, (*self.others, self.root)):
            if path == root:
                return "."
            prefix = root if root.endswith("/") else f"{root}/"
            if path.startswith(prefix) and not self._bare(file):
                return path.removeprefix(prefix)
        return tidy

    def _bare(self, file: str) -> bool:
        """True for an absolute path when no root is known: it cannot be made relative to anything."""
        return self.root == "/" and file.startswith("/")


@dataclass(frozen=True, slots=True, kw_only=True)
class RepositoryLinks:
    """Addresses of one comment or page; ``None``: not known."""

    files: str | None = None
    """Of the repository's files at one commit, without a path: ``https://HOST/OWNER/NAME/blob/COMMIT``."""
    report: str | None = None
    """Of the backtest's page, e.g. an artifact of the run."""
    docs: str | None = None
    """Of the page that explains a guard; ``{id}`` in it stands for the guard."""
    places: RepoPaths = field(default_factory=RepoPaths)
    """Makes the paths of manifests relative to the repository."""

    def linked(self, markdown: str, span: Span | None) -> str:
        """A code span as a link to the line of a manifest, or as it is."""
        address = self.line_address(span) if span else None
        return f"[{markdown}]({address})" if address else markdown

    def place(self, span: Span, *, limit: int = NAME_LIMIT) -> str:
        """``[`teams/payments.yaml:8`](...)``."""
        branch = _BRANCH.fullmatch(span.file)
        path = f"{branch['branch']}:{branch['path']}" if branch else self.places.relative(span.file)
        return self.linked(code(f"{path}:{span.line}", limit=limit), span)

    def explained(self, guard_id: str) -> str:
        """Where to read about a guard: its page, or the command that explains it."""
        address = web_address((self.docs or "").replace("{id}", urllib.parse.quote(guard_id, safe="")))
        return f"[explained here]({address})" if address else code(f"kafka-quotas explain {guard_id}")

    def line_address(self, span: Span) -> str | None:
        """The web address of a line; ``None`` for a file outside of the repository, too."""
        branch = _BRANCH.fullmatch(span.file)
        path = branch["path"] if branch else self.places.relative(span.file)
        if self.files is None or path.startswith(("/", "../")) or len(path) > NAME_LIMIT:
            return None
        quoted = urllib.parse.quote(path, safe="/", errors="surrogatepass")
        files = self.files
        if branch:
            # A file of the trusted branch may not be in the commit of the change, or have other lines there.
            files = f"{files.rpartition('/')[0]}/{urllib.parse.quote(branch['branch'], safe='/')}"
        return web_address(f"{files}/{quoted}#L{span.line}")


def files_at(server: str | None, repository: str | None, commit: str | None) -> str | None:
    """The address of a repository's files at a commit, as GitHub spells it; ``None`` when a part is not known."""
    return f"{server}/{repository}/blob/{commit}" if server and repository and commit else None


NO_LINKS: Final = RepositoryLinks()
"""Where no address is known."""


def web_address(text: str | None) -> str | None:
    """The text when it is a plain web address that Markdown takes as it is."""
    return text if text and _ADDRESS.fullmatch(text) else None


def short_commit(commit: str) -> str:
    """``e9e4731`` of a hexadecimal commit; other text as it is."""
    return commit[:_SHORT_COMMIT] if re.fullmatch(r"[0-9a-fA-F]{7,64}", commit) else commit


def short_digest(digest: str) -> str:
    """The first eight digits, without the name of the function."""
    return digest.rpartition(":")[2][:_SHORT_DIGEST]
