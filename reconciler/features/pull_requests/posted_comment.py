"""A comment on a pull request or a merge request, whichever forge it is on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """One comment. ``author`` is a login, in the case that the forge shows; ``None`` for an account that is deleted."""

    id: int
    author: str | None
    body: str
    url: str
