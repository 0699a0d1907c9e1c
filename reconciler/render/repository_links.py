"""Where a comment or a page leads: lines of manifests, the run, the page of the backtest, the page of a guard. Unknown: no link.

Addresses are data that the caller knows. One that is not a plain web address is treated as unknown.
"""

from __future__ import annotations

import re
import urllib.parse
from dataclasses import dataclass, field
from typing import Final

from reconciler.model import Span
from reconciler.render.markdown_text import NAME_LIMIT, code
from reconciler.render.repo_paths import RepoPaths

_ADDRESS: Final = re.compile(r"https?://[A-Za-z0-9.:-]+/[A-Za-z0-9._~/%#?=&+-]*")
_SHORT_COMMIT: Final = 7
_SHORT_DIGEST: Final = 8


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
        return self.linked(code(f"{self.places.relative(span.file)}:{span.line}", limit=limit), span)

    def explained(self, guard_id: str) -> str:
        """Where to read about a guard: its page, or the command that explains it."""
        address = web_address((self.docs or "").replace("{id}", urllib.parse.quote(guard_id, safe="")))
        return f"[explained here]({address})" if address else code(f"kafka-quotas explain {guard_id}")

    def line_address(self, span: Span) -> str | None:
        """The web address of a line; ``None`` for a file outside of the repository, too."""
        path = self.places.relative(span.file)
        if self.files is None or path.startswith(("/", "../")) or len(path) > NAME_LIMIT:
            return None
        quoted = urllib.parse.quote(path, safe="/", errors="surrogatepass")
        return web_address(f"{self.files}/{quoted}#L{span.line}")


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
